#pragma once

// sdy attributes as AttrValue and as the structs of ir/sharding.h. The records:
//   sdy.mesh      {axes: [sdy.mesh_axis {name: "x", size: 2}], device_ids: [0, 1]}
//   sdy.axis      {name: "x", pre_size: 1, size: 2}    (sizes only of a part of an axis)
//   sdy.dim       {axes: [sdy.axis], closed: true, priority: 1}
//   sdy.sharding  {mesh: @name, dims: [sdy.dim], replicated: [sdy.axis],
//                  unreduced: [sdy.axis], reduction: "max"}
//   sdy.sharding_per_value {values: [sdy.sharding]}
//   sdy.op_sharding_rule {factor_sizes: [2], operands: [[[0, 1], [2]]], results: [[[0]]],
//                  reduction: [], need_replication: [], permutation: [],
//                  blocked_propagation: [], custom: false}
//   sdy.manual_axes {names: ["x"]}
// Absent fields are empty. A mesh written inside a sharding gets its name from
// MlirImporter::InternMesh.

#include <optional>

#include "ir/attr_value.h"
#include "ir/sharding.h"
#include "support/result.h"

namespace tokamak {

AttrValue ToAttr(const Sharding& sharding);
AttrValue ToAttr(const Mesh& mesh);
AttrValue ToAttr(const ShardingRule& rule);
AttrValue ShardingsToAttr(const std::vector<Sharding>& shardings);  // sdy.sharding_per_value

// Returns nullopt if the value is not such a record.
std::optional<Sharding> ShardingFromAttr(const AttrValue& value);
std::optional<std::vector<Sharding>> ShardingsFromAttr(const AttrValue& value);
std::optional<Mesh> MeshFromAttr(const AttrValue& value);  // without its name
std::optional<ShardingRule> RuleFromAttr(const AttrValue& value);
std::optional<std::vector<std::string>> NamesFromAttr(const AttrValue& value);
std::optional<std::vector<AxisRef>> AxesFromAttr(const AttrValue& value);  // a list of sdy.axis

}  // namespace tokamak
