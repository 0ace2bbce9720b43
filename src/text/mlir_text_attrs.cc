// Attributes of MLIR text.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unordered_set>

#include "text/mlir_text.h"
#include "text/number_type.h"

namespace tokamak {
namespace {

void Include(AttrSize& size, const AttrValue& value);

AttrSize SizeOf(const AttrValue& value) {
  AttrSize size;
  if (const auto* list = value.As<AttrList>())
    for (const AttrValue& element : *list) Include(size, element);
  const auto* record = value.As<RecordAttr>();
  const AttrDict* dict = record == nullptr ? value.As<AttrDict>() : &record->fields;
  if (dict != nullptr)
    for (const AttrEntry& entry : *dict) Include(size, entry.value);
  return size;
}

void Include(AttrSize& size, const AttrValue& value) {
  AttrSize part = SizeOf(value);
  size.nodes += part.nodes;
  size.depth = std::max(size.depth, part.depth + 1);
}

int HexDigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsFloatType(std::string_view type) {
  return type.starts_with("f") || type == "bf16" || type == "tf32";
}

}  // namespace

bool MlirTextReader::ParseAttr(AttrValue& value) {
  if (!Enter()) return false;
  bool ok = false;
  char c = cursor_.Peek();
  if (c == '"') {
    ok = ParseString(value.value.emplace<std::string>());
    Shape skipped;
    if (ok && cursor_.Eat(':')) ok = ParseType(skipped);
  } else if (c == '[') {
    ok = ParseList(value);
  } else if (c == '{') {
    ok = ParseDictValue(value);
  } else if (c == '@') {
    ok = ParseSymbol(value.value.emplace<SymbolAttr>().name);
  } else if (c == '#') {
    ok = ParseHashAttr(value);
  } else if (c == '-' || IsMlirDigit(c)) {
    ok = ParseNumber(value);
  } else if (cursor_.EatWord("true")) {
    value.value = true;
    ok = true;
  } else if (cursor_.EatWord("false")) {
    value.value = false;
    ok = true;
  } else if (cursor_.EatWord("unit")) {
    value.value = UnitAttr{};
    ok = true;
  } else if (cursor_.EatWord("dense")) {
    ok = ParseDense(value.value.emplace<Literal>());
  } else if (cursor_.EatWord("dense_resource")) {
    ok = ParseDenseResource(value.value.emplace<Literal>());
  } else if (cursor_.StartsWith("array<")) {
    ok = ParseDenseArray(value);
  } else {
    ok = ParseTypeAttr(value);
  }
  Leave();
  return ok;
}

// tensor<2xf32> is a Shape; the name of an element type is a word.
bool MlirTextReader::ParseTypeAttr(AttrValue& value) {
  std::string_view word = cursor_.PeekWord();
  if (word == "tensor" || word == "tuple" || word == "memref" || cursor_.Peek() == '!')
    return ParseType(value.value.emplace<Shape>());
  if (cursor_.Peek() == '(') {
    // A function type, as in the generic form of func.func: two lists.
    std::vector<Shape> inputs, results;
    if (!ParseTypeListTo(inputs) || !Expect("->") || !ParseTypeListTo(results)) return false;
    AttrList in, out;
    for (Shape& shape : inputs) in.push_back({std::move(shape)});
    for (Shape& shape : results) out.push_back({std::move(shape)});
    AttrList sides;
    sides.push_back({std::move(in)});
    sides.push_back({std::move(out)});
    value.value = std::move(sides);
    return true;
  }
  if (word.empty()) return Expected("an attribute");
  cursor_.Advance(word.size());
  std::string_view inner;
  std::string text(word);
  if (cursor_.Here() == '<') {
    if (!SkipBalanced('<', '>', inner)) return false;
    text += inner;
  }
  value.value = EnumAttr{"type", std::move(text)};
  return true;
}

bool MlirTextReader::SkipBalanced(char open, char close, std::string_view& text) {
  if (cursor_.Peek() != open) return Expected(std::string("'") + open + "'");
  const char* begin = cursor_.at();
  const char* at = begin;
  int depth = 0;
  for (; at < cursor_.end(); ++at) {
    if (*at == '"') {
      for (++at; at < cursor_.end() && *at != '"'; ++at)
        if (*at == '\\') ++at;
      if (at >= cursor_.end()) break;
    } else if (*at == open) {
      ++depth;
    } else if (*at == close && at[-1] != '-' && --depth == 0) {
      ++at;
      text = {begin, static_cast<size_t>(at - begin)};
      cursor_.SkipTo(at);
      return true;
    }
  }
  return Fail(ErrorCode::kMlirSyntax, std::string("'") + open + "' is not closed");
}

bool MlirTextReader::ParseString(std::string& text) {
  if (cursor_.Peek() != '"') return Expected("a string");
  TextPos pos = cursor_.Pos();
  cursor_.Advance();
  const char* begin = cursor_.at();
  const char* at = begin;
  while (at < cursor_.end() && *at != '"' && *at != '\\' && *at != '\n') ++at;
  // An unterminated string may extend to the end of the file, so it is not copied.
  if (at >= cursor_.end() || *at == '\n')
    return FailAt(pos, ErrorCode::kMlirToken, "a string is not closed");
  text.assign(begin, at);
  while (at < cursor_.end() && *at != '"' && *at != '\n') {
    if (*at != '\\') {
      text += *at++;
      continue;
    }
    char next = at + 1 < cursor_.end() ? at[1] : '\0';
    int high = HexDigitValue(next), low = at + 2 < cursor_.end() ? HexDigitValue(at[2]) : -1;
    if (next == 'n' || next == 't' || next == '"' || next == '\\') {
      text += next == 'n' ? '\n' : next == 't' ? '\t' : next;
      at += 2;
    } else if (high >= 0 && low >= 0) {
      text += static_cast<char>(high * 16 + low);
      at += 3;
    } else {
      return FailAt(pos, ErrorCode::kMlirToken, "a string holds an unknown escape");
    }
  }
  if (at >= cursor_.end() || *at != '"')
    return FailAt(pos, ErrorCode::kMlirToken, "a string is not closed");
  cursor_.Advance(static_cast<size_t>(at + 1 - cursor_.at()));
  return true;
}

// @name, @"any text", @a::@b
bool MlirTextReader::ParseSymbol(std::string& name) {
  if (!Expect('@')) return false;
  if (cursor_.Here() == '"') {
    if (!ParseString(name)) return false;
  } else {
    name = cursor_.Name();
    if (name.empty()) return Expected("a name after '@'");
  }
  while (cursor_.Here() == ':' && cursor_.After(1) == ':') {
    cursor_.Advance(2);
    std::string inner;
    if (!ParseSymbol(inner)) return false;
    name += "::" + inner;
  }
  return true;
}

bool MlirTextReader::ParseInt(int64_t& value) {
  cursor_.Peek();
  TextPos pos = cursor_.Pos();
  const char* begin = cursor_.at();
  bool hex =
      cursor_.Here() == '0' && cursor_.After(1) == 'x' && HexDigitValue(cursor_.After(2)) >= 0;
  std::from_chars_result read{};
  if (hex) {
    uint64_t bits = 0;
    read = std::from_chars(begin + 2, cursor_.end(), bits, 16);
    value = static_cast<int64_t>(bits);
  } else {
    read = std::from_chars(begin, cursor_.end(), value);
  }
  if (read.ec == std::errc::invalid_argument) return Expected("an integer");
  if (read.ec != std::errc{})
    return FailAt(pos, ErrorCode::kMlirNumber, "an integer does not fit into 64 bits");
  cursor_.Advance(static_cast<size_t>(read.ptr - begin));
  return true;
}

bool MlirTextReader::ParseIntList(Dims& values) {
  if (!Expect('[')) return false;
  if (cursor_.Eat(']')) return true;
  do {
    if (cursor_.Peek() == '?') {
      cursor_.Advance();
      values.push_back(kDynamic);
    } else if (cursor_.EatWord("true")) {
      values.push_back(1);
    } else if (cursor_.EatWord("false")) {
      values.push_back(0);
    } else if (!ParseInt(values.emplace_back())) {
      return false;
    }
  } while (cursor_.Eat(','));
  return Expect(']');
}

bool MlirTextReader::ParseIntLists(AttrValue& value) {
  AttrList rows;
  if (!Expect('[')) return false;
  if (cursor_.Peek() != ']') {
    do {
      DenseArrayAttr row{"i64", {}, {}};
      if (!ParseIntList(row.ints)) return false;
      rows.push_back({std::move(row)});
    } while (cursor_.Eat(','));
  }
  value.value = std::move(rows);
  return Expect(']');
}

// The type after a number: "i32", "index", "f32".
bool MlirTextReader::ParseNumberType(std::string& type) {
  TextPos pos = cursor_.Pos();
  std::string_view word = cursor_.Word();
  if (word.empty()) return Expected("the type of a number");
  if (!IsFloatType(word) && !IsIntegerTypeName(word))
    return FailAt(pos, ErrorCode::kMlirNumber,
                  "the type " + std::string(word.substr(0, 60)) + " of a number is not known");
  type = word;
  return true;
}

// 3, -3 : i32, 0x1F : i8, 1.5e3 : f32, 0x7FC00000 : f32
bool MlirTextReader::ParseNumber(AttrValue& value) {
  TextPos pos = cursor_.Pos();
  const char* begin = cursor_.at();
  const char* at = begin;
  if (at < cursor_.end() && (*at == '-' || *at == '+')) ++at;
  bool hex = at + 1 < cursor_.end() && at[0] == '0' && at[1] == 'x';
  bool real = false;
  if (hex) {
    at += 2;
    while (at < cursor_.end() && HexDigitValue(*at) >= 0) ++at;
  } else {
    auto is_real = [](char c) { return c == '.' || c == 'e' || c == 'E'; };
    while (at < cursor_.end() &&
           (IsMlirDigit(*at) || is_real(*at) ||
            ((*at == '-' || *at == '+') && (at[-1] == 'e' || at[-1] == 'E')))) {
      real = real || is_real(*at);
      ++at;
    }
  }
  std::string_view text(begin, static_cast<size_t>(at - begin));
  if (text.empty() || text == "-") return Expected("a number");
  double number = 0;
  int64_t whole = 0;
  if (real) {
    auto read = std::from_chars(begin, at, number);
    if (read.ptr != at) return FailAt(pos, ErrorCode::kMlirNumber, "a number is malformed");
    if (read.ec != std::errc{}) number = std::strtod(std::string(text).c_str(), nullptr);
    cursor_.Advance(text.size());
  } else if (IsMlirDigit(*begin) && !hex) {
    uint64_t bits = 0;
    auto read = std::from_chars(begin, at, bits);
    if (read.ec != std::errc{})
      return FailAt(pos, ErrorCode::kMlirNumber, "an integer does not fit into 64 bits");
    whole = static_cast<int64_t>(bits);
    cursor_.Advance(text.size());
  } else if (!ParseInt(whole)) {
    return false;
  }
  std::string type = real ? "f64" : "i64";
  bool typed = cursor_.Peek() == ':' && cursor_.After(1) != ':';
  if (typed) {
    cursor_.Advance();
    if (!ParseNumberType(type)) return false;
  }
  if (!IsFloatType(type)) {
    if (real)
      return FailAt(pos, ErrorCode::kMlirNumber, "a number with a point has the type " + type);
    if (type == "i1") {
      value.value = whole != 0;
    } else {
      value.value = IntAttr{whole, std::move(type)};
    }
    return true;
  }
  std::optional<ElementType> element = ElementTypeFromMlir(type);
  if (!element || !IsReal(*element))
    return FailAt(pos, ErrorCode::kMlirNumber, "the type " + type + " of a number is not known");
  if (hex) number = DecodeFloat(*element, static_cast<uint64_t>(whole));
  if (!real && !hex) number = static_cast<double>(whole);
  value.value = FloatAttr{RoundToType(*element, number), *element};
  return true;
}

bool MlirTextReader::ParseList(AttrValue& value) {
  AttrList list;
  if (!Expect('[')) return false;
  if (cursor_.Peek() != ']') {
    do {
      if (!ParseAttr(list.emplace_back())) return false;
    } while (cursor_.Eat(','));
  }
  value.value = std::move(list);
  return Expect(']');
}

bool MlirTextReader::ParseDictValue(AttrValue& value) {
  Attrs_ attrs;
  if (!ParseAttrDict(attrs)) return false;
  AttrDict dict;
  for (MlirAttr& attr : attrs) Set(dict, std::string(attr.name), std::move(attr.value));
  value.value = std::move(dict);
  return true;
}

bool MlirTextReader::ParseAttrDict(Attrs_& attrs) {
  return Expect('{') && ParseAttrDictBody(attrs, '}');
}

bool MlirTextReader::ParseOptionalAttrDict(Attrs_& attrs) {
  return cursor_.Peek() != '{' || ParseAttrDict(attrs);
}

// Keys are words or strings; a key alone is a unit.
bool MlirTextReader::ParseAttrDictBody(Attrs_& attrs, char close) {
  // Below this number of names, comparing them pairwise is cheaper than hashing (chosen).
  constexpr size_t kFew = 16;
  std::unordered_set<std::string_view> seen;
  if (cursor_.Eat(close)) return true;
  do {
    MlirAttr& attr = attrs.emplace_back();
    TextPos pos = cursor_.Pos();
    if (cursor_.Peek() == '"') {
      const char* begin = cursor_.at() + 1;
      std::string text;
      if (!ParseString(text)) return false;
      attr.name = {begin, static_cast<size_t>(cursor_.at() - begin - 1)};
      if (attr.name != text) attr.name = escaped_names_.emplace_back(std::move(text));
    } else {
      attr.name = cursor_.Word();
      if (attr.name.empty()) return Expected("the name of an attribute");
    }
    bool twice = false;
    if (attrs.size() <= kFew) {
      for (size_t i = 0; i + 1 < attrs.size(); ++i) twice = twice || attrs[i].name == attr.name;
    } else {
      if (seen.empty())
        for (size_t i = 0; i + 1 < attrs.size(); ++i) seen.insert(attrs[i].name);
      twice = !seen.insert(attr.name).second;
    }
    if (twice)
      return FailAt(pos, ErrorCode::kMlirAttribute,
                    "attribute " + std::string(attr.name) + " is given twice");
    if (!cursor_.Eat('=')) continue;
    AttrValue value;
    if (!ParseAttr(value)) return false;
    attrs.back().value = std::move(value);
  } while (cursor_.Eat(','));
  // Sorted input makes each insertion into the dictionary an append.
  if (attrs.size() > kFew)
    std::sort(attrs.begin(), attrs.end(),
              [](const MlirAttr& a, const MlirAttr& b) { return a.name < b.name; });
  return Expect(close);
}

// array<i64: 1, 2>, array<i1: true>, array<f32: 1.5>, array<i64>
bool MlirTextReader::ParseDenseArray(AttrValue& value) {
  DenseArrayAttr array;
  if (!Expect("array") || !Expect('<') || !ParseNumberType(array.type)) return false;
  bool real = IsFloatType(array.type);
  std::optional<ElementType> element = ElementTypeFromMlir(array.type);
  if (cursor_.Eat(':')) {
    do {
      if (!real) {
        if (cursor_.EatWord("true")) {
          array.ints.push_back(1);
        } else if (cursor_.EatWord("false")) {
          array.ints.push_back(0);
        } else if (!ParseInt(array.ints.emplace_back())) {
          return false;
        }
        continue;
      }
      AttrValue item;
      if (!ParseNumber(item)) return false;
      const auto* number = item.As<FloatAttr>();
      const auto* whole = item.As<IntAttr>();
      double v = number != nullptr ? number->value : static_cast<double>(whole->value);
      if (whole != nullptr && element)
        v = DecodeFloat(*element, static_cast<uint64_t>(whole->value));
      array.floats.push_back(v);
    } while (cursor_.Eat(','));
  }
  value.value = std::move(array);
  return Expect('>');
}

// Nested aliases of lists: 30 lines could expand to 10^30 attributes, and a chain of aliases could
// exceed the nesting depth that the text itself is limited to.
bool MlirTextReader::CheckAlias(const AttrSize& size, TextPos pos) {
  if (depth_ + size.depth > kMaxNesting)
    return FailAt(pos, ErrorCode::kTooDeep, "nested deeper than " + std::to_string(kMaxNesting));
  alias_nodes_ += size.nodes;
  int64_t limit = kMaxAttributeWeight + static_cast<int64_t>(text_.size());
  if (alias_nodes_ <= limit) return true;
  return FailAt(pos, ErrorCode::kTooLarge,
                "aliases unfold to more than " + std::to_string(limit) + " attributes");
}

// #alias, #dialect.name<...>, #dialect<name ...>
bool MlirTextReader::ParseHashAttr(AttrValue& value) {
  TextPos pos = cursor_.Pos();
  const char* begin = cursor_.at();
  cursor_.Advance();
  std::string_view name = cursor_.Name();
  std::string_view key(begin, static_cast<size_t>(cursor_.at() - begin));
  if (auto it = aliases_.find(key); it != aliases_.end()) {
    Alias& alias = it->second;
    if (alias.state == 1)
      return FailAt(pos, ErrorCode::kMlirAlias, std::string(key) + " is defined by itself");
    if (!alias.attr) {
      alias.state = 1;
      MlirCursor::Mark mark = cursor_.Save();
      cursor_.Restore(alias.mark);
      AttrValue read;
      if (!ParseAttr(read)) return false;
      cursor_.Restore(mark);
      alias.attr = std::move(read);
      alias.size = SizeOf(*alias.attr);
      alias.state = 2;
    }
    return CheckAlias(alias.size, pos) && (value = *alias.attr, true);
  }
  if (cursor_.Here() == '<' && name.find('.') == std::string_view::npos) {
    // #stablehlo<precision HIGH>, #stablehlo<dot<...>>
    cursor_.Advance();
    std::string_view word = cursor_.Word();
    if (word.empty()) return Expected("the name of an attribute");
    std::string kind = std::string(name) + "." + std::string(word);
    if (cursor_.Here() == '<') return ParseDialectAttr(kind, value) && Expect('>');
    std::string_view choice = cursor_.Word();
    value.value = EnumAttr{std::move(kind), std::string(choice)};
    return Expect('>');
  }
  if (cursor_.Here() == '<') return ParseDialectAttr(name, value);
  if (name.find('.') != std::string_view::npos) {
    value.value = EnumAttr{std::string(name), ""};
    return true;
  }
  return FailAt(pos, ErrorCode::kMlirAlias, "no attribute is named " + std::string(key));
}

}  // namespace tokamak
