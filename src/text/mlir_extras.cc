// Attributes other than those of ops: of arguments, results, functions and the module, and the
// discardable attributes of ops.

#include <algorithm>

#include "text/hlo_sharding.h"
#include "text/mlir_import.h"
#include "text/mlir_layout.h"
#include "text/mlir_ops.h"
#include "text/mlir_plain.h"
#include "text/mlir_sdy.h"

namespace tokamak {
namespace {

const int64_t* AsInt(const AttrValue& value) {
  const auto* number = value.As<IntAttr>();
  return number == nullptr ? nullptr : &number->value;
}

// jax.buffer_donor is a bool or a unit.
bool IsTrue(const AttrValue& value) {
  if (const auto* flag = value.As<bool>()) return *flag;
  return value.As<UnitAttr>() != nullptr;
}

bool IsShardingName(std::string_view name) {
  return name == "sdy.sharding" || name == "mhlo.sharding" || name == "tokamak.sharding";
}
// mhlo.sharding = "" carries no information.
bool IsEmptyText(const AttrValue& value) {
  const auto* text = value.As<std::string>();
  return text != nullptr && text->empty();
}

// [output path, [parameter, must], path in the parameter]
bool ReadAlias(const AttrValue& row, InputOutputAlias& alias) {
  const auto* parts = row.As<AttrList>();
  if (parts == nullptr || parts->size() != 3) return false;
  const auto* output = (*parts)[0].As<DenseArrayAttr>();
  const auto* numbers = (*parts)[1].As<DenseArrayAttr>();
  const auto* index = (*parts)[2].As<DenseArrayAttr>();
  if (output == nullptr || numbers == nullptr || index == nullptr || numbers->ints.size() != 2)
    return false;
  alias = {output->ints, numbers->ints[0], index->ints, numbers->ints[1] != 0};
  return true;
}

}  // namespace

std::string MlirImporter::InternMesh(Mesh mesh) {
  for (const Mesh& known : module_->meshes) {
    mesh.name = known.name;
    if (known == mesh) return mesh.name;
  }
  auto taken = [&](const std::string& name) {
    return std::any_of(module_->meshes.begin(), module_->meshes.end(),
                       [&](const Mesh& known) { return known.name == name; });
  };
  size_t number = 0;
  do mesh.name = "inline_mesh_" + std::to_string(number++);
  while (taken(mesh.name));
  module_->meshes.push_back(mesh);
  return mesh.name;
}

Result<Sharding> MlirImporter::ReadSharding(const AttrValue& value, TextPos pos) {
  if (const auto* text = value.As<std::string>()) return ReadHloSharding(*text, pos);
  if (std::optional<Sharding> plain = PlainSharding(value)) return std::move(*plain);
  std::optional<std::vector<Sharding>> list = ShardingsFromAttr(value);
  if (!list) return At(pos, ErrorCode::kMlirSharding, "sdy.sharding: malformed");
  if (list->size() == 1) return std::move((*list)[0]);
  Sharding tuple;
  tuple.kind = ShardingKind::kTuple;
  tuple.elements = std::move(*list);
  return tuple;
}

Status MlirImporter::ApplyArgumentAttr(Instr* parameter, const MlirAttr& attr, TextPos pos) {
  if (attr.name == "tf.aliasing_output") {
    facts_[parameter->parent()].aliases.emplace_back(parameter, attr.value);
    return Ok();
  }
  if (attr.name == "jax.buffer_donor" && IsTrue(attr.value)) {
    facts_[parameter->parent()].donors.emplace_back(parameter, attr.value);
    return Ok();
  }
  return ApplyExtras(parameter, {&attr, 1}, 0, pos);
}

Status MlirImporter::ApplyExtras(Instr* instr, std::span<const MlirAttr> attrs, uint64_t used,
                                 TextPos pos) {
  for (size_t i = 0; i < attrs.size(); ++i) {
    const MlirAttr& attr = attrs[i];
    if (i < 64 && (used >> i & 1) != 0) continue;
    if (IsShardingName(attr.name)) {
      if (IsEmptyText(attr.value)) continue;
      InstrExtras& extras = instr->mutable_extras();
      TOK_TRY(Sharding sharding, ReadSharding(attr.value, pos));
      if (!extras.sharding || attr.name == "sdy.sharding") extras.sharding = std::move(sharding);
    } else if (attr.name == "sdy.sharding_rule") {
      instr->mutable_extras().sharding_rule = RuleFromAttr(attr.value);
      if (!instr->extras().sharding_rule)
        return At(pos, ErrorCode::kMlirSharding, "sdy.sharding_rule: malformed");
    } else if (attr.name == "mhlo.frontend_attributes" && attr.value.As<AttrDict>() != nullptr) {
      instr->mutable_extras().frontend_attributes = *attr.value.As<AttrDict>();
    } else if (attr.name == "tokamak.backend_config" && attr.value.As<std::string>() != nullptr) {
      instr->mutable_extras().backend_config = *attr.value.As<std::string>();
    } else if (attr.name == "tokamak.layout") {
      std::optional<Shape> shape = WithLayoutAttr(instr->shape(), attr.value);
      if (!shape)
        return At(pos, ErrorCode::kMlirAttributeMeaning,
                  "tokamak.layout: does not fit " + ToString(instr->shape()));
      instr->set_shape(std::move(*shape));
    } else if (attr.name == "tokamak.control" && attr.value.As<DenseArrayAttr>() != nullptr) {
      frames_.back().control.emplace_back(instr, attr.value.As<DenseArrayAttr>()->ints);
    } else {
      Set(instr->mutable_extras().discardable, std::string(attr.name), attr.value);
    }
  }
  return Ok();
}

Status MlirImporter::ApplyResultAttrs(Computation& computation,
                                      std::span<const std::vector<MlirAttr>> result_attrs,
                                      TextPos pos) {
  size_t used = result_attrs.size();
  while (used > 0 && result_attrs[used - 1].empty()) --used;
  computation.results.resize(used);
  for (size_t i = 0; i < used; ++i) {
    ResultInfo& info = computation.results[i];
    for (const MlirAttr& attr : result_attrs[i]) {
      if (IsShardingName(attr.name)) {
        if (IsEmptyText(attr.value)) continue;
        TOK_TRY(info.sharding, ReadSharding(attr.value, pos));
      } else {
        Set(info.attributes, std::string(attr.name), attr.value);
      }
    }
  }
  return Ok();
}

Status MlirImporter::ApplyFunctionAttrs(Computation& computation, std::span<const MlirAttr> attrs,
                                        TextPos) {
  for (const MlirAttr& attr : attrs) {
    const auto* text = attr.value.As<std::string>();
    if (attr.name == "execution_thread" && text != nullptr) {
      computation.execution_thread = *text;
    } else {
      Set(computation.attributes, std::string(attr.name), attr.value);
    }
  }
  return Ok();
}

// Aliasing and donation apply to the entry only; elsewhere they are stored but ignored.
Status MlirImporter::ApplyFacts() {
  for (const auto& owned : module_->computations()) {
    auto it = facts_.find(owned.get());
    if (it == facts_.end()) continue;
    bool is_entry = owned.get() == module_->entry();
    for (auto& [parameter, value] : it->second.aliases) {
      const int64_t* result = AsInt(value);
      if (result == nullptr)
        return At(parameter->pos(), ErrorCode::kMlirAttributeMeaning,
                  "tf.aliasing_output: expected an integer");
      if (!is_entry) {
        Set(parameter->mutable_extras().discardable, "tf.aliasing_output", value);
        continue;
      }
      InputOutputAlias alias;
      if (owned->root()->shape().IsTuple()) alias.output = {*result};
      alias.parameter = parameter->attrs<ParameterAttrs>().number;
      module_->aliases.push_back(std::move(alias));
    }
    for (auto& [parameter, value] : it->second.donors) {
      if (is_entry) {
        module_->donors.push_back({parameter->attrs<ParameterAttrs>().number, {}});
      } else {
        Set(parameter->mutable_extras().discardable, "jax.buffer_donor", value);
      }
    }
  }
  return Ok();
}

// Applies tokamak.module, as written by ModuleFactsOf.
Status MlirImporter::ApplyModuleFacts() {
  for (const AttrEntry& fact : module_facts_) {
    const AttrValue& value = fact.value;
    const auto* list = value.As<AttrList>();
    bool ok = false;
    if (fact.name == "aliases" && list != nullptr) {
      ok = std::all_of(list->begin(), list->end(), [&](const AttrValue& row) {
        return ReadAlias(row, module_->aliases.emplace_back());
      });
    } else if (fact.name == "donors" && list != nullptr) {
      ok = true;
      for (const AttrValue& row : *list) {
        const auto* ints = row.As<DenseArrayAttr>();
        ok = ok && ints != nullptr && !ints->ints.empty();
        if (ok)
          module_->donors.push_back({ints->ints[0], {ints->ints.begin() + 1, ints->ints.end()}});
      }
    } else if (fact.name == "entry_parameters" && list != nullptr) {
      ok = true;
      for (const AttrValue& item : *list) {
        std::optional<Shape> shape = ShapeFromAttr(item);
        ok = ok && shape.has_value();
        if (ok) module_->entry_parameter_layouts.push_back(std::move(*shape));
      }
    } else if (fact.name == "entry_result") {
      module_->entry_result_layout = ShapeFromAttr(value);
      ok = module_->entry_result_layout.has_value();
    }
    if (!ok)
      return At({1, 1}, ErrorCode::kMlirAttributeMeaning,
                "tokamak.module: " + fact.name + " is malformed");
  }
  return Ok();
}

Status MlirImporter::AddModuleAttribute(std::string_view name, AttrValue value, TextPos pos) {
  const int64_t* number = AsInt(value);
  if (name == "mhlo.num_partitions" || name == "mhlo.num_replicas") {
    if (number == nullptr || *number < 1)
      return At(pos, ErrorCode::kMlirAttributeMeaning,
                std::string(name) + ": expected a positive integer");
    (name == "mhlo.num_replicas" ? module_->num_replicas : module_->num_partitions) = *number;
    return Ok();
  }
  if (name == "mhlo.frontend_attributes" && value.As<AttrDict>() != nullptr) {
    module_->frontend_attributes = *value.As<AttrDict>();
    return Ok();
  }
  if (name == "tokamak.module" && value.As<AttrDict>() != nullptr) {
    module_facts_ = *value.As<AttrDict>();
    return Ok();
  }
  Set(module_->attributes, std::string(name), std::move(value));
  return Ok();
}

Result<Sharding> MlirImporter::ReadHloSharding(std::string_view text, TextPos pos) {
  Result<Sharding> sharding = ParseHloSharding(text, module_->meshes);
  if (sharding.ok()) return sharding;
  return At(pos, ErrorCode::kMlirSharding, "mhlo.sharding: " + sharding.error().message);
}

}  // namespace tokamak
