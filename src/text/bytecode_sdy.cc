// Decodes attributes of sdy into the records of text/mlir_sdy.h.
#include "text/bytecode_attr_decoder.h"

namespace tokamak {
namespace {

enum SdyCode : uint64_t {
  kSdyManualAxes = 0,
  kSdyMeshAxis = 1,
  kSdyMesh = 2,
  kSdySubAxis = 3,
  kSdyAxisRef = 4,
  kSdyDimension = 5,
  kSdySharding = 6,
  kSdyPerValue = 7,
  kSdyDimMapping = 8,
  kSdyTensorMapping = 9,
  kSdyRule = 10,
  kSdyAxisList = 11,
  kSdyAxisLists = 12,
  kSdyAllToAll = 13,
  kSdyAllToAlls = 14,
  kSdyShardingV2 = 15,  // with unreduced axes
  kSdyPerValueV2 = 16,
  kSdyShardingV3 = 17,  // and the pending reduction kind
};

}  // namespace

// Stores a list of attributes in the record under `name`.
Status BytecodeTables::AttrDecoder::SetList(AttrDict& fields, std::string name, bool keep_empty) {
  TOK_TRY(AttrList list, List());
  if (keep_empty || !list.empty()) Set(fields, std::move(name), {std::move(list)});
  return Ok();
}

Status BytecodeTables::AttrDecoder::SdyAxisRef() {
  AttrDict fields;
  TOK_TRY(std::string_view name, StringAt());
  Set(fields, "name", {std::string(name)});
  const BytecodeRef ref = Ref();
  if ((ref.index & 1) != 0) {
    TOK_TRY(const BytecodeAttr* part, Child({ref.index >> 1, ref.from}));
    const auto* sizes = part->value.As<DenseArrayAttr>();
    if (sizes == nullptr || sizes->ints.size() != 2)
      return ErrorAt(ErrorCode::kBytecodeKind, "sdy: expected a sub-axis", ref.from);
    Set(fields, "pre_size", {IntAttr{sizes->ints[0], "i64"}});
    Set(fields, "size", {IntAttr{sizes->ints[1], "i64"}});
  }
  return Record("sdy.axis", std::move(fields));
}

Status BytecodeTables::AttrDecoder::SdySharding(uint64_t code) {
  AttrDict fields;
  TOK_TRY(const BytecodeAttr* mesh, Child());
  Set(fields, "mesh", mesh->value);
  TOK_RETURN_IF_ERROR(SetList(fields, "dims", true));
  TOK_RETURN_IF_ERROR(SetList(fields, "replicated", false));
  if (code != kSdySharding) TOK_RETURN_IF_ERROR(SetList(fields, "unreduced", false));
  if (code == kSdyShardingV3) {
    // 0 is the default; the meaning of other numbers is undocumented.
    if (const int64_t reduction = in_.SignedVarint(); reduction != 0) {
      return ErrorAt(ErrorCode::kBytecodeNumber,
                     "sdy: reduction " + std::to_string(reduction) + " is not known", entry_.begin);
    }
  }
  return Record("sdy.sharding", std::move(fields));
}

Status BytecodeTables::AttrDecoder::SdyDimension() {
  AttrDict fields;
  TOK_RETURN_IF_ERROR(SetList(fields, "axes", true));
  Set(fields, "closed", {in_.Byte() != 0});
  const uint64_t priority = in_.Varint();
  if ((priority & 1) != 0)
    Set(fields, "priority", {IntAttr{static_cast<int64_t>(priority >> 1), "i64"}});
  return Record("sdy.dim", std::move(fields));
}

Status BytecodeTables::AttrDecoder::SdyRule() {
  AttrDict fields;
  TOK_TRY(AttrValue sizes, SignedList());
  Set(fields, "factor_sizes", std::move(sizes));
  TOK_RETURN_IF_ERROR(SetList(fields, "operands", true));
  TOK_RETURN_IF_ERROR(SetList(fields, "results", true));
  for (const char* name : {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
    TOK_TRY(AttrValue factors, SignedList());
    Set(fields, name, std::move(factors));
  }
  Set(fields, "custom", {in_.Byte() != 0});
  return Record("sdy.op_sharding_rule", std::move(fields));
}

Status BytecodeTables::AttrDecoder::Sdy(uint64_t code) {
  AttrDict fields;
  switch (code) {
    case kSdyManualAxes:
      TOK_RETURN_IF_ERROR(SetList(fields, "names", true));
      return Record("sdy.manual_axes", std::move(fields));
    case kSdyMeshAxis: {
      TOK_TRY(std::string_view name, StringAt());
      Set(fields, "name", {std::string(name)});
      Set(fields, "size", {IntAttr{in_.SignedVarint(), "i64"}});
      return Record("sdy.mesh_axis", std::move(fields));
    }
    case kSdyMesh: {
      TOK_RETURN_IF_ERROR(SetList(fields, "axes", true));
      TOK_TRY(AttrValue ids, SignedList());
      if (!ids.As<DenseArrayAttr>()->ints.empty()) Set(fields, "device_ids", std::move(ids));
      return Record("sdy.mesh", std::move(fields));
    }
    case kSdySubAxis: {
      DenseArrayAttr sizes;
      sizes.type = "i64";
      sizes.ints = {in_.SignedVarint(), 0};
      sizes.ints[1] = in_.SignedVarint();
      out_.value.value = std::move(sizes);
      return Ok();
    }
    case kSdyAxisRef:
      return SdyAxisRef();
    case kSdyDimension:
      return SdyDimension();
    case kSdySharding:
    case kSdyShardingV2:
    case kSdyShardingV3:
      return SdySharding(code);
    case kSdyPerValue:
    case kSdyPerValueV2:
      TOK_RETURN_IF_ERROR(SetList(fields, "values", true));
      return Record("sdy.sharding_per_value", std::move(fields));
    case kSdyDimMapping: {
      TOK_TRY(out_.value, SignedList());
      return Ok();
    }
    case kSdyTensorMapping:
    case kSdyAxisList:
    case kSdyAxisLists:
    case kSdyAllToAlls: {
      TOK_TRY(AttrList list, List());
      out_.value.value = std::move(list);
      return Ok();
    }
    case kSdyAllToAll:
      TOK_RETURN_IF_ERROR(SetList(fields, "axes", true));
      Set(fields, "src_dim", {IntAttr{in_.SignedVarint(), "i64"}});
      Set(fields, "tgt_dim", {IntAttr{in_.SignedVarint(), "i64"}});
      return Record("sdy.all_to_all_param", std::move(fields));
    case kSdyRule:
      return SdyRule();
    default:
      return Unknown(code);
  }
}

}  // namespace tokamak
