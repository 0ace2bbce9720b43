#include "driver/compile/target.h"

#include <algorithm>
#include <string>
#include <thread>

#include "driver/compile/backend.h"
#include "driver/compile/devices.h"
#include "driver/compile/host_rates.h"
#include "runtime/host_memory.h"
#include "support/near_names.h"

#if TOK_HAVE_LLVM
#include "backend/cpu/code.h"
#endif

namespace tokamak {
namespace {

Target HostTarget() {
  Target target;
  target.name = "host";
  target.machine = HostMachine();
  target.libraries = LibraryUse::kPresent;
  target.memory_bytes = static_cast<int64_t>(HostMemory());
  return target;
}

Target H200() {
  Target target;
  target.name = "h200";
  target.machine = GpuMachine();
  target.machine.rates = &GpuRates();
  target.kernel_backend = KernelBackend::kCuda;
  target.libraries = LibraryUse::kAll;
  return target;
}

// A simulated GPU with one SM, so that small programs get the schedules of large ones.
Target SimulatedTarget() {
  Target target = H200();
  target.machine.cores = 1;
  target.libraries = LibraryUse::kNone;
  return target;
}

// The target of a present GPU.
Target DeviceTarget(Device& device, bool is_simulated) {
  Target target = SimulatedTarget();
  target.device = &device;
  target.libraries = LibraryUse::kPresent;
  if (is_simulated) return target;
  target.machine.cores = device.info().multiprocessors;
  // wgmma and its like are of compute capability 9.0 alone (sm_90a).
  target.machine.async_multiply = device.info().compute_major == 9;
  target.machine.rates = &RatesOfGpu(device.info());
  return target;
}

}  // namespace

Result<Target> TargetNamed(std::string_view name) {
  if (name == "host") return HostTarget();
  if (name == "h200") return H200();
  return MakeError(ErrorCode::kOptionValue, "target: " + NoneOf(name, {"host", "h200"}));
}

Result<Target> TargetOfBackend(std::string_view name) {
  TOK_TRY(const BackendInfo* backend, FindBackend(name));
  TOK_TRY(Device * device, DeviceOf(backend->name));
  Target target;
  if (device != nullptr) {
    target = DeviceTarget(*device, backend->name == "sim-cuda");
  } else if (backend->name == "sim-gpu") {
    target = SimulatedTarget();
    target.kernel_backend = KernelBackend::kGpuSimulator;
  } else if (backend->name == "interp") {
    target.kernel_backend = KernelBackend::kInterpreter;
  } else {
    target = HostTarget();
    if (backend->name == "sim") target.kernel_backend = KernelBackend::kSimulator;
  }
  target.name = backend->name;
  return target;
}

Machine HostMachine() {
  Machine machine;
  machine.cores = UsesDefaultRates() ? 2 : std::max(1u, std::thread::hardware_concurrency());
#if defined(__x86_64__)
  machine.vector_bits = __builtin_cpu_supports("avx512f") != 0 ? 512
                        : __builtin_cpu_supports("avx2") != 0  ? 256
                                                               : 128;
#endif
#if TOK_HAVE_LLVM
  if (Result<cpu::Target> target = cpu::HostTarget(); target.ok()) {
    machine.dots_bf16 = target.value().dots_bf16;
    machine.matrix_tiles = target.value().has_tiles;
    machine.has_extremes = target.value().has_extremes && !UsesDefaultRates();
  }
#endif
  machine.rates = &HostRates();
  return machine;
}

}  // namespace tokamak
