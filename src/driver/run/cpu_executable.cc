#include "driver/run/cpu_executable.h"

#include <cfenv>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "driver/compile/custom_kernel_code.h"
#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "driver/run/check_kernels.h"
#include "driver/run/host_steps.h"
#include "driver/run/kernel_codes.h"
#include "interp/array_bytes.h"
#include "runtime/host_allocator.h"
#include "runtime/host_memory.h"

namespace tokamak {
namespace {

// Arenas that consecutive runs of one executable reuse.
class ArenaPool {
 public:
  // `around`: bytes of arguments and results, which are live at the same time.
  ArenaPool(int64_t bytes, int64_t around)
      : bytes_(static_cast<size_t>(bytes)), around_(static_cast<size_t>(around)) {}
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;
  ~ArenaPool() {
    for (void* arena : free_) HostAllocator::OfProcess().Free(arena, bytes_);
  }

  Result<std::byte*> Take() {
    if (bytes_ == 0) return nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        void* arena = free_.back();
        free_.pop_back();
        return static_cast<std::byte*>(arena);
      }
    }
    void* arena =
        bytes_ + around_ > HostMemory() ? nullptr : HostAllocator::OfProcess().Allocate(bytes_);
    if (arena == nullptr)
      return MakeError(ErrorCode::kOutOfMemory, "run: the program needs " + std::to_string(bytes_) +
                                                    " bytes for its values, and " +
                                                    std::to_string(around_) +
                                                    " for arguments and results; the machine has " +
                                                    std::to_string(HostMemory()));
    return static_cast<std::byte*>(arena);
  }
  void Release(std::byte* arena) {
    if (arena == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(arena);
  }

  // Returns an arena to the pool, also if a run throws.
  class ArenaLease {
   public:
    ArenaLease(ArenaPool& pool, std::byte* arena) : pool_(pool), arena_(arena) {}
    ~ArenaLease() { pool_.Release(arena_); }
    ArenaLease(const ArenaLease&) = delete;
    ArenaLease& operator=(const ArenaLease&) = delete;

   private:
    ArenaPool& pool_;
    std::byte* arena_;
  };

 private:
  size_t bytes_, around_;
  std::mutex mutex_;
  std::vector<void*> free_;
};

// Sets rounding to nearest and keeps subnormals, whatever the caller's floating-point mode is.
class PlainFloats {
 public:
  PlainFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~PlainFloats() { std::fesetenv(&before_); }
  PlainFloats(const PlainFloats&) = delete;
  PlainFloats& operator=(const PlainFloats&) = delete;

 private:
  std::fenv_t before_{};
};

class CpuExecutable final : public Executable {
 public:
  explicit CpuExecutable(std::shared_ptr<const Compilation> compilation)
      : Executable(std::move(compilation)),
        module_(*this->compilation().module),
        program_(this->compilation().program),
        holds_(module_),
        check_kernels_(this->compilation().options.check_kernels) {}

  Status Prepare() {
    const Compilation& made = compilation();
    TOK_TRY(codes_,
            MakeCodes(program_.kernels, made.target.kernel_backend, made.options.codegen_fault));
    TOK_RETURN_IF_ERROR(KeepFallbacks());
    CorruptCode(codes_, program_, made.options.corrupt_kernel);
    for (const auto& code : codes_.all) kernels_.push_back(code.get());
    functions_ = HostFunctions(program_.host_instrs);
    TOK_RETURN_IF_ERROR(CheckCustomKernels(program_.host_instrs));
    TOK_TRY(calls_, LoadCalls(program_.calls, program_.call_instrs));
    for (const Instr* constant : program_.constants) {
      TOK_TRY(std::vector<std::byte> bytes, BytesOfConstant(*constant));
      constants_.push_back(std::move(bytes));
    }
    const MemoryAnalysis& memory = made.memory;
    arenas_ = std::make_unique<ArenaPool>(program_.arena_bytes,
                                          memory.arguments + memory.results - memory.aliased);
    return Ok();
  }

 private:
  Status KeepFallbacks() {
    for (const KernelFallback& fallback : codes_.fallbacks) {
      const std::string& kernel = program_.kernels[fallback.kernel].name;
      codegen_fallbacks_.push_back("kernel " + kernel + ": " + fallback.text);
      if (compilation().options.require_kernels && fallback.interpreted)
        return MakeError(ErrorCode::kNoKernel, "compile: " + codegen_fallbacks_.back(),
                         {.file = module_.file});
    }
    return Ok();
  }

  Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                 const RunControl& control) const override {
    TOK_TRY(std::byte * arena, arenas_->Take());
    ArenaPool::ArenaLease lease(*arenas_, arena);
    std::vector<std::byte*> memories = {arena};
    for (const void* input : inputs)
      memories.push_back(static_cast<std::byte*>(const_cast<void*>(input)));
    for (void* output : outputs) memories.push_back(static_cast<std::byte*>(output));
    for (const std::vector<std::byte>& constant : constants_)
      memories.push_back(const_cast<std::byte*>(constant.data()));
    PlainFloats floats;
    RunOptions options;
    options.stop = control.stop;
    options.host_calls = &RegisteredHostCalls();
    InterpretedSteps host(options);
    StepContext context{.memories = memories,
                        .kernels = kernels_,
                        .products = program_.products,
                        .calls = calls_,
                        .functions = functions_.all(),
                        .host = &host,
                        .stop = control.stop,
                        .horizontal = codes_.horizontal.get(),
                        .recorder = control.recorder};
    std::optional<KernelChecker> checker;
    if (check_kernels_) context.watcher = &checker.emplace(program_, module_, functions_.all());
    Status status = RunSteps(program_.steps, context);
    if (status.ok()) status = codes_.TakeSimulationError();
    if (status.ok()) status = host.Finish(control.checks);
    if (!status.ok() && status.error().code != ErrorCode::kKernelDiffers)
      AddOrigin(status.error(), module_);
    return status;
  }

  const Module& module_;
  const LoweredProgram& program_;
  HostHolds holds_;
  KernelCodes codes_;
  std::vector<const KernelCode*> kernels_;
  HostFunctions functions_;
  LoadedCalls calls_;
  std::vector<std::vector<std::byte>> constants_;
  std::unique_ptr<ArenaPool> arenas_;
  bool check_kernels_;
};

}  // namespace

Result<std::shared_ptr<const Executable>> MakeCpuExecutable(
    std::shared_ptr<const Compilation> compilation) {
  auto executable = std::make_shared<CpuExecutable>(std::move(compilation));
  TOK_RETURN_IF_ERROR(executable->Prepare());
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace tokamak
