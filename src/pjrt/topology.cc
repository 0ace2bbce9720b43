// Topologies: what devices there would be.

#include "pjrt/client.h"
#include "pjrt/slots.h"

namespace tokamak {

PJRT_Error* PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args& args) {
  auto topology = std::make_unique<PJRT_TopologyDescription>();
  DescribeTopology(*topology, 1);
  args.topology = topology.release();
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  delete args.topology;
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_PlatformName(
    PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = kPlatformName.data();
  args.platform_name_size = kPlatformName.size();
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_PlatformVersion(
    PJRT_TopologyDescription_PlatformVersion_Args& args) {
  args.platform_version = args.topology->platform_version.c_str();
  args.platform_version_size = args.topology->platform_version.size();
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  args.descriptions = args.topology->descriptions.data();
  args.num_descriptions = args.topology->descriptions.size();
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  args.attributes = args.topology->attributes.data();
  args.num_attributes = args.topology->attributes.size();
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  args.fingerprint = args.topology->fingerprint;
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args& args) {
  static constexpr int kKinds[] = {0, 1};
  args.memory_space_kind_ids = kKinds;
  args.num_memory_space_kind_ids = 2;
  return nullptr;
}

}  // namespace tokamak
