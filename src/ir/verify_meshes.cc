#include <fmt/core.h>

#include "ir/verify_shape.h"

namespace tokamak {
namespace {

// "a":(2)4 is the sub-axis of size 4 after a sub-axis of size 2: their product divides the axis.
bool IsPartOf(const AxisRef& part, const MeshAxis& axis) {
  if (part.pre_size == 0 && part.size == 0) return true;
  return part.pre_size >= 1 && part.size >= 1 && part.pre_size <= axis.size &&
         axis.size % part.pre_size == 0 && axis.size / part.pre_size % part.size == 0;
}

class MeshNames {
 public:
  MeshNames(const Instr& instr, const Module& module) : instr_(instr), module_(module) {}

  Status Check(const Sharding& sharding, int depth = 0) {
    if (depth > kMaxNesting)
      return VerifyError(ErrorCode::kShapeTooDeep, "a sharding is nested too deeply");
    for (const Sharding& element : sharding.elements)
      TOK_RETURN_IF_ERROR(Check(element, depth + 1));
    if (sharding.kind != ShardingKind::kMesh) return Ok();
    TOK_RETURN_IF_ERROR(CheckAxes(sharding.mesh, sharding.replicated));
    TOK_RETURN_IF_ERROR(CheckAxes(sharding.mesh, sharding.unreduced));
    for (const DimSharding& dim : sharding.dims)
      TOK_RETURN_IF_ERROR(CheckAxes(sharding.mesh, dim.axes));
    return Ok();
  }

  Status CheckAxes(const std::string& name, const std::vector<AxisRef>& axes) {
    const Mesh* mesh = nullptr;
    for (const Mesh& candidate : module_.meshes)
      if (candidate.name == name) mesh = &candidate;
    if (mesh == nullptr)
      return VerifyError(ErrorCode::kUnknownMesh, fmt::format("there is no mesh {}", name));
    for (const AxisRef& axis : axes) {
      const MeshAxis* whole = nullptr;
      for (const MeshAxis& known : mesh->axes)
        if (known.name == axis.name) whole = &known;
      if (whole == nullptr)
        return VerifyError(ErrorCode::kUnknownMesh,
                           fmt::format("mesh {} has no axis {}", name, axis.name));
      if (!IsPartOf(axis, *whole))
        return VerifyError(ErrorCode::kUnknownMesh,
                           fmt::format("axis {} of {} devices has no sub-axis ({}){}", axis.name,
                                       whole->size, axis.pre_size, axis.size));
    }
    return Ok();
  }

 private:
  Error VerifyError(ErrorCode code, std::string text) const {
    return MakeError(code, std::string(instr_.info().name) + ": " + std::move(text),
                     SpanOf(instr_));
  }

  const Instr& instr_;
  const Module& module_;
};

}  // namespace

Status VerifyMeshes(const Instr& instr, const Module& module) {
  MeshNames names(instr, module);
  if (instr.has_extras() && instr.extras().sharding)
    TOK_RETURN_IF_ERROR(names.Check(*instr.extras().sharding));
  if (instr.op() == Op::kManualComputation) {
    const auto& attrs = instr.attrs<ManualComputationAttrs>();
    for (const Sharding& sharding : attrs.in_shardings) TOK_RETURN_IF_ERROR(names.Check(sharding));
    for (const Sharding& sharding : attrs.out_shardings) TOK_RETURN_IF_ERROR(names.Check(sharding));
  } else if (instr.op() == Op::kShardingConstraint || instr.op() == Op::kReshard) {
    return names.Check(instr.attrs<ShardingOpAttrs>().sharding);
  } else if (instr.info().attrs == "CollectiveAttrs") {
    const ReplicaGroups& groups = instr.attrs<CollectiveAttrs>().groups;
    if (!groups.mesh.empty() || !groups.axes.empty())
      return names.CheckAxes(groups.mesh, groups.axes);
  }
  return Ok();
}

}  // namespace tokamak
