// Client, devices and memories of the PJRT plugin: what jax.devices() lists. A client has
// TOKAMAK_NUM_DEVICES devices, which all run on one physical device (the host or a GPU); several
// allow sharded programs. Each device has two memory spaces and a worker thread that runs its
// programs in order:
//
//   client  ->  device 0  ->  worker, memories "device" (default) and "pinned_host"
//           ->  device 1  ->  ...
//
// Lifetime: the client is reference-counted, because JAX may destroy it while buffers and
// executables exist. Destroying the handle stops the workers; queued work fails, and later calls
// return TK6103. Counters of memories are never freed, since storage may outlive its client. After
// a fork the workers do not exist in the child, so new work is rejected (TK6101).

#include "pjrt/client.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>

#include "driver/compile/devices.h"
#include "driver/compile/named_options.h"
#include "pjrt/slots.h"
#include "runtime/process.h"
#include "support/hash.h"
#include "support/version.h"

namespace tokamak {
namespace {

// Devices of one client (chosen).
constexpr int kMaxClientDevices = 64;

struct TypePair {
  PJRT_Buffer_Type pjrt;
  ElementType type;
};
constexpr TypePair kTypes[] = {
#define TOK_PAIR(name, id) \
  { PJRT_Buffer_Type_##name, ElementType::k##id }
    TOK_PAIR(PRED, Pred),
    TOK_PAIR(S2, S2),
    TOK_PAIR(S4, S4),
    TOK_PAIR(S8, S8),
    TOK_PAIR(S16, S16),
    TOK_PAIR(S32, S32),
    TOK_PAIR(S64, S64),
    TOK_PAIR(U2, U2),
    TOK_PAIR(U4, U4),
    TOK_PAIR(U8, U8),
    TOK_PAIR(U16, U16),
    TOK_PAIR(U32, U32),
    TOK_PAIR(U64, U64),
    TOK_PAIR(F4E2M1FN, F4E2M1FN),
    TOK_PAIR(F6E2M3FN, F6E2M3FN),
    TOK_PAIR(F6E3M2FN, F6E3M2FN),
    TOK_PAIR(F8E3M4, F8E3M4),
    TOK_PAIR(F8E4M3, F8E4M3),
    TOK_PAIR(F8E4M3FN, F8E4M3FN),
    TOK_PAIR(F8E4M3FNUZ, F8E4M3FNUZ),
    TOK_PAIR(F8E4M3B11FNUZ, F8E4M3B11FNUZ),
    TOK_PAIR(F8E5M2, F8E5M2),
    TOK_PAIR(F8E5M2FNUZ, F8E5M2FNUZ),
    TOK_PAIR(F8E8M0FNU, F8E8M0FNU),
    TOK_PAIR(BF16, BF16),
    TOK_PAIR(F16, F16),
    TOK_PAIR(F32, F32),
    TOK_PAIR(F64, F64),
    TOK_PAIR(C64, C64),
    TOK_PAIR(C128, C128),
#undef TOK_PAIR
};

// TOKAMAK_NUM_DEVICES, or the equivalent client option.
Result<int> DeviceCount(const PJRT_Client_Create_Args& args) {
  const char* variable = std::getenv("TOKAMAK_NUM_DEVICES");
  int64_t count = 1;
  std::string given;
  if (variable != nullptr && *variable != '\0') {
    given = variable;
    char* end = nullptr;
    count = std::strtoll(variable, &end, 10);
    if (*end != '\0') count = -1;
  }
  for (size_t i = 0; i < args.num_options; ++i) {
    const PJRT_NamedValue& option = args.create_options[i];
    if (std::string_view(option.name, option.name_size) != "num_devices" ||
        option.type != PJRT_NamedValue_kInt64)
      continue;
    count = option.int64_value;
    given = std::to_string(count);
  }
  if (count < 1 || count > kMaxClientDevices)
    return MakeError(ErrorCode::kOptionValue, "TOKAMAK_NUM_DEVICES is '" + given +
                                                  "', it must be a number from 1 to " +
                                                  std::to_string(kMaxClientDevices));
  return static_cast<int>(count);
}

void Describe(PJRT_DeviceDescription& description, int id, const Device* device) {
  description.id = id;
  description.kind = device == nullptr ? "cpu" : device->info().name;
  description.text = (device == nullptr ? "TokamakCpuDevice(id=" : "TokamakCudaDevice(id=") +
                     std::to_string(id) + ")";
}

}  // namespace

PJRT_NamedValue& NamedValues::Add(std::string name, PJRT_NamedValue_Type type, size_t size) {
  texts_.push_back(std::make_unique<std::string>(std::move(name)));
  PJRT_NamedValue value{};
  value.struct_size = kStructSize<PJRT_NamedValue>;
  value.name = texts_.back()->c_str();
  value.name_size = texts_.back()->size();
  value.type = type;
  value.value_size = size;
  values_.push_back(value);
  return values_.back();
}
void NamedValues::AddInts(std::string name, std::vector<int64_t> values) {
  lists_.push_back(std::make_unique<std::vector<int64_t>>(std::move(values)));
  Add(std::move(name), PJRT_NamedValue_kInt64List, lists_.back()->size()).int64_array_value =
      lists_.back()->data();
}
void NamedValues::AddInt(std::string name, int64_t value) {
  Add(std::move(name), PJRT_NamedValue_kInt64, 1).int64_value = value;
}
void NamedValues::AddFloat(std::string name, float value) {
  Add(std::move(name), PJRT_NamedValue_kFloat, 1).float_value = value;
}

std::optional<ElementType> TypeFromPjrt(PJRT_Buffer_Type type) {
  for (const TypePair& pair : kTypes)
    if (pair.pjrt == type) return pair.type;
  return std::nullopt;
}

PJRT_Buffer_Type TypeToPjrt(ElementType type) {
  for (const TypePair& pair : kTypes)
    if (pair.type == type) return pair.pjrt;
  return PJRT_Buffer_Type_INVALID;
}

const std::string& PlatformVersion() {
  static const auto* version = new std::string("tokamak " + std::string(kVersion));
  return *version;
}

void DescribeTopology(PJRT_TopologyDescription& topology, int device_count, const Device* device) {
  topology.platform_version = PlatformVersion();
  for (int id = 0; id < device_count; ++id) {
    topology.own_descriptions.push_back(std::make_unique<PJRT_DeviceDescription>());
    Describe(*topology.own_descriptions.back(), id, device);
    topology.descriptions.push_back(topology.own_descriptions.back().get());
  }
  Hasher hasher;
  hasher.Add(std::string_view(topology.platform_version));
  hasher.Add(device_count);
  if (device != nullptr) hasher.Add(std::string_view(device->info().name));
  topology.fingerprint = hasher.digest();
}

namespace {

// Buffers count in it, even those destroyed after the client. All counters stay reachable from
// here, so that leak checkers do not report them.
MemoryCounter* CounterForEver() {
  static auto* mutex = new std::mutex;
  static auto* counters = new std::deque<MemoryCounter>;
  std::lock_guard<std::mutex> lock(*mutex);
  return &counters->emplace_back();
}

}  // namespace

PJRT_Client::PJRT_Client(int device_count, Device* runs_on) : on(runs_on) {
  DescribeTopology(topology, device_count, on);
  for (int id = 0; id < device_count; ++id) {
    auto device = std::make_unique<PJRT_Device>();
    device->client = this;
    Describe(device->description, id, on);
    device->worker = std::make_unique<Workers>("tokamak-dev" + std::to_string(id), 1);
    for (std::string_view kind : {"device", "pinned_host"}) {
      auto memory = std::make_unique<PJRT_Memory>();
      memory->client = this;
      memory->device = device.get();
      memory->id = static_cast<int>(memories.size());
      memory->kind_id = static_cast<int>(device->memories.size());
      memory->kind = kind;
      memory->on = kind == "device" ? on : nullptr;
      memory->text = memory->kind + " memory of device " + std::to_string(id);
      memory->counter = CounterForEver();
      device->memories.push_back(memory.get());
      memories.push_back(memory.get());
      own_memories.push_back(std::move(memory));
    }
    devices.push_back(device.get());
    own_devices.push_back(std::move(device));
  }
}

Result<Ref<Storage>> PJRT_Memory::Allocate(size_t bytes, std::string_view user) const {
  return on == nullptr ? Storage::Allocate(bytes, counter) : Storage::AllocateOn(*on, bytes, user);
}

Result<Ref<Storage>> PJRT_Memory::Promise(size_t bytes, std::string_view user) const {
  return on == nullptr ? Storage::Promise(bytes, counter) : Storage::AllocateOn(*on, bytes, user);
}

PJRT_Client::~PJRT_Client() {
  Stop();
}

void PJRT_Client::Stop() {
  stopped.store(true, std::memory_order_release);
  for (PJRT_Device* device : devices) device->worker->Stop();
}

Status PJRT_Client::CheckRunning() const {
  if (WasForked()) [[unlikely]]
    return MakeError(ErrorCode::kForked,
                     "tokamak: this process was forked after the client had started; start Python "
                     "processes with multiprocessing's 'spawn' or 'forkserver'");
  if (stopped.load(std::memory_order_acquire)) [[unlikely]]
    return MakeError(ErrorCode::kStopped, "tokamak: the client was destroyed");
  return Ok();
}

PJRT_Device* PJRT_Client::FindDevice(int64_t id) const {
  return id >= 0 && id < static_cast<int64_t>(devices.size()) ? devices[static_cast<size_t>(id)]
                                                              : nullptr;
}

PJRT_Error* PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args&) {
  return nullptr;
}

PJRT_Error* PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args& args) {
  static const NamedValues* attributes = [] {
    auto* values = new NamedValues;
    // The newest StableHLO version that our parser supports; newer JAX versions can also emit it.
    values->AddInts("stablehlo_current_version", {1, 13, 0});
    values->AddInts("stablehlo_minimum_version", {0, 9, 0});
    values->AddInt("xla_version", 2);
    return values;
  }();
  args.attributes = attributes->data();
  args.num_attributes = attributes->size();
  return nullptr;
}

PJRT_Error* PJRT_Client_Create(PJRT_Client_Create_Args& args) {
  if (WasForked())
    return Fail(ErrorCode::kForked, "tokamak: this process was forked after a client had started");
  TOK_PJRT_TRY(int count, DeviceCount(args));
  TOK_PJRT_TRY(CompileOptions environment, OptionsOfEnvironment());
  TOK_PJRT_TRY(Device * device, DeviceOf(environment.backend));
  args.client = MakeRef<PJRT_Client>(count, device).Detach();
  ForgetCode();
  return nullptr;
}

PJRT_Error* PJRT_Client_Destroy(PJRT_Client_Destroy_Args& args) {
  if (args.client == nullptr) return nullptr;
  args.client->Stop();
  args.client->Release();
  return nullptr;
}

PJRT_Error* PJRT_Client_PlatformName(PJRT_Client_PlatformName_Args& args) {
  args.platform_name = kPlatformName.data();
  args.platform_name_size = kPlatformName.size();
  return nullptr;
}

PJRT_Error* PJRT_Client_ProcessIndex(PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = 0;
  return nullptr;
}

PJRT_Error* PJRT_Client_PlatformVersion(PJRT_Client_PlatformVersion_Args& args) {
  args.platform_version = PlatformVersion().c_str();
  args.platform_version_size = PlatformVersion().size();
  return nullptr;
}

PJRT_Error* PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = &args.client->topology;
  return nullptr;
}

PJRT_Error* PJRT_Client_Devices(PJRT_Client_Devices_Args& args) {
  args.devices = args.client->devices.data();
  args.num_devices = args.client->devices.size();
  return nullptr;
}

PJRT_Error* PJRT_Client_AddressableDevices(PJRT_Client_AddressableDevices_Args& args) {
  args.addressable_devices = args.client->devices.data();
  args.num_addressable_devices = args.client->devices.size();
  return nullptr;
}

PJRT_Error* PJRT_Client_LookupDevice(PJRT_Client_LookupDevice_Args& args) {
  args.device = args.client->FindDevice(args.id);
  if (args.device != nullptr) return nullptr;
  return Fail(ErrorCode::kUnknownDevice, "tokamak: there is no device " + std::to_string(args.id) +
                                             ", there are " +
                                             std::to_string(args.client->devices.size()));
}

PJRT_Error* PJRT_Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args& args) {
  args.addressable_device = args.client->FindDevice(args.local_hardware_id);
  if (args.addressable_device != nullptr) return nullptr;
  return Fail(ErrorCode::kUnknownDevice,
              "tokamak: there is no device " + std::to_string(args.local_hardware_id) +
                  ", there are " + std::to_string(args.client->devices.size()));
}

PJRT_Error* PJRT_Client_AddressableMemories(PJRT_Client_AddressableMemories_Args& args) {
  args.addressable_memories = args.client->memories.data();
  args.num_addressable_memories = args.client->memories.size();
  return nullptr;
}

// Replica-major order.
PJRT_Error* PJRT_Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  int64_t wanted = int64_t{args.num_replicas} * args.num_partitions;
  size_t devices = args.client->devices.size();
  if (wanted < 1 || wanted > static_cast<int64_t>(devices) ||
      args.default_assignment_size < static_cast<size_t>(wanted))
    return Fail(ErrorCode::kUnknownDevice,
                "tokamak: " + std::to_string(args.num_replicas) + " replicas of " +
                    std::to_string(args.num_partitions) + " partitions, the client has " +
                    std::to_string(devices) + " devices");
  for (int64_t i = 0; i < wanted; ++i) args.default_assignment[i] = static_cast<int>(i);
  return nullptr;
}

PJRT_Error* PJRT_Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args&) {
  return nullptr;  // there is only one process
}

PJRT_Error* PJRT_Client_DmaMap(PJRT_Client_DmaMap_Args&) {
  return nullptr;  // host memory is the device's, or is copied through our own staging memory
}

PJRT_Error* PJRT_Client_DmaUnmap(PJRT_Client_DmaUnmap_Args&) {
  return nullptr;
}

}  // namespace tokamak
