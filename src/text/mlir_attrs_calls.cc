// Converts the attributes of calls, collectives, shardings and checks.

#include <algorithm>

#include "text/mlir_ops.h"
#include "text/mlir_sdy.h"

namespace tokamak {
namespace {

// Converts each entry of a list to a T; empty if absent.
template <typename T, typename Fn>
std::vector<T> ListOf(MlirAttrReader& in, std::string_view name, Fn read) {
  std::vector<T> items;
  const AttrValue* value = in.Take(name);
  if (value == nullptr) return items;
  const auto* list = value->As<AttrList>();
  if (list == nullptr) {
    in.Fail(name, "expected a list");
    return items;
  }
  for (const AttrValue& item : *list) items.push_back(read(item));
  return items;
}

std::optional<std::vector<Dims>> Layouts(MlirAttrReader& in, std::string_view name) {
  auto layouts =
      ListOf<Dims>(in, name, [&](const AttrValue& item) { return in.DimsOf(name, item); });
  if (layouts.empty()) return std::nullopt;
  return layouts;
}

OutputAlias ReadAlias(MlirAttrReader& in, const AttrValue& value) {
  OutputAlias alias;
  const auto* record = value.As<RecordAttr>();
  if (record == nullptr) {
    in.Fail("output_operand_aliases", "expected #stablehlo.output_operand_alias");
    return alias;
  }
  if (const AttrValue* field = Find(record->fields, "output_tuple_indices"))
    alias.output = in.DimsOf("output_tuple_indices", *field);
  if (const AttrValue* field = Find(record->fields, "operand_index"))
    alias.operand = in.IntOf("operand_index", *field);
  if (const AttrValue* field = Find(record->fields, "operand_tuple_indices"))
    alias.operand_index = in.DimsOf("operand_tuple_indices", *field);
  return alias;
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
    if (const auto* dict = config->As<AttrDict>()) {
      attrs.backend_dict = *dict;
      attrs.api_version = CustomCallApi::kTypedFfi;
    } else {
      in.Fail("mhlo.backend_config", "expected a dictionary");
    }
  }
}

ReplicaGroups ReadGroups(MlirAttrReader& in) {
  ReplicaGroups groups;
  const AttrValue* value = in.Take("replica_groups");
  if (value == nullptr) return groups;
  if (const auto* record = value->As<RecordAttr>()) {
    const AttrValue* mesh = Find(record->fields, "mesh_name");
    if (mesh == nullptr) mesh = Find(record->fields, "mesh");
    if (mesh != nullptr && mesh->As<SymbolAttr>() != nullptr) {
      groups.mesh = mesh->As<SymbolAttr>()->name;
    } else if (mesh != nullptr && mesh->As<std::string>() != nullptr) {
      groups.mesh = *mesh->As<std::string>();
    } else {
      in.Fail("replica_groups", "expected the name of a mesh");
    }
    const AttrValue* axes = Find(record->fields, "axes");
    std::optional<std::vector<AxisRef>> list;
    if (axes != nullptr) list = AxesFromAttr(*axes);
    if (list) groups.axes = std::move(*list);
    if (!list) in.Fail("replica_groups", "expected a list of axes");
    return groups;
  }
  groups.lists = in.DimListsOf("replica_groups", *value);
  // Groups of unequal sizes are padded with -1.
  for (Dims& group : groups.lists) std::erase(group, -1);
  std::erase_if(groups.lists, [](const Dims& group) { return group.empty(); });
  return groups;
}

struct Channel {
  int64_t id = 0, type = 0;
};
Channel ReadChannel(MlirAttrReader& in) {
  Channel channel;
  const AttrValue* record = in.Take("channel_handle");
  auto fields = [&](std::string_view field, std::string_view plain) -> int64_t {
    const AttrValue* value = nullptr;
    if (record == nullptr) {
      value = in.Take(plain);
    } else if (const auto* known = record->As<RecordAttr>()) {
      value = Find(known->fields, field);
    } else {
      in.Fail("channel_handle", "expected #stablehlo.channel_handle");
    }
    return value == nullptr ? 0 : in.IntOf(plain, *value);
  };
  channel.id = fields("handle", "channel_id");
  channel.type = fields("type", "channel_type");
  return channel;
}

}  // namespace

Sharding MlirAttrReader::ShardingOf(std::string_view name, const AttrValue& value) {
  std::optional<Sharding> sharding = ShardingFromAttr(value);
  if (!sharding) Fail(name, "expected #sdy.sharding");
  return sharding ? std::move(*sharding) : Sharding{};
}

template <>
Attrs ReadMlirAttrs<CustomCallAttrs>(MlirAttrReader& in) {
  CustomCallAttrs attrs;
  attrs.target = in.String("call_target_name");
  if (attrs.target.empty()) in.Missing("call_target_name");
  attrs.has_side_effect = in.Bool("has_side_effect");
  attrs.api_version = in.Enum("api_version", CustomCallApi::kOriginal);
  ReadBackendConfig(in, attrs);
  attrs.schedule = in.Enum("custom_call_schedule", CustomCallSchedule::kNone);
  attrs.operand_layouts = Layouts(in, "operand_layouts");
  attrs.result_layouts = Layouts(in, "result_layouts");
  attrs.output_aliases = ListOf<OutputAlias>(
      in, "output_operand_aliases", [&](const AttrValue& item) { return ReadAlias(in, item); });
  in.Take("called_computations");  // read by the builder
  auto tilings = ListOf<std::vector<Dims>>(in, "result_tilings", [&](const AttrValue& item) {
    return in.DimListsOf("result_tilings", item);
  });
  if (!tilings.empty()) attrs.result_tilings = std::move(tilings);
  return attrs;
}

template <>
Attrs ReadMlirAttrs<CompositeAttrs>(MlirAttrReader& in) {
  CompositeAttrs attrs;
  attrs.name = in.String("name");
  if (attrs.name.empty()) in.Missing("name");
  attrs.version = in.Int("version", 0);
  if (const AttrValue* value = in.Take("composite_attributes")) {
    if (const auto* dict = value->As<AttrDict>()) {
      attrs.attributes = *dict;
    } else {
      in.Fail("composite_attributes", "expected a dictionary");
    }
  }
  return attrs;
}

template <>
Attrs ReadMlirAttrs<AsyncAttrs>(MlirAttrReader& in) {
  AsyncAttrs attrs;
  attrs.execution_thread = in.String("execution_thread");
  return attrs;
}

template <>
Attrs ReadMlirAttrs<FeedAttrs>(MlirAttrReader& in) {
  FeedAttrs attrs;
  bool out = in.op() == Op::kOutfeed;
  attrs.config = in.String(out ? "outfeed_config" : "infeed_config");
  if (!out) attrs.layout = Layouts(in, "layout");
  return attrs;
}

template <>
Attrs ReadMlirAttrs<CollectiveAttrs>(MlirAttrReader& in) {
  CollectiveAttrs attrs;
  attrs.groups = ReadGroups(in);
  // VHLO and HLO have no channel type here: it carries no further information.
  attrs.channel_id = ReadChannel(in).id;
  attrs.use_global_device_ids = in.Bool("use_global_device_ids");
  if (in.op() == Op::kAllGather) attrs.dimensions = {in.RequiredInt("all_gather_dim")};
  if (in.op() == Op::kReduceScatter) attrs.dimensions = {in.RequiredInt("scatter_dimension")};
  if (in.op() == Op::kAllToAll) {
    attrs.dimensions = {in.RequiredInt("split_dimension")};
    attrs.concat_dimension = in.RequiredInt("concat_dimension");
    attrs.split_count = in.RequiredInt("split_count");
  }
  attrs.has_dynamic_root = in.Bool("has_dynamic_root");
  return attrs;
}

template <>
Attrs ReadMlirAttrs<PermuteAttrs>(MlirAttrReader& in) {
  PermuteAttrs attrs;
  Channel channel = ReadChannel(in);
  attrs.channel_id = channel.id;
  if (in.op() != Op::kCollectivePermute) attrs.channel_type = channel.type;
  attrs.source_target_pairs = in.DimLists("source_target_pairs");
  attrs.is_host_transfer = in.Bool("is_host_transfer");
  return attrs;
}

template <>
Attrs ReadMlirAttrs<ManualComputationAttrs>(MlirAttrReader& in) {
  ManualComputationAttrs attrs;
  auto shardings = [&](std::string_view name) {
    const AttrValue* value = in.Take(name);
    std::optional<std::vector<Sharding>> list;
    if (value != nullptr) list = ShardingsFromAttr(*value);
    if (!list) in.Fail(name, "expected #sdy.sharding_per_value");
    return list ? std::move(*list) : std::vector<Sharding>{};
  };
  attrs.in_shardings = shardings("in_shardings");
  attrs.out_shardings = shardings("out_shardings");
  if (const AttrValue* value = in.Take("manual_axes")) {
    auto names = NamesFromAttr(*value);
    if (names) attrs.manual_axes = std::move(*names);
    if (!names) in.Fail("manual_axes", "expected #sdy.manual_axes");
  }
  return attrs;
}

template <>
Attrs ReadMlirAttrs<ShardingOpAttrs>(MlirAttrReader& in) {
  ShardingOpAttrs attrs;
  if (in.op() == Op::kShardingConstraint || in.op() == Op::kReshard) {
    const AttrValue* value = in.Take("sharding");
    if (value == nullptr) in.Missing("sharding");
    if (value != nullptr) attrs.sharding = in.ShardingOf("sharding", *value);
  } else if (in.op() == Op::kShardingGroup) {
    attrs.group = in.RequiredInt("group_id");
  } else {
    const AttrValue* value = in.Take("allowed_direction");
    static constexpr const char* kDirections[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
    const auto* number = value == nullptr ? nullptr : value->As<IntAttr>();
    if (number != nullptr && number->value >= 0 && number->value < 4) {
      attrs.direction = kDirections[number->value];
    } else {
      attrs.direction = in.Word("allowed_direction");
    }
  }
  return attrs;
}

template <>
Attrs ReadMlirAttrs<CheckAttrs>(MlirAttrReader& in) {
  CheckAttrs attrs;
  std::string_view name = in.name();
  if (name.find("almost_eq") != std::string_view::npos) attrs.kind = CheckKind::kAlmostEqual;
  if (name.find("close") != std::string_view::npos) attrs.kind = CheckKind::kClose;
  if (name.find("serialized") != std::string_view::npos) attrs.kind = CheckKind::kSerializedEqual;
  if (const AttrValue* value = in.Take("value")) {
    if (const auto* literal = value->As<Literal>()) {
      attrs.expected = *literal;
    } else {
      in.Fail("value", "expected dense elements");
    }
  }
  attrs.tolerance = in.Double("tolerance", -1);
  if (in.Take("min_ulp_difference") != nullptr) attrs.min_ulps = in.Int("min_ulp_difference", 0);
  if (in.Take("max_ulp_difference") != nullptr) attrs.max_ulps = in.Int("max_ulp_difference", 0);
  attrs.probe_id = in.String("probe_id");
  attrs.iteration = in.Int("iteration", in.Int("iter", 0));  // the pretty form uses "iter"
  return attrs;
}

template <>
Attrs ReadMlirAttrs<ProbeAttrs>(MlirAttrReader& in) {
  return ProbeAttrs{in.String("probe_id")};
}

// run_parallel: the builder reads the programs, which are symbols.
template <>
Attrs ReadMlirAttrs<RunParallelAttrs>(MlirAttrReader&) {
  return {};
}
// Ops that no dialect has: only ReadPlainAttrs reads them.
template <>
Attrs ReadMlirAttrs<ParameterAttrs>(MlirAttrReader&) {
  return {};
}
template <>
Attrs ReadMlirAttrs<RngStateAttrs>(MlirAttrReader&) {
  return {};
}
template <>
Attrs ReadMlirAttrs<FusionAttrs>(MlirAttrReader&) {
  return {};
}
template <>
Attrs ReadMlirAttrs<DomainAttrs>(MlirAttrReader&) {
  return {};
}

}  // namespace tokamak
