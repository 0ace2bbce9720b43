#include "text/mlir_ops.h"
#include "text/mlir_sdy.h"

namespace tokamak {

bool SameWord(std::string_view word, std::string_view name) {
  if (word.size() != name.size()) return false;
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (size_t i = 0; i < word.size(); ++i)
    if (lower(word[i]) != lower(name[i])) return false;
  return true;
}

const Shape& MlirAttrReader::OperandShape(size_t i) {
  static const Shape none;
  used_shapes_ = true;
  if (i < input_.operands.size()) return input_.operands[i]->shape();
  if (!error_)
    error_ = importer_.At(input_.pos, ErrorCode::kMlirOperandCount,
                          input_.op->name + ": operand " + std::to_string(i) + " is missing, " +
                              std::to_string(input_.operands.size()) + " given");
  return none;
}

const Shape& MlirAttrReader::ResultShape(size_t i) {
  static const Shape none;
  used_shapes_ = true;
  return i < input_.results.size() ? input_.results[i] : none;
}

const AttrValue* MlirAttrReader::Take(std::string_view name) {
  for (size_t i = 0; i < attrs_.size(); ++i) {
    if (attrs_[i].name != name) continue;
    if (i < 64) used_ |= uint64_t{1} << i;
    return &attrs_[i].value;
  }
  return nullptr;
}

const AttrValue* MlirAttrReader::TakeField(std::string_view record, std::string_view field) {
  const AttrValue* whole = Take(record);
  if (whole == nullptr) return Take(field);
  if (const auto* fields = whole->As<RecordAttr>()) return Find(fields->fields, field);
  if (const auto* fields = whole->As<AttrDict>()) return Find(*fields, field);
  Fail(record, "expected a record");
  return nullptr;
}

void MlirAttrReader::Fail(std::string_view attribute, std::string message) {
  if (error_) return;
  error_ = importer_.At(input_.pos, ErrorCode::kMlirAttributeMeaning,
                        input_.op->name + ": attribute " + std::string(attribute) + ": " + message);
}

void MlirAttrReader::Missing(std::string_view attribute) {
  Fail(attribute, "is missing");
}

int64_t MlirAttrReader::IntOf(std::string_view name, const AttrValue& value) {
  if (const auto* number = value.As<IntAttr>()) return number->value;
  if (const auto* flag = value.As<bool>()) return *flag ? 1 : 0;
  if (const auto* literal = value.As<Literal>()) {
    if (literal->shape().IsArray() && IsInteger(literal->type()) &&
        literal->shape().ElementCount() == 1)
      return literal->IntAt(0);
  }
  Fail(name, "expected an integer");
  return 0;
}

int64_t MlirAttrReader::Int(std::string_view name, int64_t fallback) {
  const AttrValue* value = Take(name);
  return value == nullptr ? fallback : IntOf(name, *value);
}

int64_t MlirAttrReader::RequiredInt(std::string_view name) {
  const AttrValue* value = Take(name);
  if (value != nullptr) return IntOf(name, *value);
  Missing(name);
  return 0;
}

bool MlirAttrReader::Bool(std::string_view name, bool fallback) {
  const AttrValue* value = Take(name);
  if (value == nullptr) return fallback;
  if (const auto* flag = value->As<bool>()) return *flag;
  if (value->As<UnitAttr>() != nullptr) return true;
  if (const auto* number = value->As<IntAttr>()) return number->value != 0;
  Fail(name, "expected true or false");
  return fallback;
}

double MlirAttrReader::Double(std::string_view name, double fallback) {
  const AttrValue* value = Take(name);
  if (value == nullptr) return fallback;
  if (const auto* number = value->As<FloatAttr>()) return number->value;
  Fail(name, "expected a number");
  return fallback;
}

std::string MlirAttrReader::String(std::string_view name) {
  const AttrValue* value = Take(name);
  if (value == nullptr) return {};
  if (const auto* text = value->As<std::string>()) return *text;
  if (const auto* symbol = value->As<SymbolAttr>()) return symbol->name;
  Fail(name, "expected a string");
  return {};
}

std::string MlirAttrReader::Word(std::string_view name) {
  const AttrValue* value = Take(name);
  if (value == nullptr) return {};
  if (const auto* word = value->As<EnumAttr>()) return word->value;
  if (const auto* text = value->As<std::string>()) return *text;
  Fail(name, "expected a word");
  return {};
}

Dims MlirAttrReader::DimsOf(std::string_view name, const AttrValue& value) {
  if (const auto* array = value.As<DenseArrayAttr>()) {
    if (array->floats.empty()) return array->ints;
  } else if (const auto* literal = value.As<Literal>()) {
    const Shape& shape = literal->shape();
    bool fits = shape.IsArray() && !IsReal(shape.type()) && !IsComplex(shape.type());
    int64_t count = fits ? shape.ElementCount() : 0;
    // A splat may claim more elements than the text holds; no op takes a list longer than this.
    if (fits && (!literal->is_splat() || count <= (int64_t{1} << 24))) {
      Dims ints(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) ints[static_cast<size_t>(i)] = literal->IntAt(i);
      return ints;
    }
  } else if (const auto* list = value.As<AttrList>()) {
    Dims ints;
    ints.reserve(list->size());
    for (const AttrValue& item : *list) ints.push_back(IntOf(name, item));
    return ints;
  }
  Fail(name, "expected a list of integers");
  return {};
}

Dims MlirAttrReader::DimList(std::string_view name) {
  const AttrValue* value = Take(name);
  return value == nullptr ? Dims{} : DimsOf(name, *value);
}

Dims MlirAttrReader::RequiredDims(std::string_view name) {
  const AttrValue* value = Take(name);
  if (value != nullptr) return DimsOf(name, *value);
  Missing(name);
  return {};
}

std::vector<Dims> MlirAttrReader::DimListsOf(std::string_view name, const AttrValue& value) {
  std::vector<Dims> rows;
  if (const auto* list = value.As<AttrList>()) {
    for (const AttrValue& item : *list) rows.push_back(DimsOf(name, item));
    return rows;
  }
  const auto* literal = value.As<Literal>();
  if (literal == nullptr || literal->shape().rank() != 2) {
    Fail(name, "expected a list of lists of integers");
    return rows;
  }
  Dims flat = DimsOf(name, value);
  size_t width = static_cast<size_t>(literal->shape().dim(1));
  if (width == 0 || flat.empty()) return rows;
  for (size_t i = 0; i + width <= flat.size(); i += width)
    rows.emplace_back(flat.begin() + static_cast<int64_t>(i),
                      flat.begin() + static_cast<int64_t>(i + width));
  return rows;
}

std::vector<Dims> MlirAttrReader::DimLists(std::string_view name) {
  const AttrValue* value = Take(name);
  return value == nullptr ? std::vector<Dims>{} : DimListsOf(name, *value);
}

}  // namespace tokamak
