#include "text/bytecode_file.h"

#include <array>
#include <charconv>
#include <optional>

namespace tokamak {
namespace {

enum Section : uint8_t {
  kSectionStrings,
  kSectionDialects,
  kSectionEntries,
  kSectionEntryOffsets,
  kSectionIr,
  kSectionResources,
  kSectionResourceOffsets,
  kSectionDialectVersion,  // only inside kSectionDialects
  kSectionProperties,
  kSectionSectionCount,
};
constexpr std::array<std::string_view, kSectionSectionCount> kSectionNames = {
    "strings",   "dialects",  "attributes and types", "offsets of attributes and types",
    "ir",        "resources", "offsets of resources", "dialect version",
    "properties"};
constexpr uint8_t kAligned = 0x80;  // MLIR bytecode format: flag of a section id
constexpr uint8_t kPadding = 0xCB;  // MLIR bytecode format: alignment byte
constexpr uint64_t kVersion = 6;    // supported version of the bytecode format
constexpr std::string_view kVhloProducer = "StableHLO_v";
// Limit of the format here: an Entry has seven bits for the dialect.
constexpr size_t kMaxDialects = 127;

// "1.16.2": the first two numbers.
std::optional<std::pair<int, int>> ParseVersion(std::string_view text) {
  int major = 0, minor = 0;
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  auto second = std::from_chars(first.ptr + 1, end, minor);
  if (second.ec != std::errc()) return std::nullopt;
  return std::pair(major, minor);
}

class Opener {
 public:
  Opener(const Bytes& bytes, const std::string& file) {
    out_.bytes = bytes;
    out_.file = file;
  }

  Result<BytecodeFile> Open() {
    TOK_RETURN_IF_ERROR(ReadHeader());
    TOK_RETURN_IF_ERROR(ReadStrings());
    TOK_RETURN_IF_ERROR(ReadDialects());
    TOK_RETURN_IF_ERROR(ReadEntries());
    TOK_RETURN_IF_ERROR(ReadProperties());
    TOK_RETURN_IF_ERROR(ReadResources());
    out_.ir = *sections_[kSectionIr];
    return std::move(out_);
  }

 private:
  Error ErrorAt(ErrorCode code, std::string message, uint64_t offset) const {
    return out_.ErrorAt(code, std::move(message), offset);
  }

  Status ReadHeader() {
    BytecodeCursor in(out_.bytes.data(), 0, out_.bytes.size());
    in.Take(4);  // the magic number, already checked by RecogniseFormat
    const uint64_t version = in.Varint();
    out_.producer = in.NulTerminated();
    TOK_RETURN_IF_ERROR(out_.Whole(in, "header"));
    if (version != kVersion) {
      return ErrorAt(ErrorCode::kBytecodeVersion,
                     "bytecode: version " + std::to_string(version) + " (written by '" +
                         std::string(out_.producer) + "'), only version 6 is read",
                     4);
    }
    TOK_RETURN_IF_ERROR(CheckProducer());
    while (in.left() > 0) TOK_RETURN_IF_ERROR(ReadSection(in));
    for (Section needed :
         {kSectionStrings, kSectionDialects, kSectionEntries, kSectionEntryOffsets, kSectionIr}) {
      if (!sections_[needed]) {
        return ErrorAt(ErrorCode::kBytecodeSection,
                       "bytecode: there is no section of " + std::string(kSectionNames[needed]),
                       out_.bytes.size());
      }
    }
    return Ok();
  }

  Status CheckProducer() {
    if (!out_.producer.starts_with(kVhloProducer)) return Ok();
    std::string_view text = out_.producer.substr(kVhloProducer.size());
    auto version = ParseVersion(text);
    if (version && version->first >= 1) return Ok();
    return ErrorAt(
        ErrorCode::kVhloVersion,
        "bytecode: VHLO version " + std::string(text) + ", the oldest that is read is 1.0", 5);
  }

  // Returns the contents of the next section, which must be complete.
  Result<BytecodeFile::Window> TakeSection(BytecodeCursor& in, uint8_t& id) const {
    const size_t start = in.offset();
    id = in.Byte();
    const uint64_t size = in.Varint();
    if ((id & kAligned) != 0) {
      const uint64_t alignment = in.Varint();
      if (!in.failed() && (alignment == 0 || alignment > (uint64_t{1} << 32))) {
        return ErrorAt(ErrorCode::kBytecodeSection,
                       "bytecode: a section is aligned to " + std::to_string(alignment) + " bytes",
                       start);
      }
      while (!in.failed() && in.offset() % alignment != 0) {
        if (in.Byte() != kPadding && !in.failed())
          return ErrorAt(ErrorCode::kBytecodeSection, "bytecode: padding is not 0xCB",
                         in.offset() - 1);
      }
      id &= static_cast<uint8_t>(~kAligned);
    }
    const auto contents = in.Nested(size);
    TOK_RETURN_IF_ERROR(out_.Whole(in, "section"));
    return BytecodeFile::Window{contents.offset(), contents.end()};
  }

  Status ReadSection(BytecodeCursor& in) {
    const size_t start = in.offset();
    uint8_t id = 0;
    TOK_TRY(BytecodeFile::Window contents, TakeSection(in, id));
    if (id >= kSectionSectionCount || id == kSectionDialectVersion) {
      return ErrorAt(ErrorCode::kBytecodeSection,
                     "bytecode: section " + std::to_string(id) + " is not known", start);
    }
    if (sections_[id]) {
      return ErrorAt(ErrorCode::kBytecodeSection,
                     "bytecode: the section of " + std::string(kSectionNames[id]) + " occurs twice",
                     start);
    }
    sections_[id] = contents;
    return Ok();
  }

  Status ReadStrings() {
    BytecodeCursor in = out_.At(*sections_[kSectionStrings]);
    const size_t count = in.Count();
    std::vector<uint64_t> lengths(count);
    for (size_t i = count; i > 0; --i) lengths[i - 1] = in.Varint();  // stored in reverse order
    out_.strings.reserve(count);
    for (uint64_t length : lengths) {
      const size_t start = in.offset();
      auto chars = in.Take(length);
      if (in.failed()) break;
      if (chars.empty() || chars.back() != std::byte{0})
        return ErrorAt(ErrorCode::kBytecodeString, "bytecode: a string does not end with NUL",
                       start);
      out_.strings.emplace_back(reinterpret_cast<const char*>(chars.data()), chars.size() - 1);
    }
    return out_.Finish(in, "section of strings");
  }

  Result<std::string_view> StringAt(uint64_t index, size_t offset) const {
    if (index < out_.strings.size()) return out_.strings[index];
    return IndexError("string", index, out_.strings.size(), offset);
  }
  Error IndexError(std::string_view what, uint64_t index, size_t size, size_t offset) const {
    return ErrorAt(ErrorCode::kBytecodeIndex,
                   "bytecode: " + std::string(what) + " " + std::to_string(index) + " of " +
                       std::to_string(size),
                   offset);
  }

  Status ReadDialects() {
    BytecodeCursor in = out_.At(*sections_[kSectionDialects]);
    const size_t count = in.Count();
    if (count > kMaxDialects) {
      return ErrorAt(ErrorCode::kTooLarge,
                     "bytecode: " + std::to_string(count) + " dialects, the limit is " +
                         std::to_string(kMaxDialects),
                     in.offset());
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t start = in.offset();
      const uint64_t tagged = in.Varint();
      TOK_RETURN_IF_ERROR(out_.Whole(in, "section of dialects"));
      TOK_TRY(std::string_view name, StringAt(tagged >> 1, start));
      AddDialect(name);
      if ((tagged & 1) == 0) continue;
      uint8_t id = 0;
      TOK_TRY(BytecodeFile::Window version, TakeSection(in, id));
      if (id != kSectionDialectVersion) {
        return ErrorAt(ErrorCode::kBytecodeSection,
                       "bytecode: section " + std::to_string(id) +
                           " instead of the version of dialect '" + std::string(name) + "'",
                       version.begin);
      }
    }
    return ReadOpNames(in);
  }

  void AddDialect(std::string_view name) {
    using Dialect = BytecodeFile::Dialect;
    out_.dialects.push_back(name);
    out_.dialect_kinds.push_back(name == "vhlo"      ? Dialect::kVhlo
                                 : name == "builtin" ? Dialect::kBuiltin
                                 : name == "sdy"     ? Dialect::kSdy
                                                     : Dialect::kOther);
  }

  Status ReadOpNames(BytecodeCursor& in) {
    const size_t total = in.Count();
    out_.ops.reserve(total);
    while (in.left() > 0) {
      const size_t start = in.offset();
      const uint64_t dialect = in.Varint();
      if (!in.failed() && dialect >= out_.dialects.size())
        return IndexError("dialect", dialect, out_.dialects.size(), start);
      for (size_t n = in.Count(); n > 0; --n) {
        const size_t at = in.offset();
        const uint64_t tagged = in.Varint();
        TOK_TRY(std::string_view name, StringAt(tagged >> 1, at));
        out_.ops.push_back({static_cast<uint32_t>(dialect), name});
      }
    }
    TOK_RETURN_IF_ERROR(out_.Finish(in, "section of dialects"));
    if (out_.ops.size() == total) return Ok();
    return ErrorAt(ErrorCode::kBytecodeIndex,
                   "bytecode: " + std::to_string(total) + " op names are promised, " +
                       std::to_string(out_.ops.size()) + " are there",
                   in.end());
  }

  Status ReadEntries() {
    BytecodeCursor in = out_.At(*sections_[kSectionEntryOffsets]);
    const uint64_t attributes = in.Count();
    const uint64_t types = in.Count();
    uint64_t at = sections_[kSectionEntries]->begin;
    TOK_RETURN_IF_ERROR(ReadEntryGroups(in, attributes, at, out_.attributes));
    TOK_RETURN_IF_ERROR(ReadEntryGroups(in, types, at, out_.types));
    TOK_RETURN_IF_ERROR(out_.Finish(in, "section of offsets"));
    if (at == sections_[kSectionEntries]->end) return Ok();
    return ErrorAt(ErrorCode::kBytecodeLeftOver,
                   "bytecode: attributes and types end " +
                       std::to_string(sections_[kSectionEntries]->end - at) +
                       " bytes before their section",
                   at);
  }

  Status ReadEntryGroups(BytecodeCursor& in, uint64_t count, uint64_t& at,
                         std::vector<BytecodeFile::Entry>& entries) {
    const uint64_t limit = sections_[kSectionEntries]->end;
    entries.reserve(count);
    while (entries.size() < count && !in.failed()) {
      const size_t start = in.offset();
      const uint64_t dialect = in.Varint();
      const size_t size = in.Count();
      if (in.failed()) break;
      if (dialect >= out_.dialects.size())
        return IndexError("dialect", dialect, out_.dialects.size(), start);
      if (size > count - entries.size())
        return IndexError("entry", entries.size() + size, count, start);
      for (size_t i = 0; i < size; ++i) {
        const size_t offset = in.offset();
        const uint64_t tagged = in.Varint();
        if (tagged >> 1 > limit - at) {
          return ErrorAt(ErrorCode::kBytecodeTruncated,
                         "bytecode: an attribute or type of " + std::to_string(tagged >> 1) +
                             " bytes, " + std::to_string(limit - at) + " are left",
                         offset);
        }
        BytecodeFile::Entry entry;
        entry.begin = at;
        entry.end = at + (tagged >> 1);
        entry.custom = tagged & 1;
        entry.dialect = dialect & 127;
        entries.push_back(entry);
        at += tagged >> 1;
      }
    }
    return Ok();
  }

  Status ReadProperties() {
    if (!sections_[kSectionProperties]) return Ok();
    BytecodeCursor in = out_.At(*sections_[kSectionProperties]);
    const size_t count = in.Count();
    out_.properties.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const auto window = in.Nested(in.Varint());
      out_.properties.push_back({window.offset(), window.end()});
    }
    return out_.Finish(in, "section of properties");
  }

  // Supported attributes never refer to resources, so they are only counted.
  Status ReadResources() {
    uint64_t bytes = 0;
    if (sections_[kSectionResourceOffsets]) {
      BytecodeCursor in = out_.At(*sections_[kSectionResourceOffsets]);
      size_t external = in.Count();  // groups that belong to no dialect come first
      while (in.left() > 0) {
        TOK_RETURN_IF_ERROR(ReadResourceGroup(in, external > 0, bytes));
        if (external > 0) --external;
      }
      TOK_RETURN_IF_ERROR(out_.Finish(in, "section of resource offsets"));
    }
    const auto window = sections_[kSectionResources].value_or(BytecodeFile::Window{});
    if (bytes == window.end - window.begin) return Ok();
    return ErrorAt(ErrorCode::kBytecodeSection,
                   "bytecode: resources take " + std::to_string(bytes) + " bytes, their section " +
                       std::to_string(window.end - window.begin),
                   window.begin);
  }

  Status ReadResourceGroup(BytecodeCursor& in, bool external, uint64_t& bytes) {
    const size_t start = in.offset();
    const uint64_t owner = in.Varint();
    const size_t limit = external ? out_.strings.size() : out_.dialects.size();
    if (!in.failed() && owner >= limit) return IndexError("resource owner", owner, limit, start);
    for (size_t n = in.Count(3); n > 0; --n) {
      const size_t at = in.offset();
      const uint64_t key = in.Varint();
      if (!in.failed() && key >= out_.strings.size())
        return IndexError("string", key, out_.strings.size(), at);
      const uint64_t size = in.Varint();
      bytes = size > UINT64_MAX - bytes ? UINT64_MAX : bytes + size;
      in.Byte();
    }
    return Ok();
  }

  BytecodeFile out_;
  std::array<std::optional<BytecodeFile::Window>, kSectionSectionCount> sections_;
};

}  // namespace

std::string BytecodeFile::NameOf(const OpName& op) const {
  std::string name(dialects[op.dialect]);
  if (!op.name.empty()) name.append(".").append(op.name);
  return name;
}

Error BytecodeFile::ErrorAt(ErrorCode code, std::string message, uint64_t offset) const {
  TextSpan where;
  where.file = file;
  where.offset = static_cast<int64_t>(offset);
  return MakeError(code, std::move(message), std::move(where));
}

Status BytecodeFile::Whole(const BytecodeCursor& cursor, std::string_view what) const {
  if (!cursor.failed()) return Ok();
  return ErrorAt(ErrorCode::kBytecodeTruncated,
                 "bytecode: the " + std::string(what) + " ends at byte " +
                     std::to_string(cursor.end()) + ", before the end of its contents",
                 cursor.failed_at());
}

Status BytecodeFile::Finish(const BytecodeCursor& cursor, std::string_view what) const {
  TOK_RETURN_IF_ERROR(Whole(cursor, what));
  if (cursor.left() == 0) return Ok();
  return ErrorAt(ErrorCode::kBytecodeLeftOver,
                 "bytecode: " + std::to_string(cursor.left()) + " bytes are left over in the " +
                     std::string(what),
                 cursor.offset());
}

Result<BytecodeFile> OpenBytecode(const Bytes& bytes, const std::string& file) {
  return Opener(bytes, file).Open();
}

}  // namespace tokamak
