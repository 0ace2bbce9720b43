#include "text/mlir_attribute_values.h"

#include <algorithm>
#include <cstring>

namespace tokamak {
namespace {

// The part of an enumerator's HLO text that is its MLIR keyword, ignoring case.
std::string_view KeywordOf(std::string_view name) {
  return name.substr(name.starts_with("rng_") ? 4 : 0);
}

char Upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
}
bool SameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Upper(x) == Upper(y); });
}

// The value, if it has the type of `out`.
template <typename T>
std::string Copy(const AttrValue& value, T& out, const char* expected) {
  const auto* same = value.As<T>();
  if (same != nullptr) out = *same;
  return same == nullptr ? expected : "";
}

}  // namespace

AttrValue EncodeWord(const MlirEnum& kind, std::string_view name) {
  std::string word(KeywordOf(name));
  std::transform(word.begin(), word.end(), word.begin(), Upper);
  return {EnumAttr{std::string(kind.kind), std::move(word)}};
}

// Shorter rows are padded with -1.
AttrValue EncodeRows(const std::vector<Dims>& rows, size_t width) {
  for (const Dims& row : rows) width = std::max(width, row.size());
  std::vector<int64_t> numbers;
  for (const Dims& row : rows) {
    numbers.insert(numbers.end(), row.begin(), row.end());
    numbers.resize(numbers.size() + width - row.size(), -1);
  }
  std::vector<std::byte> bytes(numbers.size() * sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  Shape shape = Shape::Array(ElementType::kS64,
                             {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)});
  return {Literal::Array(std::move(shape), Bytes::FromVector(std::move(bytes)))};
}

AttrValue EncodeNames(const std::vector<std::string>& names) {
  RecordAttr axes{"sdy.manual_axes", {}};
  Set(axes.fields, "names", {AttrList(names.begin(), names.end())});
  return {std::move(axes)};
}

std::string DecodeAttr(const AttrValue& value, bool& out) {
  if (const auto* flag = value.As<bool>()) {
    out = *flag;
  } else if (const auto* number = value.As<IntAttr>()) {
    out = number->value != 0;
  } else if (value.As<UnitAttr>() != nullptr) {
    out = true;
  } else {
    return "true or false";
  }
  return {};
}

std::string DecodeAttr(const AttrValue& value, int64_t& out) {
  const auto* literal = value.As<Literal>();
  if (const auto* number = value.As<IntAttr>()) {
    out = number->value;
  } else if (const auto* flag = value.As<bool>()) {
    out = *flag ? 1 : 0;
  } else if (literal != nullptr && literal->shape().IsArray() && IsInteger(literal->type()) &&
             literal->shape().ElementCount() == 1) {
    out = literal->IntAt(0);
  } else {
    return "an integer";
  }
  return {};
}

std::string DecodeAttr(const AttrValue& value, double& out) {
  if (const auto* number = value.As<FloatAttr>()) {
    out = number->value;
  } else if (const auto* whole = value.As<IntAttr>()) {
    out = static_cast<double>(whole->value);
  } else {
    return "a number";
  }
  return {};
}

std::string DecodeAttr(const AttrValue& value, std::string& out) {
  if (const auto* symbol = value.As<SymbolAttr>()) {
    out = symbol->name;
  } else if (const auto* word = value.As<EnumAttr>()) {
    out = word->value;
  } else {
    return Copy(value, out, "a string");
  }
  return {};
}

std::string DecodeAttr(const AttrValue& value, Dims& out) {
  if (const auto* array = value.As<DenseArrayAttr>(); array != nullptr && array->floats.empty()) {
    out = array->ints;
  } else if (const auto* literal = value.As<Literal>()) {
    const Shape& shape = literal->shape();
    bool fits = shape.IsArray() && !IsReal(shape.type()) && !IsComplex(shape.type());
    int64_t count = fits ? shape.ElementCount() : 0;
    // A splat may claim more elements than the text holds; no op takes a list longer than this.
    if (!fits || (literal->is_splat() && count > (int64_t{1} << 24))) return "a list of integers";
    out.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = literal->IntAt(i);
  } else if (const auto* list = value.As<AttrList>()) {
    out.reserve(list->size());
    for (const AttrValue& item : *list)
      if (!DecodeAttr(item, out.emplace_back()).empty()) return "an integer";
  } else {
    return "a list of integers";
  }
  return {};
}

std::string DecodeAttr(const AttrValue& value, std::vector<Dims>& out) {
  if (const auto* list = value.As<AttrList>()) {
    for (const AttrValue& item : *list)
      if (std::string expected = DecodeAttr(item, out.emplace_back()); !expected.empty())
        return expected;
    return {};
  }
  const auto* literal = value.As<Literal>();
  if (literal == nullptr || literal->shape().rank() != 2) return "a list of lists of integers";
  Dims flat;
  if (std::string expected = DecodeAttr(value, flat); !expected.empty()) return expected;
  const auto width = static_cast<size_t>(literal->shape().dim(1));
  for (auto at = flat.begin(); at != flat.end(); at += static_cast<int64_t>(width))
    out.emplace_back(at, at + static_cast<int64_t>(width));
  return {};
}

// Nests as deep as attributes may.
std::string DecodeAttr(const AttrValue& value, Literal& out) {
  const auto* list = value.As<AttrList>();
  if (list == nullptr) return Copy(value, out, "dense elements");
  std::vector<Literal> elements;
  for (const AttrValue& entry : *list)
    if (std::string expected = DecodeAttr(entry, elements.emplace_back()); !expected.empty())
      return expected;
  out = Literal::Tuple(std::move(elements));
  return {};
}

std::string DecodeAttr(const AttrValue& value, Shape& out) {
  std::optional<Shape> shape = ShapeFromAttr(value);
  if (shape) out = std::move(*shape);
  return shape ? "" : "a shape";
}

std::string DecodeAttr(const AttrValue& value, AttrDict& out) {
  return Copy(value, out, "a dictionary");
}

std::string DecodeAttr(const AttrValue& value, ShardingKind& out) {
  const auto* number = value.As<IntAttr>();
  if (number == nullptr || number->value < 0 ||
      number->value > static_cast<int64_t>(ShardingKind::kTuple))
    return "a kind of sharding";
  out = static_cast<ShardingKind>(number->value);
  return {};
}

std::string DecodeWord(const AttrValue& value, const MlirEnum& kind,
                       std::span<const std::string_view> names, size_t& index) {
  std::string_view word;
  if (const auto* number = value.As<IntAttr>()) {
    const auto code = static_cast<uint64_t>(number->value);
    if (code < kind.words.size()) word = kind.words[code];
  } else if (const auto* keyword = value.As<EnumAttr>()) {
    word = keyword->value;
  } else if (const auto* text = value.As<std::string>()) {
    word = *text;
  }
  for (index = 0; index < names.size(); ++index)
    if (SameWord(word, names[index]) || SameWord(word, KeywordOf(names[index]))) return {};
  return word.empty() ? "a word" : "a word other than \"" + std::string(word) + "\"";
}

}  // namespace tokamak
