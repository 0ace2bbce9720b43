// Ops of the sdy dialect. Shardings specify placement, not values, so all ops except
// manual-computation return their operand.

#include <algorithm>
#include <utility>

#include "interp/devices.h"
#include "interp/evaluators.h"
#include "interp/groups.h"
#include "interp/run_devices.h"
#include "interp/slice_values.h"

namespace tokamak {
namespace {

using Values = std::vector<Value>;

// A manual computation: the mesh and the axes along which its shards are distributed.
class Manual {
 public:
  static Result<Manual> Of(const Instr& instr) {
    const ManualComputationAttrs& attrs = instr.attrs<ManualComputationAttrs>();
    std::string name;
    for (const std::vector<Sharding>* list : {&attrs.in_shardings, &attrs.out_shardings})
      for (const Sharding& sharding : *list)
        if (!sharding.mesh.empty()) name = sharding.mesh;
    const Mesh* mesh = FindMesh(*instr.parent()->module(), name);
    if (mesh == nullptr && !name.empty()) return Unsupported(instr, "there is no mesh @" + name);
    return Manual(instr, mesh);
  }

  int64_t DeviceCount() const { return mesh_ == nullptr ? 1 : MeshView(*mesh_).DeviceCount(); }
  int64_t IndexOf(int64_t device) const { return MeshView(*mesh_).IndexOf(device); }
  int64_t DeviceAt(int64_t n) const { return MeshView(*mesh_).DeviceAt(n); }

  // The shards of the operands on the n-th device of the mesh.
  Result<Values> Shards(std::span<const Value> operands, int64_t n) const {
    Values shards;
    for (size_t i = 0; i < operands.size(); ++i) {
      TOK_TRY(Value shard, Shard(operands[i], i, n));
      shards.push_back(std::move(shard));
    }
    return shards;
  }

  // Assembles the full results from those of each device: results[k] is that of mesh device
  // indices[k].
  Result<Value> Assemble(const std::vector<int64_t>& indices, const Values& results) const {
    bool single = !instr_.shape().IsTuple();
    size_t count = single ? 1 : instr_.shape().elements().size();
    Values whole;
    for (size_t r = 0; r < count; ++r) {
      Values parts;
      for (const Value& result : results)
        parts.push_back(result.shape().IsTuple() && !single ? result.elements()[r] : result);
      whole.push_back(Join(r, indices, parts, 0, {}));
    }
    if (single) return std::move(whole[0]);
    return Value::Tuple(std::move(whole));
  }

  // Devices of the mesh that differ from the n-th only along manual axes.
  std::vector<int64_t> Siblings(int64_t n) const {
    std::vector<AxisRef> others;
    for (const MeshAxis& axis : mesh_->axes)
      if (!IsManual(axis.name)) others.push_back({axis.name});
    MeshView view(*mesh_);
    std::vector<int64_t> siblings;
    for (int64_t k = 0; k < view.DeviceCount(); ++k)
      if (view.PositionOf(k, others) == view.PositionOf(n, others)) siblings.push_back(k);
    return siblings;
  }

 private:
  Manual(const Instr& instr, const Mesh* mesh) : instr_(instr), mesh_(mesh) {}

  bool IsManual(const std::string& axis) const {
    const std::vector<std::string>& axes = instr_.attrs<ManualComputationAttrs>().manual_axes;
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }

  // The manual axes along one dimension.
  std::vector<AxisRef> AxesOf(const std::vector<Sharding>& shardings, size_t i,
                              size_t dimension) const {
    std::vector<AxisRef> axes;
    if (mesh_ == nullptr || i >= shardings.size() || dimension >= shardings[i].dims.size())
      return axes;
    for (const AxisRef& axis : shardings[i].dims[dimension].axes)
      if (IsManual(axis.name)) axes.push_back(axis);
    return axes;
  }

  int64_t SizeOf(const std::vector<AxisRef>& axes) const {
    int64_t size = 1;
    for (const AxisRef& axis : axes) size *= std::max<int64_t>(MeshView(*mesh_).SizeOf(axis), 1);
    return size;
  }

  Result<Value> Shard(const Value& value, size_t i, int64_t n) const {
    Value shard = value;
    for (size_t d = 0; value.shape().IsArray() && d < value.dims().size(); ++d) {
      std::vector<AxisRef> axes = AxesOf(instr_.attrs<ManualComputationAttrs>().in_shardings, i, d);
      if (axes.empty()) continue;
      int64_t parts = SizeOf(axes), size = value.dims()[d];
      if (size % parts != 0) {
        return Unsupported(instr_, "dimension " + std::to_string(d) + " of operand " +
                                       std::to_string(i) + " is " + std::to_string(size) +
                                       ", its shards are " + std::to_string(parts));
      }
      int64_t at = MeshView(*mesh_).PositionOf(n, axes);
      shard = SliceOf(shard, d, at * (size / parts), size / parts);
    }
    return shard;
  }

  // Joins the shards along dimension d and the following ones; before d, `at` selects the shard.
  Value Join(size_t r, const std::vector<int64_t>& indices, const Values& parts, size_t d,
             const std::vector<int64_t>& at) const {
    const std::vector<Sharding>& shardings = instr_.attrs<ManualComputationAttrs>().out_shardings;
    if (!parts[0].shape().IsArray()) return parts[0];
    if (d == parts[0].dims().size()) {
      for (size_t k = 0; k < parts.size(); ++k) {
        bool here = true;
        for (size_t e = 0; e < d && here; ++e) {
          std::vector<AxisRef> axes = AxesOf(shardings, r, e);
          here = axes.empty() || MeshView(*mesh_).PositionOf(indices[k], axes) == at[e];
        }
        if (here) return parts[k];
      }
      return parts[0];
    }
    std::vector<AxisRef> axes = AxesOf(shardings, r, d);
    int64_t count = axes.empty() ? 1 : SizeOf(axes);
    Values joined;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> deeper = at;
      deeper.push_back(i);
      joined.push_back(Join(r, indices, parts, d + 1, deeper));
    }
    return count == 1 ? std::move(joined[0]) : Concat(joined, d);
  }

  const Instr& instr_;
  const Mesh* mesh_;
};

// Inside another manual computation every device runs its own shard; a rendezvous then combines
// them.
Result<Value> RunNested(const Instr& instr, const Manual& manual, std::span<const Value> operands,
                        Context& context) {
  int64_t n = manual.IndexOf(context.partition);
  if (n < 0) return Unsupported(instr, "this device is not in its mesh");
  TOK_TRY(Values shards, manual.Shards(operands, n));
  TOK_TRY(Value mine, context.Call(*instr.called(0), std::move(shards)));
  std::vector<int64_t> indices = manual.Siblings(n), members;
  for (int64_t k : indices)
    members.push_back(context.replica * context.devices->partitions() + manual.DeviceAt(k));
  for (int64_t member : members)
    if (member >= context.devices->count()) return Unsupported(instr, "its mesh has more devices");
  if (members.size() == 1) return manual.Assemble(indices, {mine});
  TOK_TRY(std::vector<Values> brought,
          context.devices->Rendezvous({instr.op(), 0, members}, SelfOf(context), {mine}));
  Values results;
  for (Values& values : brought) results.push_back(std::move(values[0]));
  return manual.Assemble(indices, results);
}

Result<Value> SameValue(std::span<const Value> operands) {
  return TakeOperand(operands, 0);
}

}  // namespace

Result<Value> EvalShardingConstraint(const Instr&, std::span<const Value> operands, Context&) {
  return SameValue(operands);
}
Result<Value> EvalReshard(const Instr&, std::span<const Value> operands, Context&) {
  return SameValue(operands);
}
Result<Value> EvalShardingGroup(const Instr& instr, std::span<const Value> operands, Context&) {
  if (instr.shape().IsTuple()) return Value();
  return SameValue(operands);
}
Result<Value> EvalPropagationBarrier(const Instr&, std::span<const Value> operands, Context&) {
  return SameValue(operands);
}

// Every device of the mesh runs the body on its shards. Axes that are not manual belong to the
// partitioner: devices along them compute the same values.
Result<Value> EvalManualComputation(const Instr& instr, std::span<const Value> operands,
                                    Context& context) {
  TOK_TRY(Manual manual, Manual::Of(instr));
  int64_t count = manual.DeviceCount();
  if (count == 1) return context.Call(*instr.called(0), operands);
  if (count > kMaxDevices)
    return Unsupported(
        instr, std::to_string(count) + " devices, the limit is " + std::to_string(kMaxDevices));
  if (context.devices != nullptr) return RunNested(instr, manual, operands, context);
  std::vector<DeviceComputation> runs(static_cast<size_t>(count));
  std::vector<int64_t> indices;
  for (int64_t device = 0; device < count; ++device) {
    int64_t n = manual.IndexOf(device);
    if (n < 0)
      return Unsupported(instr, "device " + std::to_string(device) + " is not in its mesh");
    DeviceComputation& run = runs[static_cast<size_t>(device)];
    run.computation = instr.called(0);
    TOK_TRY(run.arguments, manual.Shards(operands, n));
    indices.push_back(n);
  }
  TOK_TRY(Values results, RunOnDevices(instr, 1, count, std::move(runs), context));
  return manual.Assemble(indices, results);
}

}  // namespace tokamak
