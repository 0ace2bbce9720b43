// Constants: dense<...>, dense<"0x...">, dense_resource<...>. The type follows the elements, so the
// elements are located first and parsed afterwards.

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "support/limits.h"
#include "text/mlir_text.h"

namespace tokamak {
namespace {

int HexDigitOfDense(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Parses elements of one type in sequence into bytes.
class DenseElementsReader {
 public:
  DenseElementsReader(std::string_view text, TextPos pos, ElementType type)
      : cursor_(text, pos.line), pos_(pos), type_(type) {
    part_ = RealPartOf(type);
    width_ = static_cast<size_t>(BytesOf(part_));
    is_real_ = IsReal(part_);
    is_signed_ = IsSigned(type);
    bits_ = InfoOf(part_).bits;
  }

  bool Nested(const Dims& dims, size_t depth) {
    if (depth == dims.size()) return Element();
    if (!cursor_.Eat('['))
      return FailWith("a list of " + std::to_string(dims[depth]) + " elements expected");
    for (int64_t i = 0; i < dims[depth]; ++i) {
      if (i > 0 && !cursor_.Eat(','))
        return FailWith("a list has " + std::to_string(i) + " elements, its dimension is " +
                        std::to_string(dims[depth]));
      if (!Nested(dims, depth + 1)) return false;
    }
    if (cursor_.Peek() == ',')
      return FailWith("a list has more elements than its dimension, " +
                      std::to_string(dims[depth]));
    return cursor_.Eat(']') || FailWith("']' expected");
  }

  bool Element() {
    if (!IsComplex(type_)) return is_real_ ? Real() : Whole();
    if (!cursor_.Eat('(')) return FailWith("'(' of a complex number expected");
    if (!Real() || !cursor_.Eat(',') || !Real()) return FailWith("a complex number is malformed");
    return cursor_.Eat(')') || FailWith("')' of a complex number expected");
  }

  bool AtEnd() { return cursor_.Peek() == '\0' || FailWith("something follows the elements"); }
  bool StartsList() { return cursor_.Peek() == '['; }

  std::vector<std::byte> Take() { return std::move(bytes_); }
  const std::string& fault() const { return fault_; }
  TextPos error_pos() const { return error_pos_; }

 private:
  bool FailWith(std::string message) {
    if (!fault_.empty()) return false;
    fault_ = std::move(message);
    error_pos_ = cursor_.Pos();
    // The cursor starts in the middle of a line.
    if (error_pos_.line == pos_.line) error_pos_.column += pos_.column - 1;
    return false;
  }

  void Push(uint64_t bits) {
    size_t size = bytes_.size();
    bytes_.resize(size + width_);
    std::memcpy(bytes_.data() + size, &bits, width_);
  }

  bool Hex(uint64_t& bits) {
    const char* begin = cursor_.at() + 2;
    auto read = std::from_chars(begin, cursor_.end(), bits, 16);
    if (read.ec != std::errc{}) return FailWith("a hexadecimal number is malformed");
    cursor_.Advance(static_cast<size_t>(read.ptr - cursor_.at()));
    if (bits_ < 64 && bits >> bits_ != 0)
      return FailWith("a hexadecimal number does not fit into " + std::string(InfoOf(part_).mlir));
    return true;
  }
  bool StartsHex() { return cursor_.Here() == '0' && cursor_.After(1) == 'x'; }

  bool Real() {
    char c = cursor_.Peek();
    uint64_t bits = 0;
    if (StartsHex()) {
      if (!Hex(bits)) return false;
      Push(bits);
      return true;
    }
    const char* begin = cursor_.at();
    double value = 0;
    if (c == '+') return FailWith("a number expected");
    auto read = std::from_chars(begin, cursor_.end(), value);
    if (read.ec == std::errc::invalid_argument) return FailWith("a number expected");
    size_t size = static_cast<size_t>(read.ptr - begin);
    if (read.ec != std::errc{}) value = std::strtod(std::string(begin, size).c_str(), nullptr);
    cursor_.Advance(size);
    if (part_ == ElementType::kF32) {
      float narrow = static_cast<float>(value);
      uint32_t word;
      std::memcpy(&word, &narrow, sizeof word);
      bits = word;
    } else if (part_ == ElementType::kF64) {
      std::memcpy(&bits, &value, sizeof bits);
    } else {
      bits = EncodeFloat(part_, value);
    }
    Push(bits);
    return true;
  }

  bool Whole() {
    char c = cursor_.Peek();
    if (type_ == ElementType::kPred || c == 't' || c == 'f') {
      bool is_true = cursor_.EatWord("true");
      if (is_true || cursor_.EatWord("false")) {
        if (type_ != ElementType::kPred) return FailWith("true and false are of type i1");
        Push(is_true ? 1 : 0);
        return true;
      }
    }
    uint64_t bits = 0;
    if (StartsHex()) {
      if (!Hex(bits)) return false;
      Push(bits);
      return true;
    }
    const char* begin = cursor_.at();
    std::from_chars_result read{};
    bool negative = c == '-';
    if (negative) {
      int64_t value = 0;
      read = std::from_chars(begin, cursor_.end(), value);
      bits = static_cast<uint64_t>(value);
    } else {
      read = std::from_chars(begin, cursor_.end(), bits);
    }
    if (read.ec == std::errc::invalid_argument) return FailWith("an integer expected");
    if (read.ec != std::errc{} || !Fits(bits, negative))
      return FailWith("an integer does not fit into " + std::string(InfoOf(part_).mlir));
    cursor_.Advance(static_cast<size_t>(read.ptr - begin));
    if (bits_ < 64) bits &= (uint64_t{1} << bits_) - 1;
    Push(bits);
    return true;
  }

  // MLIR allows a signless integer to be written as unsigned.
  bool Fits(uint64_t bits, bool negative) const {
    if (bits_ == 64) return !negative || is_signed_ || bits == 0;
    if (!negative) return bits >> bits_ == 0;
    int64_t value = static_cast<int64_t>(bits);
    return value == 0 ||
           ((is_signed_ || type_ == ElementType::kPred) && value >= -(int64_t{1} << (bits_ - 1)));
  }

  MlirCursor cursor_;
  TextPos pos_;
  ElementType type_, part_{};
  size_t width_ = 0;
  bool is_real_ = false, is_signed_ = false;
  int bits_ = 0;
  std::vector<std::byte> bytes_;
  std::string fault_;
  TextPos error_pos_;
};

bool DecodeHex(std::string_view digits, std::vector<std::byte>& bytes) {
  if (!digits.starts_with("0x") || digits.size() % 2 != 0) return false;
  digits.remove_prefix(2);
  bytes.resize(digits.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    int high = HexDigitOfDense(digits[2 * i]), low = HexDigitOfDense(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return true;
}

// Raw bytes as MLIR stores them: i1 has one bit (or one byte) per element, all other types whole
// bytes; a single element is a splat where splats are allowed. Returns false if sizes disagree.
bool FromRawBytes(const Shape& shape, std::vector<std::byte> raw, bool may_splat,
                  Literal& literal) {
  size_t count = static_cast<size_t>(shape.ElementCount());
  size_t width = static_cast<size_t>(BytesOf(shape.type()));
  if (shape.type() == ElementType::kPred && count > 0) {
    std::vector<std::byte> bytes;
    if (raw.size() == (count + 7) / 8 && raw.size() != count) {
      bool is_splat = may_splat && raw.size() == 1 && raw[0] == std::byte{0xff};
      for (size_t i = 0; i < count; ++i)
        bytes.push_back(is_splat ? std::byte{1} : raw[i / 8] >> (i % 8) & std::byte{1});
    } else if (raw.size() == count || (may_splat && raw.size() == 1)) {
      for (std::byte b : raw) bytes.push_back(b != std::byte{0} ? std::byte{1} : std::byte{0});
    } else {
      return false;
    }
    literal = Literal::Array(shape, Bytes::FromVector(std::move(bytes)));
    return true;
  }
  bool is_splat = may_splat && raw.size() == width && count > 0;
  if (raw.size() != count * width && !is_splat) return false;
  int bits = InfoOf(shape.type()).bits;
  if (bits < 8)
    for (std::byte& b : raw) b &= static_cast<std::byte>((1 << bits) - 1);
  literal = Literal::Array(shape, Bytes::FromVector(std::move(raw)));
  return true;
}

}  // namespace

// <elements> : type
bool MlirTextReader::ParseDense(Literal& literal) {
  if (!Expect('<')) return false;
  cursor_.Peek();
  TextPos pos = cursor_.Pos();
  const char* begin = cursor_.at();
  const char* from = begin;
  if (cursor_.Here() == '"') {
    const void* quote = std::memchr(begin + 1, '"', cursor_.left() - 1);
    if (quote == nullptr) return Fail(ErrorCode::kMlirToken, "a string is not closed");
    from = static_cast<const char*>(quote);
  }
  const void* close = std::memchr(from, '>', static_cast<size_t>(cursor_.end() - from));
  if (close == nullptr) return Fail(ErrorCode::kMlirSyntax, "dense<: '>' is missing");
  std::string_view text(begin, static_cast<size_t>(static_cast<const char*>(close) - begin));
  cursor_.SkipTo(static_cast<const char*>(close));
  if (!Expect('>') || !Expect(':')) return false;
  TextPos type_pos = cursor_.Pos();
  Shape shape;
  if (!ParseType(shape)) return false;
  if (!shape.IsStaticArray())
    return FailAt(type_pos, ErrorCode::kMlirConstant,
                  "a constant has the type " + ToString(shape) + ", which is no static array");
  return ParseElements(shape, text, pos, literal);
}

bool MlirTextReader::ParseElements(const Shape& shape, std::string_view text, TextPos pos,
                                   Literal& literal) {
  if (text.starts_with('"')) {
    size_t end = text.find('"', 1);
    std::vector<std::byte> raw;
    if (!DecodeHex(text.substr(1, end - 1), raw))
      return FailAt(pos, ErrorCode::kMlirConstant, "dense: the string is no list of hex digits");
    size_t size = raw.size();
    if (!FromRawBytes(shape, std::move(raw), /*may_splat=*/true, literal))
      return FailAt(pos, ErrorCode::kMlirConstant,
                    "dense: " + std::to_string(size) + " bytes given for " + ToString(shape));
    return true;
  }
  DenseElementsReader reader(text, pos, shape.type());
  int64_t count = shape.ElementCount();
  bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  bool ok = true;
  bool splat = !empty && !reader.StartsList();
  if (empty) {
    if (count != 0)
      return FailAt(pos, ErrorCode::kMlirConstant,
                    "dense: no elements given for " + ToString(shape));
  } else if (splat) {
    ok = reader.Element();
  } else if (count > static_cast<int64_t>(text.size())) {
    return FailAt(pos, ErrorCode::kMlirConstant,
                  "dense: fewer elements than " + ToString(shape) + " has");
  } else {
    ok = reader.Nested(shape.dims(), 0);
  }
  ok = ok && (empty || reader.AtEnd());
  if (!ok) return FailAt(reader.error_pos(), ErrorCode::kMlirConstant, "dense: " + reader.fault());
  Bytes bytes = Bytes::FromVector(reader.Take());
  literal =
      splat ? Literal::Splat(shape, std::move(bytes)) : Literal::Array(shape, std::move(bytes));
  return true;
}

// <name> : type, with the bytes in the block {-# ... #-} at the end.
bool MlirTextReader::ParseDenseResource(Literal& literal) {
  if (!Expect('<')) return false;
  TextPos pos = cursor_.Pos();
  std::string name;
  if (cursor_.Peek() == '"') {
    if (!ParseString(name)) return false;
  } else {
    name = cursor_.Name();
  }
  if (!Expect('>') || !Expect(':')) return false;
  Shape shape;
  if (!ParseType(shape)) return false;
  auto it = resources_.find(name);
  if (it == resources_.end())
    return FailAt(pos, ErrorCode::kMlirResource, "dense_resource: no resource is named " + name);
  std::vector<std::byte> raw;
  // The first four bytes are the alignment.
  if (!shape.IsStaticArray() || !DecodeHex(it->second, raw) || raw.size() < 4)
    return FailAt(pos, ErrorCode::kMlirResource, "dense_resource: " + name + " is malformed");
  raw.erase(raw.begin(), raw.begin() + 4);
  size_t size = raw.size();
  // A resource is a plain array in MLIR: a single element is not a splat.
  if (!FromRawBytes(shape, std::move(raw), /*may_splat=*/false, literal))
    return FailAt(pos, ErrorCode::kMlirResource,
                  "dense_resource: " + name + " has " + std::to_string(size) + " bytes for " +
                      ToString(shape));
  return true;
}

}  // namespace tokamak
