// Decodes bytecode attributes into AttrValues: codes of the dialects vhlo and builtin (sdy's are in
// bytecode_sdy.cc). VHLO enums become the corresponding StableHLO keywords of the text format.
#include <algorithm>
#include <bit>

#include "support/limits.h"
#include "text/bytecode_attr_decoder.h"
#include "text/mlir_enums.h"

namespace tokamak {
namespace {

using Kind = BytecodeType::Kind;

enum VhloAttrCode : uint64_t {
  kAttrArray = 1,
  kAttrBool = 2,
  kAttrDictionary = 6,
  kAttrFloat = 8,
  kAttrInteger = 9,
  kAttrOutputAlias = 10,
  kAttrString = 14,
  kAttrTensor = 15,
  kAttrType = 17,
  kAttrTypeExtensions = 18,
  kAttrResultAccuracy = 20,
  kAttrSubAxis = 21,
  kAttrAxisRef = 22,
  kAttrReplicaGroupMeshAxes = 23,
  kAttrMeshAxis = 24,
  kAttrMesh = 25,
};

AttrValue IntOf(int64_t value) {
  return {IntAttr{value, "i64"}};
}

// The elements of a vector of integers; any other value unchanged.
AttrValue ListOfLiteral(const AttrValue& value) {
  const auto* literal = value.As<Literal>();
  if (literal == nullptr || literal->is_splat() || !IsInteger(literal->type())) return value;
  DenseArrayAttr list;
  list.type = "i64";
  for (int64_t i = 0; i < literal->shape().ElementCount(); ++i)
    list.ints.push_back(literal->IntAt(i));
  return {std::move(list)};
}

// i1: eight elements per byte, low bits first; a splat is 0x00 or 0xFF.
Bytes UnpackBits(std::span<const std::byte> packed, size_t count) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = (packed[i / 8] >> (i % 8)) & std::byte{1};
  return Bytes::FromVector(std::move(out));
}

// Elements of fewer than 8 bits, with the unused high bits cleared.
Bytes MaskBits(const Bytes& data, int bits) {
  const auto mask = static_cast<std::byte>((1 << bits) - 1);
  auto clean = [mask](std::byte b) { return (b & ~mask) == std::byte{0}; };
  if (std::all_of(data.data(), data.data() + data.size(), clean)) return data;
  std::vector<std::byte> out(data.data(), data.data() + data.size());
  for (std::byte& b : out) b &= mask;
  return Bytes::FromVector(std::move(out));
}

}  // namespace

Result<BytecodeAttr> BytecodeTables::AttrDecoder::Decode() {
  const size_t start = in_.offset();
  if (!entry_.custom) {
    std::string_view text = in_.NulTerminated();
    return ErrorAt(ErrorCode::kBytecodeAttribute,
                   "attribute '" + std::string(text.substr(0, 60)) + "' is written as text", start);
  }
  const uint64_t code = in_.Varint();
  TOK_RETURN_IF_ERROR(file_.Whole(in_, "attribute"));
  Status status = Ok();
  switch (file_.dialect_kinds[entry_.dialect]) {
    case BytecodeFile::Dialect::kVhlo:
      status = Vhlo(code);
      break;
    case BytecodeFile::Dialect::kBuiltin:
      status = Builtin(code);
      break;
    case BytecodeFile::Dialect::kSdy:
      status = Sdy(code);
      break;
    case BytecodeFile::Dialect::kOther:
      status = Unknown(code);
      break;
  }
  if (!status.ok()) return std::move(status.error());
  TOK_RETURN_IF_ERROR(file_.Finish(in_, "attribute"));
  return std::move(out_);
}

Error BytecodeTables::AttrDecoder::ErrorAt(ErrorCode code, std::string message,
                                           size_t offset) const {
  return file_.ErrorAt(code, "bytecode: " + std::move(message), offset);
}

Error BytecodeTables::AttrDecoder::Unknown(uint64_t code) const {
  return ErrorAt(ErrorCode::kBytecodeAttribute,
                 "attribute " + std::to_string(code) + " of dialect '" +
                     std::string(file_.dialects[entry_.dialect]) + "' is not known",
                 entry_.begin);
}

Status BytecodeTables::AttrDecoder::AddWeight(uint64_t weight) {
  if (weight > kMaxAttributeWeight - std::min(out_.weight, kMaxAttributeWeight))
    return ErrorAt(ErrorCode::kTooLarge, "an attribute contains too many attributes", entry_.begin);
  out_.weight += static_cast<uint32_t>(weight);
  return Ok();
}

// The attribute that the reference at the cursor denotes, to be copied.
Result<const BytecodeAttr*> BytecodeTables::AttrDecoder::Child() {
  return Child(Ref());
}
Result<const BytecodeAttr*> BytecodeTables::AttrDecoder::Child(BytecodeRef ref) {
  TOK_RETURN_IF_ERROR(file_.Whole(in_, "attribute"));
  TOK_TRY(const BytecodeAttr* child, tables_.Attribute(ref));
  TOK_RETURN_IF_ERROR(AddWeight(child->weight));
  return child;
}

Result<std::string_view> BytecodeTables::AttrDecoder::StringAt() {
  const BytecodeRef ref = Ref();
  TOK_RETURN_IF_ERROR(file_.Whole(in_, "attribute"));
  if (ref.index >= file_.strings.size()) {
    return ErrorAt(
        ErrorCode::kBytecodeIndex,
        "string " + std::to_string(ref.index) + " of " + std::to_string(file_.strings.size()),
        ref.from);
  }
  TOK_RETURN_IF_ERROR(AddWeight(file_.strings[ref.index].size() / 64));
  return file_.strings[ref.index];
}

Result<AttrList> BytecodeTables::AttrDecoder::List() {
  AttrList list;
  const size_t count = in_.Count();
  list.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    TOK_TRY(const BytecodeAttr* child, Child());
    list.push_back(child->value);
  }
  return list;
}

Status BytecodeTables::AttrDecoder::Dictionary() {
  AttrDict dict;
  const size_t count = in_.Count(2);
  dict.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    TOK_TRY(std::string_view name, tables_.String(Ref()));
    TOK_RETURN_IF_ERROR(AddWeight(1 + name.size() / 64));
    TOK_TRY(const BytecodeAttr* child, Child());
    dict.push_back({std::string(name), child->value});
  }
  auto less = [](const AttrEntry& a, const AttrEntry& b) { return a.name < b.name; };
  std::stable_sort(dict.begin(), dict.end(), less);
  for (size_t i = 1; i < dict.size(); ++i) {
    if (dict[i].name == dict[i - 1].name) {
      return ErrorAt(ErrorCode::kBytecodeKind,
                     "a dictionary contains '" + dict[i].name.substr(0, 60) + "' twice",
                     entry_.begin);
    }
  }
  out_.value.value = std::move(dict);
  return Ok();
}

Result<AttrValue> BytecodeTables::AttrDecoder::SignedList() {
  DenseArrayAttr list;
  list.type = "i64";
  list.ints.resize(in_.Count());
  for (int64_t& v : list.ints) v = in_.SignedVarint();
  TOK_RETURN_IF_ERROR(AddWeight(list.ints.size() / 8));
  return AttrValue{std::move(list)};
}

Status BytecodeTables::AttrDecoder::Integer() {
  TOK_TRY(const BytecodeType* type, tables_.Type(Ref()));
  if ((type->kind != Kind::kElement && type->kind != Kind::kIndex) || IsFloatType(*type))
    return ErrorAt(ErrorCode::kBytecodeType, "integer of type '" + type->name + "'", entry_.begin);
  const int bits = InfoOf(type->shape.type()).bits;
  uint64_t value = in_.Integer(bits);
  if (type->shape.type() == ElementType::kPred) {
    out_.value.value = (value & 1) != 0;
    return Ok();
  }
  value <<= 64 - bits;
  const bool is_unsigned = IsUnsigned(type->shape.type());
  IntAttr out;
  out.value = is_unsigned ? static_cast<int64_t>(value >> (64 - bits))
                          : static_cast<int64_t>(value) >> (64 - bits);
  out.type = type->name;
  out_.value.value = std::move(out);
  return Ok();
}

bool BytecodeTables::AttrDecoder::IsFloatType(const BytecodeType& type) {
  return type.kind == Kind::kElement && (IsReal(type.shape.type()) || IsComplex(type.shape.type()));
}

Status BytecodeTables::AttrDecoder::Float() {
  TOK_TRY(const BytecodeType* type, tables_.Type(Ref()));
  if (!IsFloatType(*type) || IsComplex(type->shape.type()))
    return ErrorAt(ErrorCode::kBytecodeType, "float of type '" + type->name + "'", entry_.begin);
  FloatAttr out;
  out.type = type->shape.type();
  out.value = DecodeFloat(out.type, in_.Integer(InfoOf(out.type).bits));
  out_.value.value = out;
  return Ok();
}

Status BytecodeTables::AttrDecoder::Enum(uint64_t code) {
  const uint64_t number = in_.Varint();
  for (const MlirEnum& row : kVhloEnums) {
    if (row.vhlo_code != code) continue;
    if (number >= row.words.size() || row.words[number].empty()) {
      return ErrorAt(ErrorCode::kBytecodeNumber,
                     std::string(row.kind) + " has no value " + std::to_string(number),
                     entry_.begin);
    }
    out_.value.value = EnumAttr{std::string(row.kind), std::string(row.words[number])};
    return Ok();
  }
  return Unknown(code);
}

Status BytecodeTables::AttrDecoder::Tensor() {
  const BytecodeRef ref = Ref();
  const auto blob = in_.Blob();
  TOK_RETURN_IF_ERROR(file_.Whole(in_, "attribute"));
  TOK_TRY(const Shape* shape, tables_.ValueType(ref));
  if (!shape->IsStaticArray() || shape->quant() != nullptr) {
    return ErrorAt(ErrorCode::kBytecodeConstant, "constant of type " + ToString(*shape),
                   entry_.begin);
  }
  const auto count = static_cast<uint64_t>(shape->ElementCount());
  const auto width = static_cast<uint64_t>(BytesOf(shape->type()));
  const bool is_pred = shape->type() == ElementType::kPred;
  const uint64_t whole = is_pred ? (count + 7) / 8 : count * width;
  // A splat stores one element. For up to eight preds the encodings are indistinguishable, but 0x00
  // and 0xFF decode to the same value either way.
  const bool is_splat = blob.size() == width && count != 1 && whole != width;
  if (blob.size() != whole && !is_splat) {
    return ErrorAt(ErrorCode::kBytecodeConstant,
                   "constant of type " + ToString(*shape) + " takes " + std::to_string(whole) +
                       " bytes, " + std::to_string(blob.size()) + " are there",
                   entry_.begin);
  }
  const Bytes window = file_.bytes.Window(
      blob.empty() ? 0 : static_cast<size_t>(blob.data() - file_.bytes.data()), blob.size());
  if (is_splat) {
    Bytes element = is_pred ? UnpackBits(blob, 1) : window;
    out_.value.value = Literal::Splat(*shape, Cleaned(std::move(element), shape->type()));
  } else {
    Bytes data = is_pred ? UnpackBits(blob, count) : window;
    out_.value.value = Literal::Array(*shape, Cleaned(std::move(data), shape->type()));
  }
  return AddWeight(2);
}

Bytes BytecodeTables::AttrDecoder::Cleaned(Bytes data, ElementType type) {
  const int bits = InfoOf(type).bits;
  return bits < 8 && type != ElementType::kPred ? MaskBits(data, bits) : data;
}

Status BytecodeTables::AttrDecoder::TypeAttr() {
  TOK_TRY(const BytecodeType* type, tables_.Type(Ref()));
  out_.type = type;
  if (type->kind == Kind::kOther) {
    out_.value.value = type->name;
  } else if (type->kind != Kind::kFunction) {
    out_.value.value = type->shape;
  }
  return Ok();
}

Status BytecodeTables::AttrDecoder::OutputAlias() {
  AttrDict fields;
  TOK_TRY(AttrValue outputs, SignedList());
  Set(fields, "output_tuple_indices", std::move(outputs));
  Set(fields, "operand_index", IntOf(in_.SignedVarint()));
  TOK_TRY(AttrValue operands, SignedList());
  Set(fields, "operand_tuple_indices", std::move(operands));
  return Record("stablehlo.output_operand_alias", std::move(fields));
}

Status BytecodeTables::AttrDecoder::ResultAccuracy() {
  AttrDict fields;
  Set(fields, "atol", {FloatAttr{std::bit_cast<double>(in_.Integer(64)), ElementType::kF64}});
  Set(fields, "rtol", {FloatAttr{std::bit_cast<double>(in_.Integer(64)), ElementType::kF64}});
  Set(fields, "ulps", IntOf(in_.SignedVarint()));
  TOK_TRY(const BytecodeAttr* mode, Child());
  Set(fields, "mode", mode->value);
  return Record("stablehlo.result_accuracy", std::move(fields));
}

Status BytecodeTables::AttrDecoder::Record(std::string kind, AttrDict fields) {
  TOK_RETURN_IF_ERROR(AddWeight(1 + 2 * fields.size()));
  out_.value.value = RecordAttr{std::move(kind), std::move(fields)};
  return Ok();
}

Status BytecodeTables::AttrDecoder::Vhlo(uint64_t code) {
  switch (code) {
    case kAttrArray: {
      TOK_TRY(AttrList list, List());
      out_.value.value = std::move(list);
      return Ok();
    }
    case kAttrBool:
      out_.value.value = in_.Varint() != 0;
      return Ok();
    case kAttrDictionary:
      return Dictionary();
    case kAttrFloat:
      return Float();
    case VhloAttrCode::kAttrInteger:
      return Integer();
    case kAttrOutputAlias:
      return OutputAlias();
    case kAttrString: {
      TOK_TRY(std::string_view text, StringAt());
      out_.value.value = std::string(text);
      return Ok();
    }
    case kAttrTensor:
      return Tensor();
    case kAttrType:
      return TypeAttr();
    case kAttrTypeExtensions: {
      TOK_TRY(out_.value, SignedList());
      return Ok();
    }
    case kAttrResultAccuracy:
      return ResultAccuracy();
    case kAttrSubAxis:
    case kAttrAxisRef:
    case kAttrReplicaGroupMeshAxes:
    case kAttrMeshAxis:
    case kAttrMesh:
      return VhloMesh(code);
    default:
      return Enum(code);
  }
}

// Mesh axes by which collectives name their groups: the same records as sdy's (text/mlir_sdy.h).
Status BytecodeTables::AttrDecoder::VhloMesh(uint64_t code) {
  AttrDict fields;
  auto set_child = [&](std::string name) -> Status {
    TOK_TRY(const BytecodeAttr* child, Child());
    Set(fields, std::move(name), child->value);
    return Ok();
  };
  switch (code) {
    case kAttrSubAxis:
      Set(fields, "pre_size", IntOf(in_.SignedVarint()));
      Set(fields, "size", IntOf(in_.SignedVarint()));
      return Record("stablehlo.sub_axis_info", std::move(fields));
    case kAttrAxisRef: {
      TOK_RETURN_IF_ERROR(set_child("name"));
      if (in_.Varint() == 0) return Record("sdy.axis", std::move(fields));
      TOK_TRY(const BytecodeAttr* part, Child());
      const auto* sizes = part->value.As<RecordAttr>();
      if (sizes == nullptr)
        return ErrorAt(ErrorCode::kBytecodeKind, "expected a sub-axis", entry_.begin);
      for (const AttrEntry& size : sizes->fields) Set(fields, size.name, size.value);
      return Record("sdy.axis", std::move(fields));
    }
    case kAttrReplicaGroupMeshAxes:
      TOK_RETURN_IF_ERROR(set_child("mesh_name"));
      TOK_RETURN_IF_ERROR(set_child("axes"));
      return Record("stablehlo.replica_group_mesh_axes", std::move(fields));
    case kAttrMeshAxis:
      TOK_RETURN_IF_ERROR(set_child("name"));
      Set(fields, "size", IntOf(in_.SignedVarint()));
      return Record("sdy.mesh_axis", std::move(fields));
    default: {
      TOK_RETURN_IF_ERROR(set_child("axes"));
      const BytecodeRef ref = Ref();
      if ((ref.index & 1) != 0) {
        TOK_TRY(const BytecodeAttr* ids, Child({ref.index >> 1, ref.from}));
        Set(fields, "device_ids", ListOfLiteral(ids->value));
      }
      return Record("sdy.mesh", std::move(fields));
    }
  }
}

enum BuiltinCode : uint64_t {
  kBuiltinBuiltinArray = 0,
  kBuiltinBuiltinDictionary = 1,
  kBuiltinBuiltinString = 2,
  kBuiltinStringWithType = 3,
  kBuiltinFlatSymbol = 4,
  kBuiltinSymbol = 5,
  kBuiltinBuiltinType = 6,
  kBuiltinUnit = 7,
  kBuiltinBuiltinInteger = 8,
  kBuiltinBuiltinFloat = 9,
  kBuiltinDenseArray = 17,
  kBuiltinDenseElements = 18,
};

Status BytecodeTables::AttrDecoder::Builtin(uint64_t code) {
  switch (code) {
    case kBuiltinBuiltinArray:
      return Vhlo(kAttrArray);
    case kBuiltinBuiltinDictionary:
      return Dictionary();
    case kBuiltinBuiltinString:
      return Vhlo(kAttrString);
    case kBuiltinStringWithType: {
      TOK_RETURN_IF_ERROR(Vhlo(kAttrString));
      TOK_TRY([[maybe_unused]] const BytecodeType* type, tables_.Type(Ref()));
      return Ok();
    }
    case kBuiltinFlatSymbol:
    case kBuiltinSymbol: {
      TOK_TRY(std::string_view name, tables_.String(Ref()));
      SymbolAttr symbol{std::string(name)};
      if (code == kBuiltinSymbol) {
        TOK_TRY(AttrList nested, List());
        for (const AttrValue& part : nested)
          if (const auto* s = part.As<SymbolAttr>()) symbol.name += "::" + s->name;
      }
      TOK_RETURN_IF_ERROR(AddWeight(symbol.name.size() / 64));
      out_.value.value = std::move(symbol);
      return Ok();
    }
    case kBuiltinBuiltinType:
      return TypeAttr();
    case kBuiltinUnit:
      return Ok();  // a default-constructed AttrValue
    case kBuiltinBuiltinInteger:
      return Integer();
    case kBuiltinBuiltinFloat:
      return Float();
    case kBuiltinDenseArray:
      return DenseArray();
    case kBuiltinDenseElements:
      return Tensor();
    default:
      if (IsLocation(code)) return Location(code);
      return Unknown(code);
  }
}

Status BytecodeTables::AttrDecoder::DenseArray() {
  TOK_TRY(const BytecodeType* type, tables_.Type(Ref()));
  const uint64_t count = in_.Varint();
  const auto blob = in_.Blob();
  if (type->kind != Kind::kElement || IsComplex(type->shape.type()))
    return ErrorAt(ErrorCode::kBytecodeType, "array of '" + type->name + "'", entry_.begin);
  const ElementType element = type->shape.type();
  const auto width = static_cast<size_t>(BytesOf(element));
  if (blob.size() / width != count || blob.size() % width != 0) {
    return ErrorAt(ErrorCode::kBytecodeConstant,
                   "array of " + std::to_string(count) + " elements has " +
                       std::to_string(blob.size()) + " bytes",
                   entry_.begin);
  }
  DenseArrayAttr out;
  out.type = type->name;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, blob.data() + i * width, width);
    const int shift = 64 - InfoOf(element).bits;
    if (IsReal(element)) {
      out.floats.push_back(DecodeFloat(element, bits));
    } else if (IsSigned(element)) {
      out.ints.push_back(static_cast<int64_t>(bits << shift) >> shift);
    } else {
      out.ints.push_back(static_cast<int64_t>(bits));
    }
  }
  out_.value.value = std::move(out);
  return AddWeight(count / 8);
}

// ---- the tables -------------------------------------------------------------

BytecodeTables::BytecodeTables(const BytecodeFile& file)
    : file_(file),
      budget_(kMaxAttributeWeight + 16 * static_cast<uint64_t>(file.bytes.size())),
      types_(file.types.size()),
      attributes_(file.attributes.size()),
      open_types_(file.types.size()),
      open_attributes_(file.attributes.size()),
      origins_(file.attributes.size(), kUnknown),
      frames_(file.attributes.size(), kUnknown) {}

Status BytecodeTables::Charge(uint64_t weight, size_t from) {
  if (weight > budget_) {
    return file_.ErrorAt(ErrorCode::kTooLarge,
                         "bytecode: its attributes and types unfold to more than the limit", from);
  }
  budget_ -= weight;
  return Ok();
}

Result<const BytecodeAttr*> BytecodeTables::SlowAttribute(BytecodeRef ref) {
  if (ref.index >= attributes_.size()) {
    return file_.ErrorAt(ErrorCode::kBytecodeIndex,
                         "bytecode: attribute " + std::to_string(ref.index) + " of " +
                             std::to_string(attributes_.size()),
                         ref.from);
  }
  const BytecodeFile::Entry& entry = file_.attributes[ref.index];
  if (open_attributes_[ref.index])
    return file_.ErrorAt(ErrorCode::kBytecodeCycle, "bytecode: an attribute contains itself",
                         entry.begin);
  if (depth_ >= kMaxNesting) {
    return file_.ErrorAt(ErrorCode::kTooDeep, "bytecode: attributes are nested too deeply",
                         entry.begin);
  }
  open_attributes_[ref.index] = true;
  ++depth_;
  auto decoded = AttrDecoder(*this, entry).Decode();
  --depth_;
  open_attributes_[ref.index] = false;
  if (!decoded.ok()) return std::move(decoded.error());
  TOK_RETURN_IF_ERROR(Charge(decoded.value().weight, entry.begin));
  attributes_[ref.index] = std::make_unique<BytecodeAttr>(std::move(decoded).value());
  return attributes_[ref.index].get();
}

Result<std::string_view> BytecodeTables::String(BytecodeRef ref) {
  TOK_TRY(const BytecodeAttr* attr, Attribute(ref));
  if (const auto* text = attr->value.As<std::string>()) return std::string_view(*text);
  if (const auto* symbol = attr->value.As<SymbolAttr>()) return std::string_view(symbol->name);
  return file_.ErrorAt(ErrorCode::kBytecodeKind, "bytecode: a string is expected", ref.from);
}

Status BytecodeTables::DecodeAll() {
  for (size_t i = 0; i < types_.size(); ++i) {
    TOK_TRY([[maybe_unused]] const BytecodeType* type, Type({i, file_.types[i].begin}));
  }
  for (size_t i = 0; i < attributes_.size(); ++i) {
    TOK_TRY([[maybe_unused]] const BytecodeAttr* attr, Attribute({i, file_.attributes[i].begin}));
  }
  return Ok();
}

}  // namespace tokamak
