#include "interp/groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "interp/devices.h"

namespace tokamak {
namespace {

Error BadGroups(const Instr& instr, const std::string& text) {
  return MakeError(ErrorCode::kBadGroups, std::string(instr.info().name) + ": " + text,
                   SpanOf(instr));
}

// 0 .. n-1 reshaped, transposed and flattened.
Result<Dims> ExpandIota(const Instr& instr, const TileDevices& iota) {
  if (!iota.list.empty()) return iota.list;
  std::optional<int64_t> count = CheckedElementCount(iota.reshape);
  if (!count.has_value() || *count > kMaxDevices)
    return BadGroups(instr, "groups of more than " + std::to_string(kMaxDevices) + " devices");
  size_t rank = iota.reshape.size();
  Dims order = iota.permutation;
  if (order.empty()) {
    order.resize(rank);
    std::iota(order.begin(), order.end(), 0);
  }
  Dims stride(rank, 1);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * iota.reshape[i];
  Dims ids, at(rank, 0);
  for (int64_t n = 0; n < *count; ++n) {
    int64_t id = 0, rest = n;
    for (size_t i = rank; i-- > 0;) {
      size_t dimension = static_cast<size_t>(order[i]);
      id += rest % iota.reshape[dimension] * stride[dimension];
      rest /= iota.reshape[dimension];
    }
    ids.push_back(id);
  }
  return ids;
}

Result<std::vector<Dims>> ExpandMesh(const Instr& instr, const ReplicaGroups& groups) {
  const Mesh* mesh = FindMesh(*instr.parent()->module(), groups.mesh);
  if (mesh == nullptr) return BadGroups(instr, "there is no mesh @" + groups.mesh);
  MeshView view(*mesh);
  if (view.DeviceCount() > kMaxDevices)
    return BadGroups(instr, "groups of more than " + std::to_string(kMaxDevices) + " devices");
  int64_t size = 1;
  for (const AxisRef& axis : groups.axes) size *= std::max<int64_t>(view.SizeOf(axis), 1);
  // Devices that differ only along the group's axes form a group: the position along the group is
  // removed from the device number, and the remaining digits identify the group.
  std::vector<Dims> lists;
  std::map<Dims, size_t> group_index;
  for (int64_t n = 0; n < view.DeviceCount(); ++n) {
    Dims rest;
    for (const MeshAxis& axis : mesh->axes) {
      std::vector<AxisRef> whole{{axis.name}};
      int64_t position = view.PositionOf(n, whole);
      for (const AxisRef& part : groups.axes) {
        if (part.name != axis.name) continue;
        // Removes the digits of this subaxis from the position along the axis.
        int64_t part_size = view.SizeOf(part);
        int64_t pre = std::max<int64_t>(part.pre_size, 1);
        int64_t post = axis.size / (pre * part_size);
        position -= position / post % part_size * post;
      }
      rest.push_back(position);
    }
    auto [at, is_new] = group_index.emplace(rest, lists.size());
    if (is_new) lists.emplace_back(static_cast<size_t>(size), -1);
    lists[at->second][static_cast<size_t>(view.PositionOf(n, groups.axes))] = view.DeviceAt(n);
  }
  return lists;
}

}  // namespace

GroupMode ModeOf(const Instr& instr, const CollectiveAttrs& attrs) {
  if (attrs.mode == "cross_replica") return GroupMode::kCrossReplica;
  if (attrs.mode == "cross_partition") return GroupMode::kCrossPartition;
  if (attrs.mode == "cross_replica_and_partition") return GroupMode::kCrossReplicaAndPartition;
  if (attrs.mode == "flattened_id" || attrs.mode == "flattened_ids")
    return GroupMode::kFlattenedIds;
  if (attrs.use_global_device_ids || !attrs.groups.mesh.empty()) return GroupMode::kFlattenedIds;
  if (attrs.channel_id <= 0) return GroupMode::kCrossReplica;
  switch (instr.op()) {
    case Op::kAllGather:
    case Op::kAllGatherStart:
    case Op::kAllReduce:
    case Op::kAllReduceStart:
    case Op::kReduceScatter:
      return GroupMode::kCrossReplicaAndPartition;
    default:
      return GroupMode::kCrossPartition;
  }
}

Result<std::vector<Dims>> ExpandGroups(const Instr& instr, const ReplicaGroups& groups) {
  if (!groups.mesh.empty() || !groups.axes.empty()) return ExpandMesh(instr, groups);
  if (groups.iota_tile.size() != 2) return groups.lists;
  TOK_TRY(Dims ids, ExpandIota(instr, groups.iota));
  int64_t count = groups.iota_tile[0], size = groups.iota_tile[1];
  if (count < 0 || size < 0 || count > kMaxDevices || size > kMaxDevices ||
      count * size != static_cast<int64_t>(ids.size()))
    return BadGroups(instr, std::to_string(count) + " groups of " + std::to_string(size) +
                                " are not " + std::to_string(ids.size()) + " devices");
  std::vector<Dims> lists;
  for (int64_t i = 0; i < count; ++i)
    lists.emplace_back(ids.begin() + i * size, ids.begin() + (i + 1) * size);
  return lists;
}

int64_t SelfOf(const Context& context) {
  int64_t partitions = context.devices == nullptr ? 1 : context.devices->partitions();
  return context.replica * partitions + context.partition;
}

Result<std::vector<int64_t>> GroupOf(const Instr& instr, const CollectiveAttrs& attrs,
                                     const Context& context) {
  if (context.devices == nullptr) return std::vector<int64_t>{SelfOf(context)};
  int64_t replicas = context.devices->replicas(), partitions = context.devices->partitions();
  GroupMode mode = ModeOf(instr, attrs);
  int64_t limit = mode == GroupMode::kCrossPartition ? partitions
                  : mode == GroupMode::kFlattenedIds ? replicas * partitions
                                                     : replicas;
  int64_t mine = mode == GroupMode::kCrossPartition ? context.partition
                 : mode == GroupMode::kFlattenedIds ? SelfOf(context)
                                                    : context.replica;
  TOK_TRY(std::vector<Dims> lists, ExpandGroups(instr, attrs.groups));
  if (lists.empty()) {
    lists.emplace_back(static_cast<size_t>(limit));
    std::iota(lists[0].begin(), lists[0].end(), 0);
  }
  Dims group;
  for (const Dims& list : lists) {
    for (int64_t id : list)
      if (id >= limit) {
        return BadGroups(instr, "device " + std::to_string(id) + " of its groups, the run has " +
                                    std::to_string(limit));
      }
    if (std::find(list.begin(), list.end(), mine) != list.end()) group = list;
  }
  std::vector<int64_t> members;
  for (int64_t id : group) {
    if (id < 0) continue;  // padding of groups of unequal size
    if (mode == GroupMode::kCrossReplica) members.push_back(id * partitions + context.partition);
    if (mode == GroupMode::kCrossPartition) members.push_back(context.replica * partitions + id);
    if (mode == GroupMode::kFlattenedIds) members.push_back(id);
  }
  if (mode == GroupMode::kCrossReplicaAndPartition) {
    for (int64_t partition = 0; partition < partitions; ++partition)
      for (int64_t id : group)
        if (id >= 0) members.push_back(id * partitions + partition);
  }
  return members;
}

int64_t MeshView::DeviceCount() const {
  int64_t count = 1;
  for (const MeshAxis& axis : mesh_.axes) {
    if (axis.size <= 0 || count > kMaxElements / axis.size) return kMaxElements;
    count *= axis.size;
  }
  return count;
}

int64_t MeshView::SizeOf(const AxisRef& axis) const {
  for (const MeshAxis& known : mesh_.axes)
    if (known.name == axis.name) return axis.size > 0 ? axis.size : known.size;
  return 0;
}

int64_t MeshView::PositionOf(int64_t n, const std::vector<AxisRef>& axes) const {
  int64_t position = 0;
  for (const AxisRef& axis : axes) {
    int64_t below = 1, digit = 0, size = 1;
    for (size_t i = mesh_.axes.size(); i-- > 0;) {
      const MeshAxis& known = mesh_.axes[i];
      if (known.name == axis.name) {
        digit = n / below % known.size;
        size = known.size;
        if (axis.size > 0) {
          int64_t post = known.size / (std::max<int64_t>(axis.pre_size, 1) * axis.size);
          digit = digit / std::max<int64_t>(post, 1) % axis.size;
          size = axis.size;
        }
      }
      below *= known.size;
    }
    position = position * size + digit;
  }
  return position;
}

int64_t MeshView::DeviceAt(int64_t n) const {
  return mesh_.device_ids.empty() ? n : mesh_.device_ids[static_cast<size_t>(n)];
}

int64_t MeshView::IndexOf(int64_t device) const {
  if (mesh_.device_ids.empty()) return device < DeviceCount() ? device : -1;
  auto at = std::find(mesh_.device_ids.begin(), mesh_.device_ids.end(), device);
  return at == mesh_.device_ids.end() ? -1 : at - mesh_.device_ids.begin();
}

const Mesh* FindMesh(const Module& module, const std::string& name) {
  for (const Mesh& mesh : module.meshes)
    if (mesh.name == name) return &mesh;
  return nullptr;
}

}  // namespace tokamak
