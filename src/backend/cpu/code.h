#pragma once

#include <cstdint>
#include <memory>
#include <span>
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
};

// Machine code of the kernels of a program, for this machine. Alive as long as somebody holds it.
// Immutable: any thread may call its functions.
class Code {
 public:
  // Kernels of equal form share a function. TK4001 to TK4004.
  static Result<std::shared_ptr<const Code>> Compile(std::span<const Kernel* const> kernels,
                                                     const CompileOptions& options = {});

  KernelFn function(size_t kernel) const { return functions_[kernel]; }
  // Summed over threads.
  const CompileTimes& times() const { return times_; }
  // Object files: how many, and how many of them the cache had.
  int objects() const { return static_cast<int>(loaded_.size()); }
  int cached() const { return cached_; }

 private:
  struct Batch;
  struct Made;
  static Made CompileBatch(const Batch& batch, const Target& target, const CompileOptions& options);

  std::vector<KernelFn> functions_;  // per kernel
  std::vector<std::shared_ptr<const LoadedCode>> loaded_;
  CompileTimes times_;
  int cached_ = 0;
};

}  // namespace tokamak::cpu
