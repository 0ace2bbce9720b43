#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cost/machine.h"
#include "support/result.h"

// The target of a compilation: machine, kernel backend, libraries and devices.

namespace tokamak {

class Device;

// How kernels are turned into executable code.
enum class KernelBackend : uint8_t {
  kInterpreter,   // not at all: no kernels are built, the interpreter runs the program
  kMachineCode,   // LLVM
  kSimulator,     // the checked simulator, for CPU kernels
  kGpuSimulator,  // the checked simulator, for GPU kernels
  kCuda,          // NVRTC, or the simulated device
};

// The libraries that a program may call instead of running generated kernels.
enum class LibraryUse : uint8_t {
  kNone,
  kPresent,  // those that this process can open; probed when a program needs one
  kAll,      // all of the target's vendor, for a target that need not be present
};

// The devices that a program is sharded over.
struct TargetMesh {
  int64_t replicas = 1, partitions = 1;
  int64_t devices() const { return replicas * partitions; }
};

struct Target {
  std::string name;  // "host", "h200" or another described machine; otherwise the backend's name
  Machine machine;
  KernelBackend kernel_backend = KernelBackend::kMachineCode;
  LibraryUse libraries = LibraryUse::kNone;
  Device* device = nullptr;  // the device that runs it; null: the host, or not present
  int64_t memory_bytes = 0;  // available for temporary arrays; 0: unknown
  TargetMesh mesh;

  bool is_gpu() const { return machine.is_gpu(); }
};

// "host": the machine of this process. "h200": an NVIDIA H200 with NVIDIA's libraries, which need
// not be present. Returns TK6107 for another name.
Result<Target> TargetNamed(std::string_view name);
// The target of a backend; empty: the best one that is built. A present GPU is described by its
// device properties. Returns TK6002, TK6003, TK4201 or TK4202.
Result<Target> TargetOfBackend(std::string_view backend);

// The machine of this process.
Machine HostMachine();

}  // namespace tokamak
