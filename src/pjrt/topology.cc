// Topologies: descriptions of devices without a client.

#include <cstdlib>
#include <memory>

#include "driver/compile/devices.h"
#include "driver/compile/named_options.h"
#include "pjrt/client.h"
#include "pjrt/slots.h"

namespace tokamak {

PJRT_Error* PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args& args) {
  auto topology = std::make_unique<PJRT_TopologyDescription>();
  // Describes the device that a client would use; fails if it is not present.
  TOK_PJRT_TRY(CompileOptions environment, OptionsOfEnvironment());
  TOK_PJRT_TRY(Device * device, DeviceOf(environment.backend));
  DescribeTopology(*topology, 1, device);
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

// Serialized as the version and the number of devices.
PJRT_Error* PJRT_TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  auto* text = new std::string(args.topology->platform_version + "\n" +
                               std::to_string(args.topology->descriptions.size()));
  args.serialized_bytes = text->data();
  args.serialized_bytes_size = text->size();
  args.serialized_topology = reinterpret_cast<PJRT_SerializedTopology*>(text);
  args.serialized_topology_deleter = [](PJRT_SerializedTopology* held) {
    delete reinterpret_cast<std::string*>(held);
  };
  return nullptr;
}

PJRT_Error* PJRT_TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args& args) {
  std::string text(args.serialized_topology, args.serialized_topology_size);
  size_t line = text.find('\n');
  char* end = nullptr;
  long count = line == std::string::npos ? 0 : std::strtol(text.c_str() + line + 1, &end, 10);
  if (count < 1 || count > 4096 || *end != '\0' || text.substr(0, line) != PlatformVersion())
    return Fail(ErrorCode::kSerializedProgram,
                "serialized topology: the bytes are damaged or of another version");
  auto topology = std::make_unique<PJRT_TopologyDescription>();
  TOK_PJRT_TRY(CompileOptions environment, OptionsOfEnvironment());
  TOK_PJRT_TRY(Device * device, DeviceOf(environment.backend));
  DescribeTopology(*topology, static_cast<int>(count), device);
  args.topology = topology.release();
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
