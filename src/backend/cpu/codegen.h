#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/target.h"
#include "kernel/kernel.h"
#include "support/result.h"

// What LLVM does for us, without its types. Any thread may call these at any time.

namespace tokamak::cpu {

using KernelFn = void (*)(void* const* arguments, const int64_t* extents, int64_t begin,
                          int64_t end);

struct CompileTimes {
  int64_t emit_us = 0, optimize_us = 0, generate_us = 0, load_us = 0;

  CompileTimes& operator+=(const CompileTimes& more) {
    emit_us += more.emit_us;
    optimize_us += more.optimize_us;
    generate_us += more.generate_us;
    load_us += more.load_us;
    return *this;
  }
};

// An object file with the functions k0, k1 ... of these kernels. TK4001, TK4002.
Result<std::string> MakeObject(std::span<const Kernel* const> kernels, const Target& target,
                               CompileTimes* times = nullptr);

// The LLVM IR of one kernel as text, before or after its passes: for people and tests.
Result<std::string> MakeIr(const Kernel& kernel, const Target& target, bool optimized);

// Machine code in memory that may be executed.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // The function k<i>.
  KernelFn function(size_t i) const { return functions_[i]; }
  size_t size() const { return functions_.size(); }

 protected:
  LoadedCode() = default;
  std::vector<KernelFn> functions_;
};

// The functions k0 ... of an object file that MakeObject made. TK4002, TK4004.
Result<std::shared_ptr<const LoadedCode>> LoadObject(std::string_view object, size_t functions);

}  // namespace tokamak::cpu
