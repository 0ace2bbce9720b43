#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/target.h"
#include "kernel/kernel.h"
#include "kernel/simulate.h"
#include "lower/lower.h"
#include "runtime/steps.h"
#include "support/result.h"

namespace tokamak {

// Where simulated kernels say what was wrong.
struct KernelFault {
  std::mutex mutex;
  std::optional<Error> first;
  void Note(Result<SimReport> report);
};

// A kernel that LLVM could not compile as it should.
struct KernelFallback {
  size_t kernel = 0;
  std::string text;  // "code generation was abandoned: SIGSEGV; compiled without optimization"
  bool interpreted = false;
};

// The code of a program's kernels, in their order.
struct KernelCodes {
  std::vector<std::unique_ptr<KernelCode>> all;
  std::vector<KernelFallback> fallbacks;
  std::unique_ptr<KernelFault> fault;
  std::unique_ptr<PackCode> packs;  // of kernels for a GPU: a pack is one launch

  // The first fault since the last time it was asked for.
  Status TakeFault() const;
};

// For tests of checks: after kernel `number`, the first element of what it writes is another one.
// Nothing when there is no such kernel.
void SpoilCode(KernelCodes& codes, const LoweredProgram& program, int64_t number);

// `fault`: for tests, as CompileOptions has it.
Result<KernelCodes> MakeCodes(const std::vector<Kernel>& kernels, KernelMaker maker,
                              std::string_view fault = "");
// Whether there is such a fault for tests: "crash", "abort", "fatal" or "endless", and perhaps
// ":2", the number of efforts of code generation that it meets.
bool IsCodegenFault(std::string_view text);

}  // namespace tokamak
