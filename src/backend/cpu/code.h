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

namespace tokamak {
class DiskCache;
}

namespace tokamak::cpu {

struct CompileOptions {
  DiskCache* cache = nullptr;  // of object files; null: none
  std::chrono::milliseconds kernel_time = kMaxCodegenTime;
  // For tests: the first kernel has this fault at so many efforts. The cache is not used then.
  PlantedFault fault = PlantedFault::kNone;
  int fault_efforts = 0;
};

// A kernel of which LLVM made no code in full.
struct CodegenFallback {
  size_t kernel = 0;
  std::string reason;                   // the first one
  std::optional<CodegenEffort> effort;  // that made it; nothing: none did
};

// Machine code of the kernels of a program, for this machine. Alive as long as somebody holds it.
// Immutable: any thread may call its functions.
class Code {
 public:
  // Kernels of equal form share a function. Where LLVM fails, what is in an object file with others
  // is tried alone, then with less effort. TK4001, TK4003, TK4004.
  static Result<std::shared_ptr<const Code>> Compile(std::span<const Kernel* const> kernels,
                                                     const CompileOptions& options = {});

  // Null: LLVM has failed at every effort.
  KernelFn function(size_t kernel) const { return functions_[kernel]; }
  const std::vector<CodegenFallback>& fallbacks() const { return fallbacks_; }
  // Summed over threads.
  const CompileTimes& times() const { return times_; }
  // Object files: how many, and how many of them the cache had.
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
