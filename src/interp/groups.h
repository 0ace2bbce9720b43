#pragma once

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

// all-gather, all-reduce, reduce-scatter know all modes; the others take a channel to mean
// partitions.
GroupMode ModeOf(const Instr& instr, const CollectiveAttrs& attrs);

// The devices that take part together with this one, in order; alone when it is in no group.
// Refuses (TK5006) ids that the run does not have. Without several devices: this one.
Result<std::vector<int64_t>> GroupOf(const Instr& instr, const CollectiveAttrs& attrs,
                                     const Context& context);
// As written: lists of ids. Empty: one group of all.
Result<std::vector<Dims>> ExpandGroups(const Instr& instr, const ReplicaGroups& groups);

// The number of this device, replica * partitions + partition.
int64_t SelfOf(const Context& context);

// Where devices lie along axes of a mesh.
class MeshView {
 public:
  explicit MeshView(const Mesh& mesh) : mesh_(mesh) {}
  int64_t DeviceCount() const;
  // The size of a (part of an) axis; 0 when the mesh has no such axis.
  int64_t SizeOf(const AxisRef& axis) const;
  // The position of the n-th device of the mesh along axes, the first being the major one.
  int64_t PositionOf(int64_t n, const std::vector<AxisRef>& axes) const;
  // The id of the n-th device, and back (-1: not in the mesh).
  int64_t DeviceAt(int64_t n) const;
  int64_t IndexOf(int64_t device) const;

 private:
  const Mesh& mesh_;
};

const Mesh* FindMesh(const Module& module, const std::string& name);

}  // namespace tokamak
