#include "text/mlir_sdy.h"

namespace tokamak {
namespace {

AttrValue Int(int64_t value) {
  return {IntAttr{.value = value}};
}
AttrValue SdyInts(const Dims& values) {
  return {DenseArrayAttr{.type = "i64", .ints = values, .floats = {}}};
}

template <typename T, typename Fn>
AttrValue ListOf(const std::vector<T>& items, Fn to_attr) {
  AttrList list;
  list.reserve(items.size());
  for (const T& item : items) list.push_back(to_attr(item));
  return {std::move(list)};
}

AttrValue AxisToAttr(const AxisRef& axis) {
  RecordAttr record{"sdy.axis", {}};
  Set(record.fields, "name", {axis.name});
  if (axis.pre_size != 0) {
    Set(record.fields, "pre_size", Int(axis.pre_size));
    Set(record.fields, "size", Int(axis.size));
  }
  return {std::move(record)};
}

AttrValue DimToAttr(const DimSharding& dim) {
  RecordAttr record{"sdy.dim", {}};
  Set(record.fields, "axes", ListOf(dim.axes, AxisToAttr));
  Set(record.fields, "closed", {dim.is_closed});
  if (dim.priority >= 0) Set(record.fields, "priority", Int(dim.priority));
  return {std::move(record)};
}

const RecordAttr* Record(const AttrValue* value, std::string_view kind) {
  if (value == nullptr) return nullptr;
  const auto* record = value->As<RecordAttr>();
  return record != nullptr && record->kind == kind ? record : nullptr;
}

// Reads fields of a record; `ok` becomes false at the first field of a wrong kind.
struct Fields {
  const RecordAttr& record;
  bool ok = true;

  int64_t Int(std::string_view name, int64_t fallback) {
    const AttrValue* value = Find(record.fields, name);
    if (value == nullptr) return fallback;
    if (const auto* number = value->As<IntAttr>()) return number->value;
    ok = false;
    return fallback;
  }
  bool Bool(std::string_view name, bool fallback) {
    const AttrValue* value = Find(record.fields, name);
    if (value == nullptr) return fallback;
    if (const auto* flag = value->As<bool>()) return *flag;
    ok = false;
    return fallback;
  }
  std::string Text(std::string_view name) {
    const AttrValue* value = Find(record.fields, name);
    if (value == nullptr) return {};
    if (const auto* text = value->As<std::string>()) return *text;
    if (const auto* symbol = value->As<SymbolAttr>()) return symbol->name;
    ok = false;
    return {};
  }
  Dims Ints(std::string_view name) {
    const AttrValue* value = Find(record.fields, name);
    return value == nullptr ? Dims{} : IntsOf(*value);
  }
  Dims IntsOf(const AttrValue& value) {
    if (const auto* array = value.As<DenseArrayAttr>()) return array->ints;
    Dims ints;
    const auto* list = value.As<AttrList>();
    if (list == nullptr) {
      ok = false;
      return ints;
    }
    for (const AttrValue& item : *list) {
      const auto* number = item.As<IntAttr>();
      ok = ok && number != nullptr;
      ints.push_back(number == nullptr ? 0 : number->value);
    }
    return ints;
  }
  template <typename Fn>
  auto List(std::string_view name, Fn from_attr) {
    using T = typename decltype(from_attr(std::declval<const AttrValue&>()))::value_type;
    std::vector<T> items;
    const AttrValue* value = Find(record.fields, name);
    if (value == nullptr) return items;
    const auto* list = value->As<AttrList>();
    if (list == nullptr) {
      ok = false;
      return items;
    }
    for (const AttrValue& attr : *list) {
      std::optional<T> item = from_attr(attr);
      if (item) items.push_back(std::move(*item));
      ok = ok && item.has_value();
    }
    return items;
  }
};

std::optional<AxisRef> AxisFromAttr(const AttrValue& value) {
  const RecordAttr* record = Record(&value, "sdy.axis");
  if (record == nullptr) return std::nullopt;
  Fields in{*record};
  AxisRef axis{in.Text("name"), in.Int("pre_size", 0), in.Int("size", 0)};
  bool is_whole = axis.pre_size == 0 && axis.size == 0;
  bool is_part = axis.pre_size >= 1 && axis.size >= 1;
  return in.ok && (is_whole || is_part) ? std::optional(std::move(axis)) : std::nullopt;
}

std::optional<DimSharding> DimFromAttr(const AttrValue& value) {
  const RecordAttr* record = Record(&value, "sdy.dim");
  if (record == nullptr) return std::nullopt;
  Fields in{*record};
  DimSharding dim;
  dim.axes = in.List("axes", AxisFromAttr);
  dim.is_closed = in.Bool("closed", true);
  dim.priority = in.Int("priority", -1);
  return in.ok ? std::optional(std::move(dim)) : std::nullopt;
}

std::optional<MeshAxis> MeshAxisFromAttr(const AttrValue& value) {
  const RecordAttr* record = Record(&value, "sdy.mesh_axis");
  if (record == nullptr) return std::nullopt;
  Fields in{*record};
  MeshAxis axis{in.Text("name"), in.Int("size", 1)};
  return in.ok && axis.size >= 1 ? std::optional(std::move(axis)) : std::nullopt;
}

// [[[0, 1], [2]]]: per value, per dimension, factors.
AttrValue MappingsToAttr(const std::vector<std::vector<Dims>>& mappings) {
  return ListOf(mappings, [](const std::vector<Dims>& value) { return ListOf(value, SdyInts); });
}

std::optional<std::vector<Dims>> MappingFromAttr(const AttrValue& value) {
  const auto* list = value.As<AttrList>();
  if (list == nullptr) return std::nullopt;
  static const RecordAttr none;
  Fields in{none};
  std::vector<Dims> dims;
  for (const AttrValue& item : *list) dims.push_back(in.IntsOf(item));
  return in.ok ? std::optional(std::move(dims)) : std::nullopt;
}

}  // namespace

AttrValue ToAttr(const Sharding& sharding) {
  RecordAttr record{"sdy.sharding", {}};
  Set(record.fields, "mesh", {SymbolAttr{sharding.mesh}});
  Set(record.fields, "dims", ListOf(sharding.dims, DimToAttr));
  if (!sharding.replicated.empty())
    Set(record.fields, "replicated", ListOf(sharding.replicated, AxisToAttr));
  if (!sharding.unreduced.empty())
    Set(record.fields, "unreduced", ListOf(sharding.unreduced, AxisToAttr));
  if (!sharding.reduction.empty()) Set(record.fields, "reduction", {sharding.reduction});
  return {std::move(record)};
}

AttrValue ToAttr(const Mesh& mesh) {
  RecordAttr record{"sdy.mesh", {}};
  Set(record.fields, "axes", ListOf(mesh.axes, [](const MeshAxis& axis) -> AttrValue {
        RecordAttr one{"sdy.mesh_axis", {}};
        Set(one.fields, "name", {axis.name});
        Set(one.fields, "size", Int(axis.size));
        return {std::move(one)};
      }));
  if (!mesh.device_ids.empty()) Set(record.fields, "device_ids", SdyInts(mesh.device_ids));
  return {std::move(record)};
}

AttrValue ToAttr(const ShardingRule& rule) {
  RecordAttr record{"sdy.op_sharding_rule", {}};
  Set(record.fields, "factor_sizes", SdyInts(rule.factor_sizes));
  Set(record.fields, "operands", MappingsToAttr(rule.operands));
  Set(record.fields, "results", MappingsToAttr(rule.results));
  Set(record.fields, "reduction", SdyInts(rule.reduction));
  Set(record.fields, "need_replication", SdyInts(rule.need_replication));
  Set(record.fields, "permutation", SdyInts(rule.permutation));
  Set(record.fields, "blocked_propagation", SdyInts(rule.blocked_propagation));
  Set(record.fields, "custom", {rule.is_custom});
  return {std::move(record)};
}

AttrValue ShardingsToAttr(const std::vector<Sharding>& shardings) {
  RecordAttr record{"sdy.sharding_per_value", {}};
  Set(record.fields, "values",
      ListOf(shardings, [](const Sharding& sharding) { return ToAttr(sharding); }));
  return {std::move(record)};
}

std::optional<Sharding> ShardingFromAttr(const AttrValue& value) {
  const RecordAttr* record = Record(&value, "sdy.sharding");
  if (record == nullptr) return std::nullopt;
  Fields in{*record};
  Sharding sharding;
  sharding.kind = ShardingKind::kMesh;
  sharding.mesh = in.Text("mesh");
  sharding.dims = in.List("dims", DimFromAttr);
  sharding.replicated = in.List("replicated", AxisFromAttr);
  sharding.unreduced = in.List("unreduced", AxisFromAttr);
  sharding.reduction = in.Text("reduction");
  return in.ok ? std::optional(std::move(sharding)) : std::nullopt;
}

std::optional<std::vector<Sharding>> ShardingsFromAttr(const AttrValue& value) {
  if (const RecordAttr* record = Record(&value, "sdy.sharding_per_value")) {
    Fields in{*record};
    std::vector<Sharding> shardings = in.List("values", ShardingFromAttr);
    return in.ok ? std::optional(std::move(shardings)) : std::nullopt;
  }
  std::optional<Sharding> one = ShardingFromAttr(value);
  if (!one) return std::nullopt;
  return std::vector<Sharding>{std::move(*one)};
}

std::optional<Mesh> MeshFromAttr(const AttrValue& value) {
  const RecordAttr* record = Record(&value, "sdy.mesh");
  if (record == nullptr) return std::nullopt;
  Fields in{*record};
  Mesh mesh;
  mesh.axes = in.List("axes", MeshAxisFromAttr);
  mesh.device_ids = in.Ints("device_ids");
  return in.ok ? std::optional(std::move(mesh)) : std::nullopt;
}

std::optional<ShardingRule> RuleFromAttr(const AttrValue& value) {
  const RecordAttr* record = Record(&value, "sdy.op_sharding_rule");
  if (record == nullptr) return std::nullopt;
  Fields in{*record};
  ShardingRule rule;
  rule.factor_sizes = in.Ints("factor_sizes");
  rule.operands = in.List("operands", MappingFromAttr);
  rule.results = in.List("results", MappingFromAttr);
  rule.reduction = in.Ints("reduction");
  rule.need_replication = in.Ints("need_replication");
  rule.permutation = in.Ints("permutation");
  rule.blocked_propagation = in.Ints("blocked_propagation");
  rule.is_custom = in.Bool("custom", false);
  return in.ok ? std::optional(std::move(rule)) : std::nullopt;
}

std::optional<std::vector<std::string>> NamesFromAttr(const AttrValue& value) {
  const RecordAttr* record = Record(&value, "sdy.manual_axes");
  const AttrValue* names = record == nullptr ? &value : Find(record->fields, "names");
  if (names == nullptr) return std::vector<std::string>{};
  const auto* list = names->As<AttrList>();
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const AttrValue& item : *list) {
    const auto* text = item.As<std::string>();
    if (text == nullptr) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

std::optional<std::vector<AxisRef>> AxesFromAttr(const AttrValue& value) {
  const auto* list = value.As<AttrList>();
  if (list == nullptr) return std::nullopt;
  std::vector<AxisRef> axes;
  for (const AttrValue& item : *list) {
    std::optional<AxisRef> axis = AxisFromAttr(item);
    if (!axis) return std::nullopt;
    axes.push_back(std::move(*axis));
  }
  return axes;
}

}  // namespace tokamak
