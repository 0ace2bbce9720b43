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

namespace tokamak {

// Named values as the ABI has them, with what they point to.
class NamedValues {
 public:
  void AddString(std::string name, std::string value);
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

// One of the kinds of memory of a device.
struct PJRT_Memory {
  const PJRT_Memory_FunctionTable* vtable = nullptr;
  PJRT_Client* client = nullptr;
  PJRT_Device* device = nullptr;
  int id = 0;
  int kind_id = 0;
  std::string kind, text;
  // The device whose memory it is; null: the host's.
  Device* on = nullptr;
  // Of the host's memory. For ever, 32 bytes a memory: storage may outlive its client.
  MemoryCounter* counter = nullptr;

  // Memory for an array; `user` says whose, when there is no more. Of the host's, the second is
  // only taken when somebody needs it.
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

// Held by its handle and by everything that was made from it. Destroying the handle stops the
// workers; what is left of the client goes with the last buffer.
struct PJRT_Client final : RefCounted {
  // `runs_on`: what runs the programs of all its devices; null: the host.
  PJRT_Client(int device_count, Device* runs_on);
  ~PJRT_Client() override;

  // Ends and joins the workers; work that is queued gets TK6103.
  void Stop();
  // TK6101, TK6103: why nothing can be started any more.
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
// A description of `device_count` devices that are `device`; null: CPU devices.
void DescribeTopology(PJRT_TopologyDescription& topology, int device_count, const Device* device);

// The element types that buffers have; nothing for TOKEN, S1, U1.
std::optional<ElementType> TypeFromPjrt(PJRT_Buffer_Type type);
PJRT_Buffer_Type TypeToPjrt(ElementType type);

}  // namespace tokamak
