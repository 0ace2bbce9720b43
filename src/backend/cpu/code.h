#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/codegen.h"
#include "backend/cpu/target.h"
#include "kernel/kernel.h"
#include "support/result.h"

// Machine code of a program's kernels: batches kernels into object files, asks the disk cache,
// compiles with LLVM in parallel, and falls back to less optimization where LLVM fails.
namespace tokamak {
class DiskCache;
}

namespace tokamak::cpu {

struct CompileOptions {
  DiskCache* cache = nullptr;  // of object files; null: no cache
  std::chrono::milliseconds kernel_time = kMaxCodegenTime;
  // For tests: injects this fault into the first kernel, at this many effort levels. Disables the
  // cache.
  InjectedFault fault = InjectedFault::kNone;
  int fault_efforts = 0;
};

// A kernel that LLVM failed to compile at full effort.
struct CodegenFallback {
  size_t kernel = 0;
  std::string reason;                   // of the first failure
  std::optional<CodegenEffort> effort;  // the effort that succeeded, if any
};

// Machine code of the kernels of a program, for this machine. Reference-counted and immutable: any
// thread may call its functions.
class Code {
 public:
  // Kernels of equal form share a function. If LLVM fails on an object file of several kernels,
  // each is retried alone, then with less effort. TK4001, TK4003, TK4004.
  static Result<std::shared_ptr<const Code>> Compile(std::span<const Kernel* const> kernels,
                                                     const CompileOptions& options = {});

  // Null if LLVM failed at every effort.
  KernelFn function(size_t kernel) const { return functions_[kernel]; }
  const std::vector<CodegenFallback>& fallbacks() const { return fallbacks_; }
  // Summed over threads.
  const CompileTimes& times() const { return times_; }
  // Number of object files, and how many of them came from the cache.
  int objects() const { return static_cast<int>(loaded_.size()); }
  int cached() const { return cached_; }

 private:
  struct Batch;
  struct Made;
  static Made CompileBatch(const Batch& batch, const Target& target, const CompileOptions& options);
  static Status CompileAlone(const Batch& batch, size_t number, std::string reason, Made& made);

  std::vector<KernelFn> functions_;  // per kernel
  std::vector<std::shared_ptr<const LoadedCode>> loaded_;
  std::vector<CodegenFallback> fallbacks_;
  CompileTimes times_;
  int cached_ = 0;
};

}  // namespace tokamak::cpu
