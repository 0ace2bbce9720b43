#include "text/mlir_attribute_forms.h"

#include <algorithm>

#include "support/limits.h"
#include "text/mlir_attribute_table.h"

namespace tokamak {
namespace {

// The field of the channel's record, or the attribute that VHLO has instead.
int64_t ChannelField(MlirAttrReader& in, std::string_view field, std::string_view flat) {
  const bool has_record = in.Take("channel_handle") != nullptr;
  const AttrValue* value = has_record ? in.TakeField("channel_handle", field) : in.Take(flat);
  return value == nullptr ? 0 : in.Of<int64_t>(flat, *value);
}

std::optional<AttrValue> ChannelOf(int64_t id, int64_t type) {
  if (id == 0 && type == 0) return std::nullopt;
  RecordAttr record{"stablehlo.channel_handle", {}};
  Set(record.fields, "handle", EncodeAttr(id));
  Set(record.fields, "type", EncodeAttr(type));
  return AttrValue{std::move(record)};
}

constexpr std::string_view kDirections[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};

}  // namespace

template <>
CustomCallAttrs MlirDefault() {
  CustomCallAttrs attrs;
  attrs.api_version = CustomCallApi::kOriginal;
  return attrs;
}
template <>
SortAttrs MlirDefault() {
  return {.dimension = -1};
}

bool FitsWindow(MlirAttrReader& in, std::string_view name, size_t size, bool grows,
                Window& window) {
  if (size == 0) return false;
  if (grows && size > window.size() && size <= static_cast<size_t>(kMaxRank)) window.resize(size);
  if (size == window.size()) return true;
  in.Fail(name, "has " + std::to_string(size) + " entries for a window of " +
                    std::to_string(window.size()) + " dimensions");
  return false;
}

void ReadBackendConfig(MlirAttrReader& in, CustomCallAttrs& attrs) {
  if (const AttrValue* config = in.Take("backend_config")) {
    if (const auto* text = config->As<std::string>()) {
      attrs.backend_config = *text;
    } else if (const auto* dict = config->As<AttrDict>()) {
      attrs.backend_dict = *dict;
    } else {
      in.Fail("backend_config", "expected a string or a dictionary");
    }
  }
  // JAX stores the attributes of a typed call here, whatever api_version says.
  if (const AttrValue* config = in.Take("mhlo.backend_config")) {
    attrs.api_version = CustomCallApi::kTypedFfi;
    attrs.backend_dict = in.Of<AttrDict>("mhlo.backend_config", *config);
  }
}
std::optional<AttrValue> WriteBackendConfig(Op, const CustomCallAttrs& attrs) {
  if (attrs.api_version == CustomCallApi::kTypedFfi || !attrs.backend_dict.empty())
    return AttrValue{attrs.backend_dict};
  if (attrs.backend_config.empty()) return std::nullopt;
  return AttrValue{attrs.backend_config};
}

void ReadAlgorithm(MlirAttrReader& in, DotAttrs& attrs) {
  RecordAttr flat;
  auto take = [&](const auto& row) {
    if (const AttrValue* field = in.TakeField("algorithm", row.facts.name))
      Set(flat.fields, std::string(row.facts.name), *field);
  };
  std::apply([&](const auto&... row) { (take(row), ...); },
             mlir_table::RecordFields<DotAlgorithm>::Rows());
  const AttrValue* type = Find(flat.fields, "lhs_precision_type");
  if (type == nullptr || in.Of<std::string>("lhs_precision_type", *type) == "none") return;
  auto algorithm = in.Of<DotAlgorithm>("algorithm", {std::move(flat)});
  if (algorithm.rhs_type.empty()) in.Fail("algorithm", "expected a rhs_precision_type");
  if (algorithm.accumulation_type.empty()) in.Fail("algorithm", "expected an accumulation_type");
  attrs.algorithm = std::move(algorithm);
}
std::optional<AttrValue> WriteAlgorithm(Op, const DotAttrs& attrs) {
  if (!attrs.algorithm) return std::nullopt;
  return EncodeAttr(*attrs.algorithm);
}

void ReadReplicaGroups(MlirAttrReader& in, CollectiveAttrs& attrs) {
  ReplicaGroups& groups = attrs.groups;
  const AttrValue* value = in.Take("replica_groups");
  if (value == nullptr) return;
  if (const auto* record = value->As<RecordAttr>()) {
    const AttrValue* mesh = Find(record->fields, "mesh_name");
    if (mesh == nullptr) mesh = Find(record->fields, "mesh");
    if (mesh == nullptr) return in.Fail("replica_groups", "expected the name of a mesh");
    groups.mesh = in.Of<std::string>("replica_groups", *mesh);
    const AttrValue* axes = Find(record->fields, "axes");
    std::optional<std::vector<AxisRef>> list;
    if (axes != nullptr) list = AxesFromAttr(*axes);
    if (!list) return in.Fail("replica_groups", "expected a list of axes");
    groups.axes = std::move(*list);
    return;
  }
  groups.lists = in.Of<std::vector<Dims>>("replica_groups", *value);
  // Groups of unequal sizes are padded with -1.
  for (Dims& group : groups.lists) std::erase(group, -1);
  std::erase_if(groups.lists, [](const Dims& group) { return group.empty(); });
}
// Groups by mesh axes have no written form here; the op is then printed in our own dialect.
std::optional<AttrValue> WriteReplicaGroups(Op, const CollectiveAttrs& attrs) {
  return EncodeAttr(attrs.groups.lists);
}

void ReadChannel(MlirAttrReader& in, CollectiveAttrs& attrs) {
  attrs.channel_id = ChannelField(in, "handle", "channel_id");
}
std::optional<AttrValue> WriteChannel(Op, const CollectiveAttrs& attrs) {
  return ChannelOf(attrs.channel_id, attrs.channel_id == 0 ? 0 : 1);
}
void ReadChannel(MlirAttrReader& in, PermuteAttrs& attrs) {
  attrs.channel_id = ChannelField(in, "handle", "channel_id");
  if (in.op() != Op::kCollectivePermute)
    attrs.channel_type = ChannelField(in, "type", "channel_type");
}
std::optional<AttrValue> WriteChannel(Op op, const PermuteAttrs& attrs) {
  int64_t type = attrs.channel_type;
  if (op == Op::kCollectivePermute) type = attrs.channel_id == 0 ? 0 : 1;
  return ChannelOf(attrs.channel_id, type);
}

void ReadDirection(MlirAttrReader& in, ShardingOpAttrs& attrs) {
  const AttrValue* value = in.Take("allowed_direction");
  if (value == nullptr) return;
  const auto* number = value->As<IntAttr>();
  if (number != nullptr && number->value >= 0 && number->value < std::ssize(kDirections)) {
    attrs.direction = kDirections[number->value];
  } else {
    attrs.direction = in.Of<std::string>("allowed_direction", *value);
  }
}
std::optional<AttrValue> WriteDirection(Op, const ShardingOpAttrs& attrs) {
  return EncodeAttr(attrs.direction, "sdy.propagation_direction");
}

void CompleteSlice(MlirAttrReader&, SliceAttrs& attrs) {
  if (attrs.strides.empty()) attrs.strides.assign(attrs.starts.size(), 1);
}
void CompletePad(MlirAttrReader&, PadAttrs& attrs) {
  if (attrs.interior.empty()) attrs.interior.assign(attrs.low.size(), 0);
}

void DropImpliedType(MlirAttrReader& in, CompareAttrs& attrs) {
  if (attrs.type == CompareType::kNone || attrs.type == CompareType::kTotalOrder) return;
  ElementType type = in.OperandShape(0).type();
  CompareType usual = CompareType::kFloat;
  if (IsSigned(type)) usual = CompareType::kSigned;
  if (IsUnsigned(type) || type == ElementType::kPred) usual = CompareType::kUnsigned;
  if (attrs.type == usual) attrs.type = CompareType::kNone;
}

void BeginWindow(MlirAttrReader& in, WindowAttrs& attrs) {
  if (const AttrValue* sizes = in.Take("window_dimensions")) {
    attrs.window.resize(in.Of<Dims>("window_dimensions", *sizes).size());
  } else if (in.op() == Op::kSelectAndScatter) {
    attrs.window.resize(static_cast<size_t>(in.OperandShape(0).rank()));
  } else {
    in.Missing("window_dimensions");
  }
}
void BeginConvolution(MlirAttrReader&, ConvolutionAttrs& attrs) {
  attrs.window.resize(attrs.dims.kernel_spatial.size());
}
void TakeKernelSizes(MlirAttrReader& in, ConvolutionAttrs& attrs) {
  const Shape& kernel = in.OperandShape(1);
  for (size_t i = 0; i < attrs.dims.kernel_spatial.size(); ++i) {
    int64_t dimension = attrs.dims.kernel_spatial[i];
    if (dimension >= 0 && dimension < kernel.rank())
      attrs.window[i].size = kernel.dim(static_cast<size_t>(dimension));
  }
}

void CountFromLast(MlirAttrReader& in, SortAttrs& attrs) {
  if (attrs.dimension < 0) attrs.dimension += in.OperandShape(0).rank();
}

// chlo.scan: inputs, then initial carries.
void CountCarries(MlirAttrReader& in, ScanAttrs& attrs) {
  if (const AttrValue* value = in.Take("operandSegmentSizes")) {
    Dims segments = in.Of<Dims>("operandSegmentSizes", *value);
    if (segments.size() == 2) attrs.num_carries = segments[1];
  }
  (void)in.Take("resultSegmentSizes");
}

void KindFromName(MlirAttrReader& in, CheckAttrs& attrs) {
  auto has = [&](std::string_view part) { return in.name().find(part) != std::string_view::npos; };
  if (has("almost_eq")) attrs.kind = CheckKind::kAlmostEqual;
  if (has("close")) attrs.kind = CheckKind::kClose;
  if (has("serialized")) attrs.kind = CheckKind::kSerializedEqual;
}

}  // namespace tokamak
