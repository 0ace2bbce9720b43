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

// Compilation and loading by LLVM, behind an interface without LLVM's types. Thread-safe.

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

// How much LLVM is asked to do. Each level skips more of the code that may have crashed at the
// level above.
enum class CodegenEffort : uint8_t {
  kFull,
  kOtherSelector,  // of instructions: GlobalISel on aarch64; FastISel at -O0 on x86_64
  kLeast,          // -O0 without LLVM's IR passes
};
std::string_view NameOf(CodegenEffort effort);

// CPU time limit of LLVM per kernel. Beyond it the kernel is compiled with less effort, or
// interpreted, and the compile report records it. Chosen
// (docs/choices/2026-11-17-code-generation-faults.md).
inline constexpr std::chrono::milliseconds kMaxCodegenTime{120'000};

// For tests: what code generation does instead of compiling the first kernel.
enum class InjectedFault : uint8_t { kNone, kCrash, kAbort, kFatalError, kEndless };

struct CodegenOptions {
  CodegenEffort effort = CodegenEffort::kFull;
  std::chrono::milliseconds kernel_time = kMaxCodegenTime;  // CPU time, per kernel
  InjectedFault fault = InjectedFault::kNone;
};

// An object file with functions k0, k1 ... of these kernels. Returns TK4001; TK4002 also if LLVM
// crashes or does not terminate: its thread is then abandoned (runtime/guarded_thread.h).
Result<std::string> MakeObject(std::span<const Kernel* const> kernels, const Target& target,
                               const CodegenOptions& options = {}, CompileTimes* times = nullptr);

// The LLVM IR of one kernel as text, before or after LLVM's passes; for debugging and tests.
Result<std::string> MakeIr(const Kernel& kernel, const Target& target, bool optimized);

// The assembly of one kernel: the instructions that MakeObject encodes at full effort.
Result<std::string> MakeAssembly(const Kernel& kernel, const Target& target);

// Executable machine code in memory.
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

// Loads the functions k0 ... of an object file from MakeObject. TK4002, TK4004.
Result<std::shared_ptr<const LoadedCode>> LoadObject(std::string_view object, size_t functions);

struct ObjectCode {
  std::string object;
  std::shared_ptr<const LoadedCode> loaded;
};
// MakeObject and LoadObject for this machine, under one guard. TK4001, TK4002, TK4004.
Result<ObjectCode> MakeCode(std::span<const Kernel* const> kernels, const Target& target,
                            const CodegenOptions& options, CompileTimes& times);

}  // namespace tokamak::cpu
