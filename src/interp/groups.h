#pragma once

// Replica groups of collectives: expands the group attributes of an instruction into the devices
// that participate together.

#include <cstdint>
#include <vector>

#include "interp/context.h"
#include "ir/attrs.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

enum class GroupMode : uint8_t {
  kCrossReplica,              // ids are replicas; one group per partition
  kCrossPartition,            // ids are partitions; one group per replica
  kCrossReplicaAndPartition,  // ids are replicas, with all their partitions
  kFlattenedIds,              // ids are replica * partitions + partition
};

// all-gather, all-reduce and reduce-scatter support all modes; for the other collectives a channel
// means partitions.
GroupMode ModeOf(const Instr& instr, const CollectiveAttrs& attrs);

// The devices in the same group as this one, in order; only this device if it is in no group or the
// run has a single device. Rejects (TK5006) ids that the run does not have.
Result<std::vector<int64_t>> GroupOf(const Instr& instr, const CollectiveAttrs& attrs,
                                     const Context& context);
// Expands the groups to lists of ids. Empty: one group of all devices.
Result<std::vector<Dims>> ExpandGroups(const Instr& instr, const ReplicaGroups& groups);

// The number of this device, replica * partitions + partition.
int64_t SelfOf(const Context& context);

// Positions of devices along the axes of a mesh.
class MeshView {
 public:
  explicit MeshView(const Mesh& mesh) : mesh_(mesh) {}
  int64_t DeviceCount() const;
  // The size of an axis or subaxis; 0 if the mesh does not have the axis.
  int64_t SizeOf(const AxisRef& axis) const;
  // The position of the n-th device of the mesh along axes, the first being the most major.
  int64_t PositionOf(int64_t n, const std::vector<AxisRef>& axes) const;
  // The id of the n-th device, and the inverse (-1 if not in the mesh).
  int64_t DeviceAt(int64_t n) const;
  int64_t IndexOf(int64_t device) const;

 private:
  const Mesh& mesh_;
};

const Mesh* FindMesh(const Module& module, const std::string& name);

}  // namespace tokamak
