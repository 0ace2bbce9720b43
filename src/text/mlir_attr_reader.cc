#include "text/mlir_ops.h"

namespace tokamak {

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

int64_t MlirAttrReader::Int(std::string_view name, int64_t fallback) {
  const AttrValue* value = Take(name);
  return value == nullptr ? fallback : Of<int64_t>(name, *value);
}

std::string MlirAttrReader::String(std::string_view name) {
  const AttrValue* value = Take(name);
  return value == nullptr ? std::string() : Of<std::string>(name, *value);
}

}  // namespace tokamak
