#include "text/hlo_literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "text/hlo_cursor.h"

namespace tokamak {
namespace {

// Splats with more elements are printed as {7, ...} (chosen: keeps short constants readable by
// XLA).
constexpr int64_t kLongSplat = 256;

bool BadLiteral(HloCursor& cursor, std::string message, const char* where = nullptr) {
  return cursor.Fail(ErrorCode::kHloBadLiteral, "constant: " + std::move(message), where);
}

// ---- one element: its bits, little-endian, into `out`

bool ReadInteger(HloCursor& cursor, ElementType type, std::byte* out) {
  const char* start = cursor.at();
  const int bits = InfoOf(type).bits;
  int64_t value = 0;
  uint64_t pattern = 0;
  auto [stop, conversion_error] = std::from_chars(start, cursor.end(), value);
  bool fits = conversion_error == std::errc();
  pattern = static_cast<uint64_t>(value);
  if (conversion_error == std::errc::result_out_of_range && type == ElementType::kU64) {
    fits = std::from_chars(start, cursor.end(), pattern).ec == std::errc();
  } else if (conversion_error == std::errc::invalid_argument) {
    return cursor.FailExpected("an integer");
  } else if (IsSigned(type)) {
    int64_t least = bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
    fits = fits && value >= least && value <= -(least + 1);
  } else if (bits < 64) {
    fits = fits && value >= 0 && pattern < (uint64_t{1} << bits);
  }
  if (!fits) {
    std::string text(start, std::min<size_t>(static_cast<size_t>(stop - start), 40));
    return BadLiteral(cursor, text + " is not a number of type " + std::string(HloName(type)),
                      start);
  }
  if (stop < cursor.end() && (*stop == '.' || HloCursor::IsWordChar(*stop)))
    return cursor.FailExpected("an integer");
  if (bits < 64) pattern &= (uint64_t{1} << bits) - 1;
  std::memcpy(out, &pattern, static_cast<size_t>(BytesOf(type)));
  cursor.MoveTo(stop);
  return true;
}

uint64_t SignBit(const FloatFormat& format) {
  bool has_negative_nan = format.has_sign && format.nan != FloatFormat::Nan::kNegativeZero;
  return has_negative_nan ? uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
}

// nan, -nan, nan(0x400001): the last specifies the mantissa.
bool ReadNan(HloCursor& cursor, ElementType type, std::byte* out) {
  const char* start = cursor.at();
  const FloatFormat& format = FormatOf(type);
  bool negative = cursor.Try('-');
  cursor.Advance(3);
  uint64_t bits = EncodeFloat(type, std::nan(""));
  if (cursor.PeekRaw() == '(') {
    uint64_t payload = 0;
    if (!cursor.ExpectText("(0x")) return false;
    auto [stop, conversion_error] = std::from_chars(cursor.at(), cursor.end(), payload, 16);
    bool fits = payload != 0 && payload < (uint64_t{1} << format.mantissa_bits);
    if (conversion_error != std::errc() || !fits || format.nan != FloatFormat::Nan::kIeee)
      return BadLiteral(cursor, "a NaN that " + std::string(HloName(type)) + " does not have",
                        start);
    cursor.MoveTo(stop);
    if (!cursor.Expect(')')) return false;
    bits = (bits >> format.mantissa_bits << format.mantissa_bits) | payload;
  }
  if (negative) bits |= SignBit(format);
  std::memcpy(out, &bits, static_cast<size_t>(BytesOf(type)));
  return true;
}

bool ReadFloat(HloCursor& cursor, ElementType type, std::byte* out) {
  const char* start = cursor.at();
  std::string_view rest = cursor.rest();
  if (rest.starts_with("nan") || rest.starts_with("-nan")) return ReadNan(cursor, type, out);
  if (type == ElementType::kF32) {
    // The common case. Decimal text is rounded to float directly, not through double.
    float value = 0;
    auto [stop, conversion_error] = std::from_chars(start, cursor.end(), value);
    if (conversion_error == std::errc() && std::isfinite(value) &&
        (stop == cursor.end() || !HloCursor::IsWordChar(*stop))) {
      std::memcpy(out, &value, sizeof value);
      cursor.MoveTo(stop);
      return true;
    }
  }
  double value = 0;
  if (!cursor.Double(value)) return false;
  uint64_t bits = EncodeFloat(type, value);
  bool lost = std::isfinite(value) && !std::isfinite(DecodeFloat(type, bits));
  if (lost || HloCursor::IsWordChar(cursor.PeekRaw())) {
    std::string text(start, std::min<size_t>(static_cast<size_t>(cursor.at() - start), 40));
    return BadLiteral(cursor, text + " is not a number of type " + std::string(HloName(type)),
                      start);
  }
  std::memcpy(out, &bits, static_cast<size_t>(BytesOf(type)));
  return true;
}

bool ReadComplex(HloCursor& cursor, ElementType type, std::byte* out) {
  ElementType part = RealPartOf(type);
  if (!cursor.Try('(')) return ReadFloat(cursor, part, out);
  (void)cursor.Peek();
  if (!ReadFloat(cursor, part, out) || !cursor.Expect(',')) return false;
  (void)cursor.Peek();
  return ReadFloat(cursor, part, out + BytesOf(part)) && cursor.Expect(')');
}

bool ReadElement(HloCursor& cursor, ElementType type, std::byte* out) {
  switch (KindOf(type)) {
    case TypeKind::kBool: {
      bool value = false;
      if (!cursor.Bool(value)) return false;
      *out = std::byte{value};
      return true;
    }
    case TypeKind::kSigned:
    case TypeKind::kUnsigned:
      return ReadInteger(cursor, type, out);
    case TypeKind::kReal:
      return ReadFloat(cursor, type, out);
    case TypeKind::kComplex:
      return ReadComplex(cursor, type, out);
  }
  return false;
}

// ---- arrays

// These bytes do not occur in the text, so they have a separate limit.
bool FillElided(HloCursor& cursor, const Shape& shape, Literal& literal) {
  if (shape.ByteSize() > kMaxElidedBytes) {
    return cursor.Fail(ErrorCode::kTooLarge,
                       "constant({...}) of " + std::to_string(shape.ByteSize()) +
                           " bytes, the limit is " + std::to_string(kMaxElidedBytes),
                       cursor.at() - 3);
  }
  std::vector<std::byte> data(static_cast<size_t>(shape.ByteSize()));
  const int bits = InfoOf(shape.type()).bits;
  const auto mask = static_cast<std::byte>(bits < 8 ? (1 << bits) - 1 : 255);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::byte>((i / 4) >> (8 * (i % 4))) & mask;
  literal = Literal::Array(shape, Bytes::FromVector(std::move(data)));
  return true;
}

// Parses the nested braces of one array. counts_[d] is the number of elements or sub-arrays seen in
// the open brace at depth d+1.
class HloLiteralReader {
 public:
  HloLiteralReader(HloCursor& cursor, const Shape& shape)
      : cursor_(cursor),
        shape_(shape),
        rank_(static_cast<size_t>(shape.rank())),
        width_(static_cast<size_t>(BytesOf(shape.type()))),
        counts_(rank_, 0) {}

  bool Read(Literal& literal) {
    char first = cursor_.Peek();
    if (rank_ > 0 && first != '{' && first != '}' && first != '.') return Bare(literal);
    do {
      char c = cursor_.Peek();
      bool fine = c == '{'                             ? Open()
                  : c == '}'                           ? Close()
                  : c == '.' && cursor_.TryText("...") ? Elided(literal)
                                                       : Element();
      if (!fine) return false;
      if (is_done_) return true;
      if (depth_ > 0) (void)cursor_.Try(',');
    } while (depth_ > 0);
    data_.shrink_to_fit();
    if (shape_.ElementCount() * static_cast<int64_t>(width_) !=
        static_cast<int64_t>(data_.size())) {
      return BadLiteral(cursor_, "a value for " + ToString(shape_) + " is missing");
    }
    literal = Literal::Array(shape_, Bytes::FromVector(std::move(data_)));
    return true;
  }

 private:
  bool Count() {
    if (depth_ == 0) return true;
    if (++counts_[depth_ - 1] <= shape_.dim(depth_ - 1)) return true;
    return BadLiteral(cursor_, "more than " + std::to_string(shape_.dim(depth_ - 1)) +
                                   " elements along dimension " + std::to_string(depth_ - 1));
  }

  bool Open() {
    if (depth_ == rank_)
      return BadLiteral(cursor_,
                        "braces nested deeper than the " + std::to_string(rank_) + " dimensions");
    if (!Count()) return false;
    cursor_.Advance(1);
    counts_[depth_++] = 0;
    return true;
  }

  bool Close() {
    if (depth_ == 0) return BadLiteral(cursor_, "a brace that closes nothing");
    if (counts_[depth_ - 1] != shape_.dim(depth_ - 1)) {
      return BadLiteral(cursor_, std::to_string(counts_[depth_ - 1]) +
                                     " elements along dimension " + std::to_string(depth_ - 1) +
                                     " of " + ToString(shape_));
    }
    cursor_.Advance(1);
    --depth_;
    return true;
  }

  bool Element() {
    if (depth_ != rank_) {
      return BadLiteral(cursor_, "an element under " + std::to_string(depth_) + " braces, " +
                                     ToString(shape_) + " has " + std::to_string(rank_) +
                                     " dimensions");
    }
    if (!Count()) return false;
    data_.resize(data_.size() + width_);
    return ReadElement(cursor_, shape_.type(), data_.data() + data_.size() - width_);
  }

  // f32[3] constant(7): XLA's parser sets the first element and leaves the rest 0.
  bool Bare(Literal& literal) {
    std::vector<std::byte> element(width_);
    const char* start = cursor_.at();
    if (!ReadElement(cursor_, shape_.type(), element.data())) return false;
    bool zero =
        std::all_of(element.begin(), element.end(), [](std::byte b) { return b == std::byte{0}; });
    if (zero || shape_.ElementCount() == 1) {
      literal = Literal::Splat(shape_, Bytes::FromVector(std::move(element)));
      return true;
    }
    if (shape_.ElementCount() == 0)
      return BadLiteral(cursor_, "an element for " + ToString(shape_), start);
    if (shape_.ByteSize() > kMaxElidedBytes) {
      return cursor_.Fail(ErrorCode::kTooLarge,
                          "one element for " + std::to_string(shape_.ByteSize()) +
                              " bytes, the limit is " + std::to_string(kMaxElidedBytes),
                          start);
    }
    element.resize(static_cast<size_t>(shape_.ByteSize()));
    literal = Literal::Array(shape_, Bytes::FromVector(std::move(element)));
    return true;
  }

  // {...}, or {7, ...}
  bool Elided(Literal& literal) {
    is_done_ = true;
    if (data_.empty() && depth_ <= 1) {
      return FillElided(cursor_, shape_, literal) && (depth_ == 0 || cursor_.Expect('}'));
    }
    if (data_.size() != width_) return BadLiteral(cursor_, "'...' after several elements");
    literal = Literal::Splat(shape_, Bytes::FromVector(std::move(data_)));
    for (; depth_ > 0; --depth_)
      if (!cursor_.Expect('}')) return false;
    return true;
  }

  HloCursor& cursor_;
  const Shape& shape_;
  const size_t rank_, width_;
  size_t depth_ = 0;
  Dims counts_;
  std::vector<std::byte> data_;
  bool is_done_ = false;
};

// ---- writing

void AppendNan(std::string& out, ElementType type, uint64_t bits) {
  const FloatFormat& format = FormatOf(type);
  uint64_t plain = EncodeFloat(type, std::nan("")), sign = SignBit(format);
  if ((bits & sign) != 0) out += '-';
  out += "nan";
  if ((bits & ~sign) == plain || format.nan != FloatFormat::Nan::kIeee) return;
  char buffer[24];
  uint64_t payload = bits & ((uint64_t{1} << format.mantissa_bits) - 1);
  out += "(0x";
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, payload, 16).ptr);
  out += ')';
}

void AppendNumber(std::string& out, auto value) {
  char buffer[48];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void AppendElement(std::string& out, const Literal& literal, int64_t i) {
  ElementType type = literal.type();
  switch (KindOf(type)) {
    case TypeKind::kBool:
      out += literal.BitsAt(i) != 0 ? "true" : "false";
      return;
    case TypeKind::kSigned:
      AppendNumber(out, literal.IntAt(i));
      return;
    case TypeKind::kUnsigned:
      AppendNumber(out, literal.BitsAt(i));
      return;
    case TypeKind::kReal:
      AppendHloFloat(out, type, literal.BitsAt(i));
      return;
    case TypeKind::kComplex:
      break;
  }
  ElementType part = RealPartOf(type);
  size_t width = static_cast<size_t>(BytesOf(part));
  size_t at = literal.is_splat() ? 0 : static_cast<size_t>(i) * 2 * width;
  uint64_t real = 0, imag = 0;
  std::memcpy(&real, literal.data().data() + at, width);
  std::memcpy(&imag, literal.data().data() + at + width, width);
  out += '(';
  AppendHloFloat(out, part, real);
  out += ", ";
  AppendHloFloat(out, part, imag);
  out += ')';
}

void AppendArray(std::string& out, const Literal& literal) {
  const Shape& shape = literal.shape();
  const int64_t count = shape.ElementCount();
  const size_t rank = static_cast<size_t>(shape.rank());
  if (literal.is_splat() && count > kLongSplat) {
    out.append(rank, '{');
    AppendElement(out, literal, 0);
    out += ", ...";
    out.append(rank, '}');
    return;
  }
  // Empty arrays such as {{}, {}} print their braces, but a dimension of 2^50 next to one of 0 must
  // not print 2^50 of them.
  if (count == 0) {
    bool few = true;
    for (int64_t d : shape.dims()) few = few && d <= kLongSplat;
    if (!few) {
      out += "{}";
      return;
    }
  }
  // inner[d]: number of elements under one brace of depth d.
  Dims index(rank, 0);
  size_t depth = 0;
  int64_t next = 0;
  for (;;) {
    while (depth < rank && shape.dim(depth) > 0) {
      out += '{';
      index[depth++] = 0;
    }
    if (depth < rank) {
      out += "{}";
    } else {
      AppendElement(out, literal, next++);
    }
    while (depth > 0 && ++index[depth - 1] == shape.dim(depth - 1)) {
      out += '}';
      --depth;
    }
    if (depth == 0) return;
    out += ", ";
  }
}

}  // namespace

bool ReadHloLiteral(HloCursor& cursor, const Shape& shape, Literal& literal) {
  HloCursor::Depth depth(cursor);
  if (!depth.ok) return false;
  if (shape.IsTuple()) {
    if (!cursor.Expect('(')) return false;
    std::vector<Literal> elements(shape.elements().size());
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i > 0 && !cursor.Expect(',')) return false;
      if (!ReadHloLiteral(cursor, shape.elements()[i], elements[i])) return false;
    }
    literal = Literal::Tuple(std::move(elements));
    return cursor.Expect(')');
  }
  if (!shape.IsArray()) return BadLiteral(cursor, ToString(shape) + " has no values");
  if (shape.HasDynamicDims())
    return BadLiteral(cursor, "the shape " + ToString(shape) + " is not static");
  // {} denotes any array without elements, whatever its other dimensions.
  if (shape.ElementCount() == 0 && cursor.Peek() == '{') {
    const char* start = cursor.at();
    cursor.Advance(1);
    if (cursor.Try('}')) {
      literal = Literal::Array(shape, {});
      return true;
    }
    cursor.MoveTo(start);
  }
  return HloLiteralReader(cursor, shape).Read(literal);
}

void AppendHloFloat(std::string& out, ElementType type, uint64_t bits) {
  double value = DecodeFloat(type, bits);
  if (std::isnan(value)) {
    AppendNan(out, type, bits);
  } else if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
  } else if (type == ElementType::kF64) {
    AppendNumber(out, value);
  } else {
    // Every number of a narrow type is a float, and its shortest text as a float rounds back to it.
    AppendNumber(out, static_cast<float>(value));
  }
}

void AppendHloLiteral(std::string& out, const Literal& literal) {
  if (!literal.shape().IsTuple()) {
    AppendArray(out, literal);
    return;
  }
  out += '(';
  for (size_t i = 0; i < literal.elements().size(); ++i) {
    if (i > 0) out += ", ";
    AppendHloLiteral(out, literal.elements()[i]);
  }
  out += ')';
}

}  // namespace tokamak
