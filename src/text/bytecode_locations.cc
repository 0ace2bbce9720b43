// Decodes MLIR locations into origins. JAX writes
//   "jit(f)/add"(callsite("f"("f.py":3:8) at callsite("g"("g.py":7:0) at ...)))
// The outermost name is the op_name. Inside, a name around a file position is the function that
// contains it, and callsites chain frames to their callers.
#include "support/limits.h"
#include "text/bytecode_attr_decoder.h"

namespace tokamak {
namespace {

enum LocationCode : uint64_t {
  kLocationCallSite = 10,
  kLocationFileLineCol = 11,
  kLocationFused = 12,
  kLocationFusedWithMetadata = 13,
  kLocationName = 14,
  kLocationUnknownLocation = 15,
  kLocationFileRange = 22,
};

int32_t Line(uint64_t number) {
  return number > INT32_MAX ? INT32_MAX : static_cast<int32_t>(number);
}

}  // namespace

class BytecodeTables::LocationDecoder {
 public:
  LocationDecoder(BytecodeTables& tables, OriginTable& origins)
      : tables_(tables), file_(tables.file_), origins_(origins) {}

  Result<OriginId> OriginOf(BytecodeRef ref) {
    TOK_TRY(Parts parts, Read(ref));
    if (parts.code == kLocationFused || parts.code == kLocationFusedWithMetadata)
      return Merged(parts);
    Origin origin;
    if (parts.code == kLocationName) {
      TOK_TRY(std::string_view name, Text(parts.name));
      origin.op_name = std::string(name);
      ref = parts.children[0];
    }
    TOK_TRY(origin.frame, FramesOf(ref, FrameId::kNone, {}));
    if (origin.op_name.empty() && origin.frame == FrameId::kNone) return OriginId::kNone;
    return origins_.Add(origin);
  }

 private:
  // The text of a string attribute. There are many names and each is needed once, so they are
  // decoded in place and not cached.
  Result<std::string_view> Text(BytecodeRef ref) {
    constexpr uint64_t kString = 2;
    if (ref.index < file_.attributes.size()) {
      const BytecodeFile::Entry& entry = file_.attributes[ref.index];
      BytecodeCursor in = file_.At(entry);
      if (entry.custom && file_.dialect_kinds[entry.dialect] == BytecodeFile::Dialect::kBuiltin &&
          in.Varint() == kString) {
        const uint64_t index = in.Varint();
        if (!in.failed() && in.left() == 0 && index < file_.strings.size())
          return file_.strings[index];
      }
    }
    return tables_.String(ref);
  }

  struct Parts {
    uint64_t code = kLocationUnknownLocation;
    BytecodeRef name;                    // of a name location; the file of a line
    BytecodeRef children[2];             // of a name location (one) or a call site
    std::vector<BytecodeRef> fused;      // of a fused one
    uint64_t numbers[4] = {0, 0, 0, 0};  // line, column, end line, end column
  };

  Result<Parts> Read(BytecodeRef ref) {
    if (ref.index >= file_.attributes.size()) {
      return file_.ErrorAt(ErrorCode::kBytecodeIndex,
                           "bytecode: attribute " + std::to_string(ref.index) + " of " +
                               std::to_string(file_.attributes.size()),
                           ref.from);
    }
    const BytecodeFile::Entry& entry = file_.attributes[ref.index];
    BytecodeCursor in = file_.At(entry);
    Parts parts;
    parts.code = in.Varint();
    if (!entry.custom || file_.dialect_kinds[entry.dialect] != BytecodeFile::Dialect::kBuiltin ||
        !AttrDecoder::IsLocation(parts.code))
      return file_.ErrorAt(ErrorCode::kBytecodeKind, "bytecode: a location is expected", ref.from);
    ReadBody(in, parts);
    TOK_RETURN_IF_ERROR(file_.Finish(in, "location"));
    return parts;
  }

  static BytecodeRef Ref(BytecodeCursor& in) {
    const size_t from = in.offset();
    return {in.Varint(), from};
  }

  static void ReadBody(BytecodeCursor& in, Parts& parts) {
    switch (parts.code) {
      case kLocationCallSite:
        parts.children[0] = Ref(in);
        parts.children[1] = Ref(in);
        break;
      case kLocationFileLineCol:
        parts.name = Ref(in);
        parts.numbers[0] = in.Varint();
        parts.numbers[1] = in.Varint();
        break;
      case kLocationFused:
      case kLocationFusedWithMetadata:
        for (size_t n = in.Count(); n > 0; --n) parts.fused.push_back(Ref(in));
        if (parts.code == kLocationFusedWithMetadata) in.Varint();
        break;
      case kLocationName:
        parts.name = Ref(in);
        parts.children[0] = Ref(in);
        break;
      case kLocationFileRange:
        ReadRange(in, parts);
        break;
      default:
        break;
    }
  }

  // One number is a line; two add a column; three add the end column; four insert the end line
  // before the end column.
  static void ReadRange(BytecodeCursor& in, Parts& parts) {
    parts.name = Ref(in);
    const size_t count = in.Count();
    uint64_t read[4] = {0, 0, 0, 0};
    for (size_t i = 0; i < count; ++i) {
      const uint64_t number = in.Varint();
      if (i < 4) read[i] = number;
    }
    parts.numbers[0] = read[0];
    parts.numbers[1] = read[1];
    parts.numbers[2] = count == 3 ? read[0] : read[2];
    parts.numbers[3] = count == 3 ? read[2] : read[3];
  }

  Result<OriginId> Merged(const Parts& parts) {
    OriginId merged = OriginId::kNone;
    for (BytecodeRef child : parts.fused) {
      if (++steps_ > kMaxLocationFrames) break;
      TOK_RETURN_IF_ERROR(Enter(child));
      auto origin = tables_.Location(child, origins_);
      --depth();
      if (!origin.ok()) return std::move(origin.error());
      merged = merged == OriginId::kNone ? origin.value() : origins_.Merge(merged, origin.value());
    }
    return merged;
  }

  // The innermost frame of a location called from `caller`. `function` is the enclosing name.
  Result<FrameId> FramesOf(BytecodeRef ref, FrameId caller, BytecodeRef function) {
    const bool plain = caller == FrameId::kNone && function.from == 0;
    if (plain && ref.index < tables_.frames_.size() && tables_.frames_[ref.index] != kUnknown)
      return static_cast<FrameId>(tables_.frames_[ref.index]);
    if (++steps_ > kMaxLocationFrames) return caller;
    TOK_RETURN_IF_ERROR(Enter(ref));
    auto frame = SlowFramesOf(ref, caller, function);
    --depth();
    if (plain && frame.ok()) tables_.frames_[ref.index] = static_cast<uint32_t>(frame.value());
    return frame;
  }

  Result<FrameId> SlowFramesOf(BytecodeRef ref, FrameId caller, BytecodeRef function) {
    TOK_TRY(Parts parts, Read(ref));
    switch (parts.code) {
      case kLocationCallSite: {
        TOK_TRY(FrameId outer, FramesOf(parts.children[1], caller, {}));
        return FramesOf(parts.children[0], outer, {});
      }
      case kLocationFileLineCol:
      case kLocationFileRange:
        return AddFrame(parts, caller, function);
      case kLocationFused:
      case kLocationFusedWithMetadata:
        if (parts.fused.empty()) return caller;
        return FramesOf(parts.fused[0], caller, function);
      case kLocationName:
        return FramesOf(parts.children[0], caller, parts.name);
      default:
        return caller;
    }
  }

  Result<FrameId> AddFrame(const Parts& parts, FrameId caller, BytecodeRef function) {
    Frame frame;
    TOK_TRY(std::string_view file, Text(parts.name));
    frame.file = std::string(file);
    if (function.from != 0) {
      TOK_TRY(std::string_view name, Text(function));
      frame.function = std::string(name);
    }
    frame.line = Line(parts.numbers[0]);
    frame.column = Line(parts.numbers[1]);
    frame.end_line = Line(parts.numbers[2]);
    frame.end_column = Line(parts.numbers[3]);
    frame.caller = caller;
    return origins_.AddFrame(frame);
  }

  int& depth() { return tables_.location_depth_; }
  Status Enter(BytecodeRef ref) {
    if (++depth() <= kMaxLocationFrames) return Ok();
    --depth();
    return file_.ErrorAt(ErrorCode::kTooDeep, "bytecode: locations are nested too deeply",
                         ref.from);
  }

  BytecodeTables& tables_;
  const BytecodeFile& file_;
  OriginTable& origins_;
  int steps_ = 0;  // work for one location; frames beyond the limit are dropped
};

Result<OriginId> BytecodeTables::Location(BytecodeRef ref, OriginTable& origins) {
  if (ref.index < origins_.size() && origins_[ref.index] != kUnknown)
    return static_cast<OriginId>(origins_[ref.index]);
  TOK_TRY(OriginId origin, LocationDecoder(*this, origins).OriginOf(ref));
  origins_[ref.index] = static_cast<uint32_t>(origin);
  return origin;
}

// A location among the attributes has no value; it is decoded only to validate it.
Status BytecodeTables::AttrDecoder::Location(uint64_t code) {
  const auto skip_children = [this](size_t count) -> Status {
    for (; count > 0; --count) {
      const BytecodeRef ref = Ref();
      if (!in_.failed() && ref.index >= file_.attributes.size()) {
        return ErrorAt(ErrorCode::kBytecodeIndex,
                       "attribute " + std::to_string(ref.index) + " of " +
                           std::to_string(file_.attributes.size()),
                       ref.from);
      }
    }
    return Ok();
  };
  switch (code) {
    case kLocationCallSite:
    case kLocationName:
      return skip_children(2);
    case kLocationFileLineCol:
      TOK_RETURN_IF_ERROR(skip_children(1));
      in_.Varint();
      in_.Varint();
      return Ok();
    case kLocationFused:
      return skip_children(in_.Count());
    case kLocationFusedWithMetadata:
      return skip_children(in_.Count() + 1);
    case kLocationFileRange:
      TOK_RETURN_IF_ERROR(skip_children(1));
      for (size_t n = in_.Count(); n > 0; --n) in_.Varint();
      return Ok();
    default:
      return Ok();
  }
}

}  // namespace tokamak
