#include "text/hlo_attr_value.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "text/hlo_cursor.h"
#include "text/hlo_literal.h"
#include "text/hlo_shape.h"
#include "text/number_type.h"

namespace tokamak {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// ---- reading

class HloAttrValueReader {
 public:
  explicit HloAttrValueReader(HloCursor& cursor) : cursor_(cursor) {}

  bool Dict(AttrDict& dict) {
    HloCursor::Depth depth(cursor_);
    if (!depth.ok || !cursor_.Expect('{')) return false;
    return Entries(dict, '}');
  }

 private:
  // name = value, name, ... up to `close`.
  bool Entries(AttrDict& dict, char close) {
    while (!cursor_.Try(close)) {
      std::string name;
      if (cursor_.Peek() == '"') {
        if (!String(name)) return false;
      } else {
        name = std::string(cursor_.Word());
      }
      if (name.empty()) return cursor_.FailExpected("the name of an attribute");
      AttrValue value;
      if (cursor_.Try('=') && !Value(value)) return false;
      Set(dict, std::move(name), std::move(value));
      if (cursor_.Peek() != close && !cursor_.Expect(',')) return false;
    }
    return true;
  }

  bool Value(AttrValue& value) {
    HloCursor::Depth depth(cursor_);
    if (!depth.ok) return false;
    char c = cursor_.Peek();
    if (c == '"') {
      std::string text;
      if (!String(text)) return false;
      value.value = std::move(text);
      return true;
    }
    if (c == '{') {
      AttrDict dict;
      if (!Dict(dict)) return false;
      value.value = std::move(dict);
      return true;
    }
    if (c == '[') return List(value);
    if (c == '@') return Symbol(value);
    if (c == '#') return Dialect(value);
    if (cursor_.TryText("!hlo<")) {
      Shape shape;
      if (!shapes_.Read(cursor_, shape) || !cursor_.Expect('>')) return false;
      value.value = std::move(shape);
      return true;
    }
    if (c == '-' || (c >= '0' && c <= '9')) return Number(value);
    return Word(value);
  }

  bool List(AttrValue& value) {
    AttrList list;
    if (!cursor_.Expect('[')) return false;
    while (!cursor_.Try(']')) {
      if (!Value(list.emplace_back())) return false;
      if (cursor_.Peek() != ']' && !cursor_.Expect(',')) return false;
    }
    value.value = std::move(list);
    return true;
  }

  bool Symbol(AttrValue& value) {
    SymbolAttr symbol;
    cursor_.Advance(1);
    if (cursor_.PeekRaw() == '"') {
      if (!String(symbol.name)) return false;
    } else {
      symbol.name = std::string(cursor_.Word());
    }
    value.value = std::move(symbol);
    return true;
  }

  // #stablehlo<precision HIGH>, #type<word> and #stablehlo.dot<field = value>
  bool Dialect(AttrValue& value) {
    cursor_.Advance(1);
    std::string kind(cursor_.Word());
    if (!cursor_.Expect('<')) return false;
    if (kind.find('.') == std::string::npos) {
      EnumAttr choice;
      std::string_view word = cursor_.Word();
      if (cursor_.Peek() == '>') {
        choice = {std::move(kind), std::string(word)};
      } else {
        choice.kind = word.empty() ? std::move(kind) : kind + "." + std::string(word);
        if (cursor_.Peek() == '"') {
          if (!String(choice.value)) return false;
        } else {
          choice.value = std::string(cursor_.Word());
        }
      }
      value.value = std::move(choice);
      return cursor_.Expect('>');
    }
    RecordAttr record;
    record.kind = std::move(kind);
    if (!Entries(record.fields, '>')) return false;
    value.value = std::move(record);
    return true;
  }

  bool Number(AttrValue& value) {
    const char* start = cursor_.at();
    double number = 0;
    if (!cursor_.Double(number)) return false;
    std::string_view text(start, static_cast<size_t>(cursor_.at() - start));
    std::string type;
    if (cursor_.Try(':')) type = std::string(cursor_.Word());
    bool is_hex = text.find('x') != std::string_view::npos;
    bool is_real = !is_hex && text.find_first_of(".eE") != std::string_view::npos;
    if (type.empty()) type = is_real ? "f64" : "i64";
    std::optional<ElementType> element = ElementTypeFromMlir(type);
    if (element && IsReal(*element)) {
      if (is_hex) {  // the bits
        uint64_t bits = 0;
        std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
        number = DecodeFloat(*element, bits);
      }
      value.value = FloatAttr{number, *element};
      return true;
    }
    IntAttr integer{0, type};
    auto [stop, conversion_error] =
        std::from_chars(text.data(), text.data() + text.size(), integer.value);
    if (conversion_error == std::errc::result_out_of_range) {
      uint64_t large = 0;
      stop = std::from_chars(text.data(), text.data() + text.size(), large).ptr;
      integer.value = static_cast<int64_t>(large);
    }
    if (is_real || stop != text.data() + text.size() || !IsIntegerTypeName(type))
      return cursor_.FailExpected("a number and its type");
    value.value = std::move(integer);
    return true;
  }

  bool Word(AttrValue& value) {
    if (cursor_.TryText("dense<")) return Dense(value);
    if (cursor_.TryText("array<")) return Array(value);
    if (cursor_.TryText("tensor<")) {
      Shape shape;
      if (!TensorType(shape)) return false;
      value.value = std::move(shape);
      return true;
    }
    if (cursor_.TryText("hlo<")) {
      Shape shape;
      Literal literal;
      if (!shapes_.Read(cursor_, shape) || !ReadHloLiteral(cursor_, shape, literal)) return false;
      value.value = std::move(literal);
      return cursor_.Expect('>');
    }
    std::string_view word = cursor_.Word();
    if (word == "true" || word == "false") {
      value.value = word == "true";
    } else if (word == "unit") {
      value.value = UnitAttr{};
    } else if (std::optional<ElementType> type = ElementTypeFromMlir(word)) {
      value.value = Shape::Scalar(*type);
    } else {
      return cursor_.FailExpected("an attribute");
    }
    return true;
  }

  // After "tensor<": 2x?xf32>
  bool TensorType(Shape& shape) {
    Dims dims;
    for (;;) {
      if (cursor_.TryText("?x")) {
        dims.push_back(kDynamic);
        continue;
      }
      char c = cursor_.Peek();
      if (c < '0' || c > '9') break;
      int64_t size = 0;
      if (!cursor_.Int(size) || !cursor_.ExpectText("x")) return false;
      dims.push_back(size);
    }
    std::string_view rest = cursor_.rest();
    size_t close = rest.find('>');
    if (rest.starts_with("complex<")) close = rest.find('>', close + 1);
    if (close == std::string_view::npos) return cursor_.FailExpected("'>'");
    if (rest.starts_with("complex<")) close = rest.find('>') + 1;
    std::optional<ElementType> type = ElementTypeFromMlir(rest.substr(0, close));
    if (!type || !CheckedElementCount(dims) || dims.size() > static_cast<size_t>(kMaxRank))
      return cursor_.FailExpected("a tensor type");
    cursor_.Advance(close);
    shape = Shape::Array(*type, std::move(dims));
    return cursor_.Expect('>');
  }

  // After "dense<": the elements, then "> : tensor<...>". The type comes last, so the elements are
  // skipped first.
  bool Dense(AttrValue& value) {
    std::string elements;
    int depth = 0;
    for (; !cursor_.AtEnd(); cursor_.Advance(1)) {
      char c = cursor_.PeekRaw();
      if (c == '>' && depth == 0) break;
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      elements += c == '[' ? '{' : c == ']' ? '}' : c;
    }
    Shape shape;
    if (!cursor_.Expect('>') || !cursor_.Expect(':') || !cursor_.ExpectText("tensor<") ||
        !TensorType(shape))
      return false;
    if (shape.HasDynamicDims()) return cursor_.FailExpected("a static tensor type");
    Literal literal;
    bool is_splat = !elements.empty() && elements[0] != '{' && shape.rank() > 0;
    if (elements.starts_with("\"0x")) {
      if (!HexElements(elements, shape, literal)) return cursor_.FailExpected("hexadecimal data");
    } else {
      HloCursor inner(elements);
      Shape of_text = is_splat ? shape.WithDims({}) : shape;
      bool is_empty = shape.ElementCount() == 0;
      if (!is_empty && (!ReadHloLiteral(inner, of_text, literal) || !inner.AtEnd()))
        return cursor_.FailExpected("elements of the tensor");
      if (is_empty) literal = Literal::Array(shape, {});
      if (is_splat && !is_empty) literal = Literal::Splat(shape, literal.data());
    }
    value.value = std::move(literal);
    return true;
  }

  // "0x0102...": the bytes of all elements, or of one (a splat).
  static bool HexElements(std::string_view text, const Shape& shape, Literal& literal) {
    text.remove_prefix(3);
    if (!text.ends_with('"')) return false;
    text.remove_suffix(1);
    std::vector<std::byte> data(text.size() / 2);
    for (size_t i = 0; i < data.size(); ++i) {
      int high = HexDigit(text[2 * i]), low = HexDigit(text[2 * i + 1]);
      if (high < 0 || low < 0) return false;
      data[i] = static_cast<std::byte>(high * 16 + low);
    }
    const auto width = static_cast<int64_t>(BytesOf(shape.type()));
    const auto size = static_cast<int64_t>(data.size());
    if (InfoOf(shape.type()).bits < 8) return false;  // packed elements never occur in this syntax
    if (size != width && (shape.ByteSize() != size)) return false;
    literal = size == width ? Literal::Splat(shape, Bytes::FromVector(std::move(data)))
                            : Literal::Array(shape, Bytes::FromVector(std::move(data)));
    return true;
  }

  // After "array<": i64: 1, 2>
  bool Array(AttrValue& value) {
    DenseArrayAttr array;
    array.type = std::string(cursor_.Word());
    std::optional<ElementType> type = ElementTypeFromMlir(array.type);
    bool is_real = type && IsReal(*type);
    if (!is_real && !IsIntegerTypeName(array.type))
      return cursor_.FailExpected("the type of an array");
    if (cursor_.Try(':')) {
      while (cursor_.Peek() != '>') {
        double real = 0;
        int64_t integer = 0;
        bool flag = false;
        if (is_real              ? !cursor_.Double(real)
            : array.type == "i1" ? !cursor_.Bool(flag)
                                 : !cursor_.Int(integer))
          return false;
        if (is_real) {
          array.floats.push_back(real);
        } else {
          array.ints.push_back(array.type == "i1" ? int64_t{flag} : integer);
        }
        if (cursor_.Peek() != '>' && !cursor_.Expect(',')) return false;
      }
    }
    value.value = std::move(array);
    return cursor_.Expect('>');
  }

  // MLIR's escapes: \n \t \\ \" and two hexadecimal digits.
  bool String(std::string& text) {
    if (!cursor_.Expect('"')) return false;
    for (char c = cursor_.PeekRaw(); c != '"'; c = cursor_.PeekRaw()) {
      if (cursor_.at() >= cursor_.end()) return cursor_.FailExpected("'\"'");
      cursor_.Advance(1);
      if (c != '\\') {
        text += c;
        continue;
      }
      char next = cursor_.PeekRaw(), after = cursor_.PeekRaw(1);
      if (HexDigit(next) >= 0 && HexDigit(after) >= 0) {
        text += static_cast<char>(HexDigit(next) * 16 + HexDigit(after));
        cursor_.Advance(2);
        continue;
      }
      text += next == 'n' ? '\n' : next == 't' ? '\t' : next;
      cursor_.Advance(1);
    }
    cursor_.Advance(1);
    return true;
  }

  HloCursor& cursor_;
  HloShapeReader shapes_;
};

// ---- writing

void AppendMlirString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  out += '"';
  for (char c : text) {
    auto code = static_cast<unsigned char>(c);
    if (code < 32 || code >= 127 || c == '"' || c == '\\') {
      out += '\\';
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendName(std::string& out, std::string_view name) {
  bool is_word = !name.empty();
  for (char c : name) is_word = is_word && HloCursor::IsWordChar(c);
  if (is_word) {
    out += name;
  } else {
    AppendMlirString(out, name);
  }
}

// Prints a real number that MLIR parses as one: with a point or exponent, or as bits.
void AppendReal(std::string& out, double value, ElementType type) {
  if (!std::isfinite(value) ||
      EncodeFloat(type, value) != EncodeFloat(type, RoundToType(type, value))) {
    char buffer[24];
    out += "0x";
    out.append(buffer, std::to_chars(buffer, buffer + 24, EncodeFloat(type, value), 16).ptr);
    return;
  }
  char buffer[48];
  char* stop = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string_view text(buffer, static_cast<size_t>(stop - buffer));
  size_t exponent = text.find('e');
  bool has_point = text.find('.') != std::string_view::npos;
  if (has_point) {
    out += text;
  } else {
    out.append(text.substr(0, exponent)).append(".0");
    if (exponent != std::string_view::npos) out += text.substr(exponent);
  }
}

bool IsPlainTensor(const Shape& shape) {
  return shape.IsArray() && shape.layout() == nullptr && shape.quant() == nullptr &&
         shape.bounds().empty();
}

void AppendTensorType(std::string& out, const Shape& shape) {
  out += "tensor<";
  for (int64_t d : shape.dims()) {
    out += d == kDynamic ? "?" : std::to_string(d);
    out += 'x';
  }
  out.append(InfoOf(shape.type()).mlir) += '>';
}

void AppendLiteralAttr(std::string& out, const Literal& literal) {
  bool has_mlir_text = IsPlainTensor(literal.shape()) &&
                       (IsInteger(literal.type()) || literal.type() == ElementType::kPred);
  if (!has_mlir_text) {
    out += "hlo<";
    AppendShape(out, literal.shape());
    out += ' ';
    AppendHloLiteral(out, literal);
    out += '>';
    return;
  }
  out += "dense<";
  std::string elements;
  if (literal.is_splat()) {
    int width = BytesOf(literal.type());
    Literal one = Literal::Array(literal.shape().WithDims({}),
                                 literal.data().Window(0, static_cast<size_t>(width)));
    AppendHloLiteral(elements, one);
  } else if (literal.shape().ElementCount() > 0) {
    AppendHloLiteral(elements, literal);
  }
  for (char c : elements) out += c == '{' ? '[' : c == '}' ? ']' : c;
  out += "> : ";
  AppendTensorType(out, literal.shape());
}

void AppendEntries(std::string& out, const AttrDict& dict) {
  for (size_t i = 0; i < dict.size(); ++i) {
    if (i > 0) out += ", ";
    AppendName(out, dict[i].name);
    if (dict[i].value.As<UnitAttr>() != nullptr) continue;
    out += " = ";
    AppendAttrValue(out, dict[i].value);
  }
}

struct ValueWriter {
  std::string& out;

  void operator()(const UnitAttr&) { out += "unit"; }
  void operator()(bool value) { out += value ? "true" : "false"; }
  void operator()(const IntAttr& value) { out += std::to_string(value.value) + " : " + value.type; }
  void operator()(const FloatAttr& value) {
    AppendReal(out, value.value, value.type);
    out.append(" : ").append(InfoOf(value.type).mlir);
  }
  void operator()(const std::string& value) { AppendMlirString(out, value); }
  void operator()(const SymbolAttr& value) {
    out += '@';
    AppendMlirString(out, value.name);
  }
  void operator()(const Shape& value) {
    if (IsPlainTensor(value)) {
      AppendTensorType(out, value);
      return;
    }
    out += "!hlo<";
    AppendShape(out, value);
    out += '>';
  }
  void operator()(const Literal& value) { AppendLiteralAttr(out, value); }
  void operator()(const AttrList& value) {
    out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      AppendAttrValue(out, value[i]);
    }
    out += ']';
  }
  void operator()(const AttrDict& value) { AppendAttrDict(out, value); }
  void operator()(const DenseArrayAttr& value) {
    out += "array<" + value.type;
    std::string_view separator = ": ";
    auto next = [&] {
      out += separator;
      separator = ", ";
    };
    for (int64_t v : value.ints) {
      next();
      out += value.type == "i1" ? (v != 0 ? "true" : "false") : std::to_string(v);
    }
    for (double v : value.floats) {
      next();
      char buffer[48];
      out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
    }
    out += '>';
  }
  void operator()(const EnumAttr& value) {
    size_t dot = value.kind.find('.');
    out += "#" + value.kind.substr(0, dot) + "<";
    if (dot != std::string::npos) out += value.kind.substr(dot + 1) + " ";
    bool is_word = !value.value.empty();
    for (char c : value.value) is_word = is_word && HloCursor::IsWordChar(c);
    if (is_word) {
      out += value.value;
    } else {
      AppendMlirString(out, value.value);
    }
    out += '>';
  }
  void operator()(const RecordAttr& value) {
    out += "#" + value.kind + "<";
    AppendEntries(out, value.fields);
    out += '>';
  }
};

}  // namespace

std::optional<AttrDict> ParseHloAttrDict(std::string_view text) {
  HloCursor cursor(text);
  AttrDict dict;
  if (!HloAttrValueReader(cursor).Dict(dict) || !cursor.AtEnd()) return std::nullopt;
  return dict;
}

void AppendAttrDict(std::string& out, const AttrDict& dict) {
  out += '{';
  AppendEntries(out, dict);
  out += '}';
}

void AppendAttrValue(std::string& out, const AttrValue& value) {
  std::visit(ValueWriter{out}, value.value);
}

}  // namespace tokamak
