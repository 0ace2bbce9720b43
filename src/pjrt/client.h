#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ir/element_type.h"
#include "pjrt/abi.h"
#include "runtime/device.h"
#include "runtime/ref.h"
#include "runtime/storage.h"
#include "runtime/worker.h"
#include "support/result.h"

// Client, devices, memories and topology of the PJRT plugin.

namespace tokamak {

// Named values of the ABI with the storage that they point to.
class NamedValues {
 public:
  void AddInts(std::string name, std::vector<int64_t> values);
  void AddInt(std::string name, int64_t value);
  void AddFloat(std::string name, float value);
  const PJRT_NamedValue* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  PJRT_NamedValue& Add(std::string name, PJRT_NamedValue_Type type, size_t size);
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<std::unique_ptr<std::vector<int64_t>>> lists_;
  std::vector<PJRT_NamedValue> values_;
};

// One memory space of a device.
struct PJRT_Memory {
  const PJRT_Memory_FunctionTable* vtable = nullptr;
  PJRT_Client* client = nullptr;
  PJRT_Device* device = nullptr;
  int id = 0;
  int kind_id = 0;
  std::string kind, text;
  // The device that owns the memory; null for host memory.
  Device* on = nullptr;
  // Host memory only. Never freed (32 bytes per memory): storage may outlive its client.
  MemoryCounter* counter = nullptr;

  // Memory for an array; `user` is named in the out-of-memory error. Promise defers the allocation
  // of host memory until it is needed.
  Result<Ref<Storage>> Allocate(size_t bytes, std::string_view user) const;
  Result<Ref<Storage>> Promise(size_t bytes, std::string_view user) const;
};

struct PJRT_DeviceDescription {
  int id = 0;
  std::string kind, text;
  NamedValues attributes;
};

struct PJRT_Device {
  PJRT_Client* client = nullptr;
  PJRT_DeviceDescription description;
  std::vector<PJRT_Memory*> memories;  // the first is the default
  // Runs the programs of the device.
  std::unique_ptr<Workers> worker;
};

struct PJRT_TopologyDescription {
  std::string platform_version;
  std::vector<std::unique_ptr<PJRT_DeviceDescription>> own_descriptions;
  std::vector<PJRT_DeviceDescription*> descriptions;
  NamedValues attributes;
  uint64_t fingerprint = 0;
};

// Referenced by its handle and by everything created from it. Destroying the handle stops the
// workers; the rest of the client is destroyed with the last buffer.
struct PJRT_Client final : RefCounted {
  // `runs_on`: the device that runs the programs of all its PJRT devices; null for the host.
  PJRT_Client(int device_count, Device* runs_on);
  ~PJRT_Client() override;

  // Stops and joins the workers; queued work fails with TK6103.
  void Stop();
  // Returns TK6101 or TK6103 if no more work can be started.
  Status CheckRunning() const;
  PJRT_Device* FindDevice(int64_t id) const;

  Device* const on;
  std::vector<std::unique_ptr<PJRT_Device>> own_devices;
  std::vector<std::unique_ptr<PJRT_Memory>> own_memories;
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_Memory*> memories;
  PJRT_TopologyDescription topology;
  std::atomic<bool> stopped{false};
};

inline constexpr std::string_view kPlatformName = "tokamak";
// Version and build id: part of every cache key.
const std::string& PlatformVersion();
// Describes `device_count` devices of the kind of `device`; null for CPU devices.
void DescribeTopology(PJRT_TopologyDescription& topology, int device_count, const Device* device);

// The element types that buffers support; nullopt for TOKEN, S1, U1.
std::optional<ElementType> TypeFromPjrt(PJRT_Buffer_Type type);
PJRT_Buffer_Type TypeToPjrt(ElementType type);

}  // namespace tokamak
