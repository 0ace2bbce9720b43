#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cost/machine.h"
#include "support/result.h"

// What a program is compiled for.

namespace tokamak {

class Device;

// Who turns kernels into something that runs.
enum class KernelMaker : uint8_t {
  kInterpreter,   // nobody: the program is not made into kernels
  kMachineCode,   // LLVM
  kSimulator,     // the checked simulator, for kernels of a CPU
  kGpuSimulator,  // the same, for kernels of a GPU
  kCuda,          // NVRTC, or the simulated device
};

// The libraries that a program may call instead of running kernels of its own.
enum class LibraryUse : uint8_t {
  kNone,
  kPresent,  // those that this process can open, asked for when a program has use for them
  kAll,      // all that the target's vendor has: of a target that is described, not present
};

// The devices that a program is spread over.
struct TargetMesh {
  int64_t replicas = 1, partitions = 1;
  int64_t devices() const { return replicas * partitions; }
};

struct Target {
  std::string name;  // "host", "h200" and others without a device; else that of the backend
  Machine machine;
  KernelMaker maker = KernelMaker::kMachineCode;
  LibraryUse libraries = LibraryUse::kNone;
  Device* device = nullptr;  // that runs it; null: the host, or nothing here
  int64_t memory_bytes = 0;  // that temporary arrays may take; 0: not known
  TargetMesh mesh;

  bool is_gpu() const { return machine.is_gpu(); }
};

// "host": the machine that this process runs on. "h200": an NVIDIA H200 with NVIDIA's libraries,
// which need not be here. TK6107 for another name.
Result<Target> TargetNamed(std::string_view name);
// What a backend compiles for; "": the best one that is built. A GPU that is present describes
// itself. TK6002, TK6003, TK4201, TK4202.
Result<Target> TargetOfBackend(std::string_view backend);

// The machine that this process runs on.
Machine HostMachine();

}  // namespace tokamak
