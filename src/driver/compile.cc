#include <chrono>

#include "driver/backend.h"
#include "driver/executable.h"
#include "driver/interp_executable.h"
#include "driver/program_facts.h"
#include "ir/infer.h"

namespace tokamak {

Status Executable::Run(std::span<const void* const> inputs, std::span<void* const> outputs,
                       const RunControl& control) const {
  auto begin = std::chrono::steady_clock::now();
  Status status = RunOnce(inputs, outputs, control);
  std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  // The first measurement replaces the price; then a quarter of the new one. A race loses one.
  double before = predicted_us_.load(std::memory_order_relaxed);
  double after = measured_.load(std::memory_order_relaxed) ? before * 0.75 + took.count() * 0.25
                                                           : took.count();
  measured_.store(true, std::memory_order_relaxed);
  predicted_us_.store(after, std::memory_order_relaxed);
  return status;
}

Result<std::shared_ptr<const Executable>> Compile(std::unique_ptr<Module> module,
                                                  const CompileOptions& options) {
  TOK_TRY([[maybe_unused]] const BackendInfo* backend, FindBackend(options.backend));
  if (module->entry() == nullptr)
    return MakeError(ErrorCode::kNoEntry,
                     "compile: the module has neither @main nor an only public function",
                     {.file = module->file});
  Status verified = VerifyModule(*module);
  if (!verified.ok()) {
    AddOrigin(verified.error(), *module);
    return std::move(verified.error());
  }
  return MakeInterpExecutable(std::move(module), options);
}

}  // namespace tokamak
