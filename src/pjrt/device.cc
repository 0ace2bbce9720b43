// Devices, their descriptions and memories: getters that cannot fail.

#include <unistd.h>

#include "pjrt/client.h"
#include "pjrt/slots.h"

namespace tokamak {

PJRT_Error* PJRT_DeviceDescription_Id(PJRT_DeviceDescription_Id_Args& args) {
  args.id = args.device_description->id;
  return nullptr;
}

PJRT_Error* PJRT_DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = 0;
  return nullptr;
}

PJRT_Error* PJRT_DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args& args) {
  args.attributes = args.device_description->attributes.data();
  args.num_attributes = args.device_description->attributes.size();
  return nullptr;
}

PJRT_Error* PJRT_DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args& args) {
  args.device_kind = args.device_description->kind.c_str();
  args.device_kind_size = args.device_description->kind.size();
  return nullptr;
}

PJRT_Error* PJRT_DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args& args) {
  args.debug_string = args.device_description->text.c_str();
  args.debug_string_size = args.device_description->text.size();
  return nullptr;
}

PJRT_Error* PJRT_DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args& args) {
  args.to_string = args.device_description->text.c_str();
  args.to_string_size = args.device_description->text.size();
  return nullptr;
}

PJRT_Error* PJRT_Device_GetDescription(PJRT_Device_GetDescription_Args& args) {
  args.device_description = &args.device->description;
  return nullptr;
}

PJRT_Error* PJRT_Device_IsAddressable(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = true;
  return nullptr;
}

PJRT_Error* PJRT_Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = args.device->description.id;
  return nullptr;
}

PJRT_Error* PJRT_Device_AddressableMemories(PJRT_Device_AddressableMemories_Args& args) {
  args.memories = args.device->memories.data();
  args.num_memories = args.device->memories.size();
  return nullptr;
}

PJRT_Error* PJRT_Device_DefaultMemory(PJRT_Device_DefaultMemory_Args& args) {
  args.memory = args.device->memories[0];
  return nullptr;
}

PJRT_Error* PJRT_Device_GetAttributes(PJRT_Device_GetAttributes_Args& args) {
  args.attributes = args.device->description.attributes.data();
  args.num_attributes = args.device->description.attributes.size();
  args.device_attributes = nullptr;
  args.attributes_deleter = [](PJRT_Device_Attributes*) {};  // owned by the device
  return nullptr;
}

// A caller built for JAX 0.10 has fewer fields than this version of the ABI.
PJRT_Error* PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args& args) {
  const PJRT_Memory& memory = *args.device->memories[0];
  const MemoryCounter& counter = *memory.counter;
#define TOK_SET(field, value)                 \
  if (TOK_PJRT_HOLDS(args, field##_is_set)) { \
    args.field = (value);                     \
    args.field##_is_set = true;               \
  }
#define TOK_UNSET(field) \
  if (TOK_PJRT_HOLDS(args, field##_is_set)) args.field##_is_set = false;
  if (memory.on != nullptr) {
    BlockStats stats = memory.on->MemoryStats();
    args.bytes_in_use = stats.in_use;
    TOK_SET(peak_bytes_in_use, stats.peak)
    TOK_SET(num_allocs, stats.allocations)
    TOK_SET(largest_alloc_size, stats.largest)
    TOK_SET(bytes_limit, stats.limit)
    TOK_SET(largest_free_block_bytes, stats.largest_free)
    TOK_SET(pool_bytes, stats.reserved)
    TOK_SET(peak_pool_bytes, stats.peak_reserved)
    TOK_UNSET(bytes_reserved)
    TOK_UNSET(peak_bytes_reserved)
    TOK_UNSET(bytes_reservable_limit)
    TOK_UNSET(peak_allocated_bytes)
    return nullptr;
  }
  args.bytes_in_use = counter.in_use.load(std::memory_order_relaxed);
  TOK_SET(peak_bytes_in_use, counter.peak.load(std::memory_order_relaxed))
  TOK_SET(num_allocs, counter.allocations.load(std::memory_order_relaxed))
  TOK_SET(largest_alloc_size, counter.largest.load(std::memory_order_relaxed))
  TOK_SET(bytes_limit, int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE))
  TOK_UNSET(bytes_reserved)
  TOK_UNSET(peak_bytes_reserved)
  TOK_UNSET(bytes_reservable_limit)
  TOK_UNSET(largest_free_block_bytes)
  TOK_UNSET(pool_bytes)
  TOK_UNSET(peak_pool_bytes)
  TOK_UNSET(peak_allocated_bytes)
#undef TOK_SET
#undef TOK_UNSET
  return nullptr;
}

PJRT_Error* PJRT_Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args& args) {
  const PJRT_Memory& memory = *args.device->memories[0];
  if (memory.on != nullptr) {
    memory.on->ClearMemoryPeaks();
    return nullptr;
  }
  MemoryCounter& counter = *memory.counter;
  counter.peak.store(counter.in_use.load());
  counter.largest.store(0);
  counter.allocations.store(0);
  return nullptr;
}

PJRT_Error* PJRT_Memory_Id(PJRT_Memory_Id_Args& args) {
  args.id = args.memory->id;
  return nullptr;
}

PJRT_Error* PJRT_Memory_Kind(PJRT_Memory_Kind_Args& args) {
  args.kind = args.memory->kind.c_str();
  args.kind_size = args.memory->kind.size();
  return nullptr;
}

PJRT_Error* PJRT_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = args.memory->kind_id;
  return nullptr;
}

PJRT_Error* PJRT_Memory_DebugString(PJRT_Memory_DebugString_Args& args) {
  args.debug_string = args.memory->text.c_str();
  args.debug_string_size = args.memory->text.size();
  return nullptr;
}

PJRT_Error* PJRT_Memory_ToString(PJRT_Memory_ToString_Args& args) {
  args.to_string = args.memory->text.c_str();
  args.to_string_size = args.memory->text.size();
  return nullptr;
}

PJRT_Error* PJRT_Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args& args) {
  args.devices = &args.memory->device;
  args.num_devices = 1;
  return nullptr;
}

}  // namespace tokamak
