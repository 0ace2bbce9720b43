// Decodes bytecode types: codes of the dialects vhlo and builtin (sdy has none).
#include <array>
#include <bit>

#include "support/limits.h"
#include "text/bytecode_tables.h"

namespace tokamak {
namespace {

using Kind = BytecodeType::Kind;

BytecodeType ElementOf(ElementType type) {
  BytecodeType out;
  out.kind = Kind::kElement;
  out.shape = Shape::Scalar(type);
  out.name = std::string(InfoOf(type).mlir);
  return out;
}

BytecodeType ValueOf(Shape shape) {
  BytecodeType out;
  out.kind = Kind::kValue;
  out.shape = std::move(shape);
  return out;
}

BytecodeType Named(std::string_view name) {
  BytecodeType out;
  out.name = std::string(name);
  return out;
}

BytecodeType Index() {
  BytecodeType out;
  out.kind = Kind::kIndex;
  out.shape = Shape::Scalar(ElementType::kS64);
  out.name = "index";
  return out;
}

// The vhlo codes without parameters; "" for a code with parameters.
constexpr std::array<std::string_view, 43> kVhloNames = {
    "i1",       "",         "bf16",     "f16",        "f32",        "f64",
    "f8E4M3FN", "f8E5M2",   "",         "index",      "i4",         "i8",
    "i16",      "i32",      "i64",      "ui4",        "ui8",        "ui16",
    "ui32",     "ui64",     "",         "",           "token",      "",
    "",         "",         "witness",  "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ",
    "",         "i2",       "ui2",      "none",       "tf32",       "f8E4M3",
    "f8E3M4",   "f4E2M1FN", "f6E2M3FN", "f6E3M2FN",   "f8E8M0FNU",  "",
    ""};
enum VhloTypeCode : uint64_t {
  kTypeComplex = 1,
  kTypeFunctionType = 8,
  kTypeTensor = 20,
  kTypeTensorWithEncoding = 21,
  kTypeTuple = 23,
  kTypeQuantized = 24,
  kTypeUnrankedTensor = 25,
  kTypeQuantizedPerAxis = 30,
  kTypeBuffer = 41,
  kTypeFuture = 42,
};

BytecodeType FromName(std::string_view name) {
  if (name == "token") return ValueOf(Shape::Token());
  if (name == "index") return Index();
  if (auto type = ElementTypeFromMlir(name)) return ElementOf(*type);
  return Named(name);
}

double DoubleOf(uint64_t bits) {
  return std::bit_cast<double>(bits);
}

}  // namespace

class BytecodeTables::TypeDecoder {
 public:
  TypeDecoder(BytecodeTables& tables, const BytecodeFile::Entry& entry)
      : tables_(tables), file_(tables.file_), in_(tables.file_.At(entry)) {}
  Result<BytecodeType> Decode(const BytecodeFile::Entry& entry);

 private:
  Result<BytecodeType> ByDialect(const BytecodeFile::Entry& entry);
  Result<BytecodeType> Vhlo(uint64_t code, size_t start);
  Result<BytecodeType> Builtin(uint64_t code, size_t start);
  Result<BytecodeType> Tensor(bool has_encoding);
  Result<BytecodeType> Quantized(bool per_axis);
  Result<BytecodeType> Function();
  Result<std::vector<Shape>> TypeList(uint32_t& weight);
  BytecodeRef Ref() {
    const size_t from = in_.offset();
    return {in_.Varint(), from};
  }

  BytecodeTables& tables_;
  const BytecodeFile& file_;
  BytecodeCursor in_;
};

Result<BytecodeType> BytecodeTables::TypeDecoder::Decode(const BytecodeFile::Entry& entry) {
  TOK_TRY(BytecodeType type, ByDialect(entry));
  TOK_RETURN_IF_ERROR(file_.Finish(in_, "type"));
  return type;
}

Result<BytecodeType> BytecodeTables::TypeDecoder::ByDialect(const BytecodeFile::Entry& entry) {
  const size_t start = in_.offset();
  if (!entry.custom) {
    std::string_view text = in_.NulTerminated();
    return file_.ErrorAt(
        ErrorCode::kBytecodeType,
        "bytecode: type '" + std::string(text.substr(0, 60)) + "' is written as text", start);
  }
  const uint64_t code = in_.Varint();
  TOK_RETURN_IF_ERROR(file_.Whole(in_, "type"));
  switch (file_.dialect_kinds[entry.dialect]) {
    case BytecodeFile::Dialect::kVhlo:
      return Vhlo(code, start);
    case BytecodeFile::Dialect::kBuiltin:
      return Builtin(code, start);
    case BytecodeFile::Dialect::kSdy:
    case BytecodeFile::Dialect::kOther:
      break;
  }
  return file_.ErrorAt(ErrorCode::kBytecodeType,
                       "bytecode: type " + std::to_string(code) + " of dialect '" +
                           std::string(file_.dialects[entry.dialect]) + "' is not known",
                       start);
}

Result<BytecodeType> BytecodeTables::TypeDecoder::Vhlo(uint64_t code, size_t start) {
  if (code < kVhloNames.size() && !kVhloNames[code].empty()) return FromName(kVhloNames[code]);
  switch (code) {
    case kTypeComplex: {
      const size_t from = in_.offset();
      TOK_TRY(const BytecodeType* part, tables_.Type(Ref()));
      if (part->name == "f32") return ElementOf(ElementType::kC64);
      if (part->name == "f64") return ElementOf(ElementType::kC128);
      return file_.ErrorAt(ErrorCode::kBytecodeType, "bytecode: complex of '" + part->name + "'",
                           from);
    }
    case kTypeFunctionType:
      return Function();
    case kTypeTensor:
    case kTypeTensorWithEncoding:
      return Tensor(code == kTypeTensorWithEncoding);
    case kTypeBuffer: {
      TOK_TRY(BytecodeType array, Tensor(false));
      return ValueOf(Shape::Buffer(array.shape));
    }
    case kTypeTuple:
    case kTypeFuture: {
      uint32_t weight = 1;
      TOK_TRY(std::vector<Shape> elements, TypeList(weight));
      BytecodeType out = ValueOf(code == kTypeTuple ? Shape::Tuple(std::move(elements))
                                                    : Shape::Future(std::move(elements)));
      out.weight = weight;
      return out;
    }
    case kTypeUnrankedTensor: {
      const size_t from = in_.offset();
      TOK_TRY(const BytecodeType* element, tables_.Type(Ref()));
      if (element->kind == Kind::kElement) return ValueOf(Shape::Unranked(element->shape.type()));
      return file_.ErrorAt(ErrorCode::kBytecodeType, "bytecode: tensor of '" + element->name + "'",
                           from);
    }
    case kTypeQuantized:
    case kTypeQuantizedPerAxis:
      return Quantized(code == kTypeQuantizedPerAxis);
    default:
      return file_.ErrorAt(ErrorCode::kBytecodeType,
                           "bytecode: type " + std::to_string(code) + " of vhlo is not known",
                           start);
  }
}

Result<BytecodeType> BytecodeTables::TypeDecoder::Builtin(uint64_t code, size_t start) {
  switch (code) {
    case 0: {  // integer
      const uint64_t word = in_.Varint();
      const std::string width = std::to_string(word >> 2);
      // Signless is MLIR's usual spelling of signed.
      return FromName((word & 3) == 2 ? "ui" + width : "i" + width);
    }
    case 1:
      return Index();
    case 2:
      return Function();
    case 3:
      return ElementOf(ElementType::kBF16);
    case 4:
      return ElementOf(ElementType::kF16);
    case 5:
      return ElementOf(ElementType::kF32);
    case 6:
      return ElementOf(ElementType::kF64);
    case 9:
      return Vhlo(kTypeComplex, start);
    case 12:
      return Named("none");
    case 13:
    case 14:
      return Tensor(code == 14);
    case 15:
      return Vhlo(kTypeTuple, start);
    case 18:
      return Vhlo(kTypeUnrankedTensor, start);
    default:
      return file_.ErrorAt(ErrorCode::kBytecodeType,
                           "bytecode: type " + std::to_string(code) + " of builtin is not known",
                           start);
  }
}

Result<BytecodeType> BytecodeTables::TypeDecoder::Tensor(bool has_encoding) {
  const size_t start = in_.offset();
  const BytecodeRef encoding = has_encoding ? Ref() : BytecodeRef{};
  Dims dims(in_.Count());
  for (int64_t& dim : dims) dim = in_.SignedVarint();
  const size_t from = in_.offset();
  const BytecodeRef element_ref = Ref();
  TOK_RETURN_IF_ERROR(file_.Whole(in_, "type"));
  TOK_TRY(const BytecodeType* element, tables_.Type(element_ref));
  if (element->kind != Kind::kElement && element->kind != Kind::kIndex) {
    return file_.ErrorAt(ErrorCode::kBytecodeType, "bytecode: tensor of '" + element->name + "'",
                         from);
  }
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return file_.ErrorAt(ErrorCode::kTooLarge,
                         "bytecode: tensor of rank " + std::to_string(dims.size()) +
                             ", the limit is " + std::to_string(kMaxRank),
                         start);
  }
  if (!CheckedElementCount(dims)) {
    return file_.ErrorAt(ErrorCode::kBytecodeNumber,
                         "bytecode: tensor has a negative dimension or too many elements", start);
  }
  Shape shape = Shape::Array(element->shape.type(), std::move(dims));
  if (const QuantType* quant = element->shape.quant()) shape = shape.WithQuant(*quant);
  if (has_encoding) {
    TOK_TRY(const BytecodeAttr* bounds, tables_.Attribute(encoding));
    const auto* extents = bounds->value.As<DenseArrayAttr>();
    if (extents == nullptr || extents->ints.size() != shape.dims().size()) {
      return file_.ErrorAt(ErrorCode::kBytecodeType,
                           "bytecode: the encoding of a tensor is not bounds of its dimensions",
                           start);
    }
    shape = shape.WithBounds(extents->ints);
  }
  BytecodeType out = ValueOf(std::move(shape));
  if (element->kind == Kind::kIndex) out.name = "index";
  return out;
}

Result<BytecodeType> BytecodeTables::TypeDecoder::Quantized(bool per_axis) {
  const size_t start = in_.offset();
  const uint64_t flags = in_.Varint();
  TOK_TRY(const BytecodeType* storage, tables_.Type(Ref()));
  TOK_TRY(const BytecodeType* expressed, tables_.Type(Ref()));
  QuantType quant;
  if (per_axis) {
    const uint64_t axis = in_.Varint();
    quant.axis = axis < static_cast<uint64_t>(kMaxRank) ? static_cast<int64_t>(axis) : kMaxRank;
    quant.storage_min = in_.SignedVarint();
    quant.storage_max = in_.SignedVarint();
    for (size_t n = in_.Count(); n > 0; --n) quant.scales.push_back(DoubleOf(in_.Integer(64)));
    for (size_t n = in_.Count(); n > 0; --n) quant.zero_points.push_back(in_.SignedVarint());
  } else {
    quant.scales.push_back(DoubleOf(in_.Integer(64)));
    quant.zero_points.push_back(in_.SignedVarint());
    quant.storage_min = in_.SignedVarint();
    quant.storage_max = in_.SignedVarint();
  }
  TOK_RETURN_IF_ERROR(file_.Whole(in_, "type"));
  if (storage->kind != Kind::kElement || !IsInteger(storage->shape.type()) ||
      expressed->kind != Kind::kElement || !IsReal(expressed->shape.type()) ||
      quant.scales.size() != quant.zero_points.size() || quant.scales.empty()) {
    return file_.ErrorAt(ErrorCode::kBytecodeType,
                         "bytecode: quantized type of '" + storage->name + "' for '" +
                             expressed->name + "' with " + std::to_string(quant.scales.size()) +
                             " scales and " + std::to_string(quant.zero_points.size()) +
                             " zero points",
                         start);
  }
  quant.expressed = expressed->shape.type();
  // Bit 0 says that the stored integers are signed, regardless of their type.
  ElementType type = storage->shape.type();
  if ((flags & 1) == 0 && IsSigned(type))
    type = ElementTypeFromMlir("u" + storage->name).value_or(type);
  BytecodeType out = ElementOf(type);
  out.shape = out.shape.WithQuant(std::move(quant));
  return out;
}

Result<BytecodeType> BytecodeTables::TypeDecoder::Function() {
  BytecodeType out;
  out.kind = Kind::kFunction;
  TOK_TRY(out.inputs, TypeList(out.weight));
  TOK_TRY(out.results, TypeList(out.weight));
  return out;
}

Result<std::vector<Shape>> BytecodeTables::TypeDecoder::TypeList(uint32_t& weight) {
  std::vector<Shape> shapes;
  for (size_t n = in_.Count(); n > 0 && !in_.failed(); --n) {
    const BytecodeRef ref = Ref();
    TOK_RETURN_IF_ERROR(file_.Whole(in_, "type"));
    TOK_TRY(const Shape* shape, tables_.ValueType(ref));
    weight += tables_.types_[ref.index]->weight;
    if (weight > kMaxAttributeWeight)
      return file_.ErrorAt(ErrorCode::kTooLarge, "bytecode: a type contains too many types",
                           ref.from);
    shapes.push_back(*shape);
  }
  return shapes;
}

Result<const BytecodeType*> BytecodeTables::SlowType(BytecodeRef ref) {
  if (ref.index >= types_.size()) {
    return file_.ErrorAt(
        ErrorCode::kBytecodeIndex,
        "bytecode: type " + std::to_string(ref.index) + " of " + std::to_string(types_.size()),
        ref.from);
  }
  const BytecodeFile::Entry& entry = file_.types[ref.index];
  if (open_types_[ref.index])
    return file_.ErrorAt(ErrorCode::kBytecodeCycle, "bytecode: a type contains itself",
                         entry.begin);
  if (depth_ >= kMaxNesting)
    return file_.ErrorAt(ErrorCode::kTooDeep, "bytecode: types are nested too deeply", entry.begin);
  open_types_[ref.index] = true;
  ++depth_;
  auto decoded = TypeDecoder(*this, entry).Decode(entry);
  --depth_;
  open_types_[ref.index] = false;
  if (!decoded.ok()) return std::move(decoded.error());
  TOK_RETURN_IF_ERROR(Charge(decoded.value().weight, entry.begin));
  types_[ref.index] = std::make_unique<BytecodeType>(std::move(decoded).value());
  return types_[ref.index].get();
}

Result<const Shape*> BytecodeTables::ValueType(BytecodeRef ref) {
  TOK_TRY(const BytecodeType* type, Type(ref));
  if (type->kind == Kind::kValue) return &type->shape;
  std::string name = type->kind == Kind::kFunction ? "a function type" : "'" + type->name + "'";
  return file_.ErrorAt(ErrorCode::kBytecodeType, "bytecode: a value has type " + name, ref.from);
}

}  // namespace tokamak
