// Types of MLIR text. A type that was parsed before is looked up by its text.

#include <charconv>
#include <cstring>

#include "ir/int_range.h"
#include "support/limits.h"
#include "text/mlir_text.h"

namespace tokamak {
namespace {

// The end of the "tensor<...>" that begins at `at`, or null. Quotes do not occur.
const char* EndOfAngles(const char* at, const char* end) {
  int open = 0;
  for (; at < end; ++at) {
    if (*at == '<') ++open;
    if (*at == '>' && at[-1] != '-' && --open == 0) return at + 1;
    if (*at == '\n' || *at == '"') return nullptr;
  }
  return nullptr;
}

// The cache slot (7 bits) of the type that begins at `at`: a hash of the eight characters after
// "tensor<", or of those up to its '>'.
size_t SlotOf(const char* at, size_t left) {
  uint64_t word = 0;
  if (left >= 15) std::memcpy(&word, at + 7, 8);
  const uint64_t rest = word ^ 0x3e3e3e3e3e3e3e3eu;  // a byte that is '>' becomes zero
  const uint64_t zeros = (rest - 0x0101010101010101u) & ~rest & 0x8080808080808080u;
  word &= zeros ^ (zeros - 1);  // keeps everything if there is none
  return static_cast<size_t>((word * 0x9e3779b97f4a7c15u) >> 57);
}

std::optional<ElementType> ElementTypeNamed(std::string_view name) {
  if (std::optional<ElementType> type = ElementTypeFromMlir(name)) return type;
  // si8 equals StableHLO's i8; index is 64 bits wide here.
  if (name.starts_with("si")) return ElementTypeFromMlir(name.substr(1));
  if (name == "index") return ElementType::kS64;
  return std::nullopt;
}

// Quantized storage types may be spelled u8 for ui8.
std::optional<ElementType> StorageTypeNamed(std::string_view name) {
  if (name.starts_with("u") && !name.starts_with("ui"))
    return ElementTypeFromMlir("ui" + std::string(name.substr(1)));
  return ElementTypeNamed(name);
}

}  // namespace

bool MlirTextReader::ParseType(Shape& shape) {
  if (cursor_.Peek() == 't' && cursor_.StartsWith("tensor<")) {
    // The text of a type determines its end, so a matching prefix identifies it.
    RecentType& recent = recent_types_[SlotOf(cursor_.at(), cursor_.left())];
    if (recent.shape != nullptr && cursor_.StartsWith(recent.text)) {
      shape = *recent.shape;
      cursor_.Advance(recent.text.size());
      return true;
    }
    const char* begin = cursor_.at();
    const char* end = EndOfAngles(begin, cursor_.end());
    if (end == nullptr) return ParseTensor(shape);
    std::string_view text(begin, static_cast<size_t>(end - begin));
    auto it = types_.find(text);
    if (it == types_.end()) {
      if (!ParseTensor(shape)) return false;
      it = types_.emplace(text, shape).first;
    } else {
      shape = it->second;
      cursor_.Advance(text.size());
    }
    recent = {text, &it->second};
    return true;
  }
  return ParseTypeSlow(shape);
}

bool MlirTextReader::ParseTypeSlow(Shape& shape) {
  if (!Enter()) return false;
  bool ok = false;
  TextPos pos = cursor_.Pos();
  std::string_view word = cursor_.PeekWord();
  if (cursor_.Peek() == '!') {
    ok = ParseDialectType(shape);
  } else if (word == "tuple") {
    cursor_.Advance(word.size());
    std::vector<Shape> elements;
    ok = Expect('<');
    if (ok && cursor_.Peek() != '>') {
      do ok = ParseType(elements.emplace_back());
      while (ok && cursor_.Eat(','));
    }
    ok = ok && Expect('>');
    shape = Shape::Tuple(std::move(elements));
  } else if (word == "memref") {
    cursor_.Advance(word.size());
    ok = ParseTensorBody(shape, true);
  } else {
    ok = Expected("a type");
  }
  Leave();
  // Aliases of tuples of aliases.
  if (ok && shape.depth() > kMaxNesting)
    return FailAt(pos, ErrorCode::kTooDeep, "nested deeper than " + std::to_string(kMaxNesting));
  if (ok && shape.parts() > kMaxShapeParts)
    return FailAt(pos, ErrorCode::kTooLarge,
                  "a type of more than " + std::to_string(kMaxShapeParts) + " parts");
  return ok;
}

bool MlirTextReader::ParseTensor(Shape& shape) {
  if (!Expect("tensor")) return false;
  return ParseTensorBody(shape, false);
}

// <2x?xf32>, <*xf32>, <2xf32, #stablehlo.bounds<?, 4>>
bool MlirTextReader::ParseTensorBody(Shape& shape, bool is_buffer) {
  if (!Expect('<')) return false;
  TextPos pos = cursor_.Pos();
  Dims dims;
  bool unranked = false;
  for (;;) {
    char c = cursor_.Peek();
    int64_t size = kDynamic;
    if (c == '*' || c == '?') {
      unranked = unranked || c == '*';
      cursor_.Advance();
    } else if (IsMlirDigit(c)) {
      auto [next, conversion_error] = std::from_chars(cursor_.at(), cursor_.end(), size);
      if (conversion_error != std::errc{})
        return Fail(ErrorCode::kTooLarge, "a dimension does not fit into 64 bits");
      cursor_.Advance(static_cast<size_t>(next - cursor_.at()));
    } else {
      break;
    }
    if (cursor_.Here() != 'x') return Expected("'x' after a dimension");
    cursor_.Advance();
    dims.push_back(size);
  }
  ElementType type{};
  std::optional<QuantType> quant;
  if (!ParseElementType(type, quant)) return false;
  if (unranked) {
    shape = Shape::Unranked(type);
    return Expect('>');
  }
  if (dims.size() > static_cast<size_t>(kMaxRank))
    return FailAt(pos, ErrorCode::kTooLarge,
                  "tensor of rank " + std::to_string(dims.size()) + ", the limit is " +
                      std::to_string(kMaxRank));
  if (!CheckedElementCount(dims))
    return FailAt(pos, ErrorCode::kTooLarge,
                  "tensor has more than " + std::to_string(kMaxElements) + " elements");
  Dims bounds;
  while (cursor_.Eat(',')) {
    // The layout and memory space of a buffer are ignored.
    AttrValue skipped;
    if (is_buffer ? !ParseAttr(skipped) : !ParseEncoding(bounds, dims.size())) return false;
  }
  if (!Expect('>')) return false;
  shape = Shape::Array(type, std::move(dims));
  if (!bounds.empty()) shape = shape.WithBounds(std::move(bounds));
  if (quant) shape = shape.WithQuant(std::move(*quant));
  if (is_buffer) shape = Shape::Buffer(std::move(shape));
  return true;
}

bool MlirTextReader::ParseEncoding(Dims& bounds, size_t rank) {
  TextPos pos = cursor_.Pos();
  AttrValue value;
  if (!ParseAttr(value)) return false;
  const auto* record = value.As<RecordAttr>();
  const AttrValue* list = record == nullptr ? nullptr : Find(record->fields, "bounds");
  const auto* array = list == nullptr ? nullptr : list->As<DenseArrayAttr>();
  if (array == nullptr)
    return FailAt(pos, ErrorCode::kMlirType, "tensor: this encoding is not known");
  if (array->ints.size() != rank)
    return FailAt(pos, ErrorCode::kMlirType,
                  "tensor of rank " + std::to_string(rank) + " has " +
                      std::to_string(array->ints.size()) + " bounds");
  bounds = array->ints;
  bool none = true;
  for (int64_t bound : bounds) none = none && bound == kDynamic;
  if (none) bounds.clear();
  return true;
}

bool MlirTextReader::ParseElementType(ElementType& type, std::optional<QuantType>& quant) {
  TextPos pos = cursor_.Pos();
  if (cursor_.Peek() == '!') {
    cursor_.Advance();
    std::string_view name = cursor_.Name();
    if (name == "quant.uniform") return ParseQuant(type, quant.emplace());
    // An alias of a quantized type.
    std::string key = "!" + std::string(name);
    auto it = aliases_.find(std::string_view(key));
    if (it == aliases_.end())
      return FailAt(pos, ErrorCode::kMlirType,
                    "element type !" + std::string(name) + " is not known");
    if (!Enter()) return false;
    MlirCursor::Mark mark = cursor_.Save();
    cursor_.Restore(it->second.mark);
    bool ok = ParseElementType(type, quant);
    cursor_.Restore(mark);
    Leave();
    return ok;
  }
  std::string_view word = cursor_.Word();
  if (word == "complex") {
    if (!Expect('<')) return false;
    std::string_view part = cursor_.Word();
    if (part != "f32" && part != "f64")
      return FailAt(pos, ErrorCode::kMlirType, "complex<" + std::string(part) + "> is not known");
    type = part == "f32" ? ElementType::kC64 : ElementType::kC128;
    return Expect('>');
  }
  std::optional<ElementType> known = ElementTypeNamed(word);
  if (!known) {
    if (word.empty()) return Expected("an element type");
    return FailAt(pos, ErrorCode::kMlirType,
                  "element type " + std::string(word.substr(0, 40)) + " is not known");
  }
  type = *known;
  return true;
}

// <i8<-127:127>:f32, 0.5:2> or, along an axis, <i8:f32:1, {0.5:2, 0.25}>
bool MlirTextReader::ParseQuant(ElementType& type, QuantType& quant) {
  if (!Expect('<')) return false;
  TextPos pos = cursor_.Pos();
  std::optional<ElementType> storage = StorageTypeNamed(cursor_.Word());
  if (!storage || !IsInteger(*storage))
    return FailAt(pos, ErrorCode::kMlirType, "quant.uniform: the storage type is no integer");
  type = *storage;
  IntRange range = RangeOfType(type).value_or(IntRange{0, INT64_MAX});
  quant.storage_min = range.low;
  quant.storage_max = range.high;
  if (cursor_.Eat('<')) {
    if (!ParseInt(quant.storage_min) || !Expect(':') || !ParseInt(quant.storage_max) ||
        !Expect('>'))
      return false;
  }
  if (!Expect(':')) return false;
  pos = cursor_.Pos();
  std::optional<ElementType> expressed = ElementTypeNamed(cursor_.Word());
  if (!expressed || !IsReal(*expressed))
    return FailAt(pos, ErrorCode::kMlirType, "quant.uniform: the expressed type is no float");
  quant.expressed = *expressed;
  if (cursor_.Eat(':')) {
    if (cursor_.Peek() == '{')
      return Fail(ErrorCode::kMlirType, "quant.uniform: scales per block are not known");
    if (!ParseInt(quant.axis)) return false;
  }
  if (!Expect(',')) return false;
  bool braces = cursor_.Eat('{');
  do {
    pos = cursor_.Pos();
    double scale = 0;
    auto read = std::from_chars(cursor_.at(), cursor_.end(), scale);
    if (read.ec != std::errc{})
      return FailAt(pos, ErrorCode::kMlirType, "quant.uniform: expected a scale");
    cursor_.Advance(static_cast<size_t>(read.ptr - cursor_.at()));
    quant.scales.push_back(scale);
    int64_t zero_point = 0;
    if (cursor_.Eat(':') && !ParseInt(zero_point)) return false;
    quant.zero_points.push_back(zero_point);
  } while (braces && cursor_.Eat(','));
  if (braces && !Expect('}')) return false;
  if (braces != (quant.axis >= 0))
    return FailAt(pos, ErrorCode::kMlirType, "quant.uniform: a list of scales needs an axis");
  return Expect('>');
}

bool MlirTextReader::ParseDialectType(Shape& shape) {
  TextPos pos = cursor_.Pos();
  const char* begin = cursor_.at();
  cursor_.Advance();
  std::string_view name = cursor_.Name();
  std::string_view key(begin, static_cast<size_t>(cursor_.at() - begin));
  if (name == "stablehlo.token" || name == "mhlo.token") {
    shape = Shape::Token();
    return true;
  }
  if (name == "stablehlo.future") {
    std::vector<Shape> results;
    if (!Expect('<')) return false;
    if (cursor_.Peek() != '>' && !ParseTypeListTo(results)) return false;
    shape = Shape::Future(std::move(results));
    return Expect('>');
  }
  if (name == "tokamak.opaque") {
    shape = Shape::Opaque();
    return true;
  }
  auto it = aliases_.find(key);
  if (it == aliases_.end())
    return FailAt(pos, ErrorCode::kMlirType, "type !" + std::string(name) + " is not known");
  Alias& alias = it->second;
  if (alias.state == 1)
    return FailAt(pos, ErrorCode::kMlirAlias, "!" + std::string(name) + " is defined by itself");
  if (!alias.type) {
    alias.state = 1;
    MlirCursor::Mark mark = cursor_.Save();
    cursor_.Restore(alias.mark);
    Shape type;
    if (!ParseType(type)) return false;
    cursor_.Restore(mark);
    alias.type = std::move(type);
    alias.state = 2;
  }
  shape = *alias.type;
  return true;
}

}  // namespace tokamak
