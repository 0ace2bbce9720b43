#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/compile/target.h"
#include "kernel/kernel.h"
#include "kernel/simulate.h"
#include "lower/lower.h"
#include "runtime/steps.h"
#include "support/result.h"

// Machine code, simulated code and fallbacks of the kernels of a CPU program.

namespace tokamak {

// The first error found by simulated kernels. Thread-safe.
struct SimulationError {
  std::mutex mutex;
  std::optional<Error> first;
  void Note(Result<SimReport> report);
};

// A kernel that LLVM failed to compile with optimizations.
struct KernelFallback {
  size_t kernel = 0;
  std::string text;  // "code generation was abandoned: SIGSEGV; compiled without optimization"
  bool interpreted = false;
};

// The code of a program's kernels, in program order.
struct KernelCodes {
  std::vector<std::unique_ptr<KernelCode>> all;
  std::vector<KernelFallback> fallbacks;
  std::unique_ptr<SimulationError> fault;
  std::unique_ptr<HorizontalCode> horizontal;  // GPU kernels: runs a horizontally fused launch

  // Returns and clears the first simulation error.
  Status TakeSimulationError() const;
};

// For tests of the checks: makes kernel `number` write a wrong first element. No effect if there is
// no such kernel.
void CorruptCode(KernelCodes& codes, const LoweredProgram& program, int64_t number);

// `fault`: for tests, see CompileOptions::codegen_fault.
Result<KernelCodes> MakeCodes(const std::vector<Kernel>& kernels, KernelBackend kernel_backend,
                              std::string_view fault = "");

}  // namespace tokamak
