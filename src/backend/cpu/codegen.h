#pragma once

#include <chrono>
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

// How much LLVM is asked for. Each leaves out more of what may have crashed with the one above.
enum class CodegenEffort : uint8_t {
  kFull,
  kOtherSelector,  // of instructions: GlobalISel for aarch64; FastISel, at level 0, for x86_64
  kLeast,          // level 0, and none of LLVM's passes before it
};
std::string_view NameOf(CodegenEffort effort);

// Time of a processor that LLVM may take for one kernel. Then the kernel is compiled with less
// effort, or interpreted, and a record says so.
inline constexpr std::chrono::milliseconds kMaxCodegenTime{120'000};

// For tests: what code generation does in place of the first kernel.
enum class PlantedFault : uint8_t { kNone, kCrash, kAbort, kFatalError, kEndless };

struct CodegenOptions {
  CodegenEffort effort = CodegenEffort::kFull;
  std::chrono::milliseconds kernel_time = kMaxCodegenTime;  // of a processor, for each kernel
  PlantedFault fault = PlantedFault::kNone;
};

// An object file with the functions k0, k1 ... of these kernels. TK4001; TK4002 also when LLVM
// crashes or does not come to an end: the thread that it runs on is left behind
// (runtime/guarded_thread.h).
Result<std::string> MakeObject(std::span<const Kernel* const> kernels, const Target& target,
                               const CodegenOptions& options = {}, CompileTimes* times = nullptr);

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

struct ObjectCode {
  std::string object;
  std::shared_ptr<const LoadedCode> loaded;
};
// MakeObject and LoadObject, for this machine, under one guard. TK4001, TK4002, TK4004.
Result<ObjectCode> MakeCode(std::span<const Kernel* const> kernels, const Target& target,
                            const CodegenOptions& options, CompileTimes& times);

}  // namespace tokamak::cpu
