// LLVM's passes and its code generator.

#include "backend/cpu/codegen.h"

#include <chrono>
#include <csetjmp>
#include <mutex>

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "backend/cpu/emitter.h"

namespace tokamak::cpu {
namespace {

// ---- LLVM's fatal errors end the process, unless the handler does not return

thread_local std::jmp_buf* escape = nullptr;
thread_local std::string* fatal_message = nullptr;

void OnFatalError(void*, const char* reason, bool) {
  if (escape == nullptr) return;  // not ours: LLVM aborts
  *fatal_message = reason;
  std::longjmp(*escape, 1);
}

void Initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::install_fatal_error_handler(OnFatalError);
  });
}

// Runs `work(data)`; what LLVM gives up on is an error. What it held then is lost, not freed.
Status Guarded(void (*work)(void*), void* data) {
  std::jmp_buf here;
  std::string message;
  std::jmp_buf* around = escape;
  std::string* message_around = fatal_message;
  escape = &here;
  fatal_message = &message;
  bool failed = setjmp(here) != 0;
  if (!failed) work(data);
  escape = around;
  fatal_message = message_around;
  if (failed) return MakeError(ErrorCode::kCodeGeneration, "llvm: " + message);
  return Ok();
}

class Clock {
 public:
  int64_t Lap() {
    auto now = std::chrono::steady_clock::now();
    auto us = std::chrono::duration_cast<std::chrono::microseconds>(now - last_).count();
    last_ = now;
    return us;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

Result<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target) {
  std::string error, features;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) return MakeError(ErrorCode::kCodeGeneration, "llvm: " + error);
  for (const std::string& feature : target.features)
    features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // FMA is an op, never a surprise
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, target.cpu, features, options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
  if (machine == nullptr)
    return MakeError(ErrorCode::kCodeGeneration, "llvm: no code for " + target.triple);
  return machine;
}

// Vectors, unrolling and the places of values are decided in kernel form: what is left is to turn
// arrays into registers, to drop what is said twice, and to lift splats and addresses out of loops.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(
      llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true, /*UseBlockFrequencyInfo=*/false));
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, functions);
}

struct Work {
  std::span<const Kernel* const> kernels;
  const Target* target;
  bool as_text = false, optimized = true;
  CompileTimes times{};
  Status status = Ok();
  std::string result{};

  Status Emit(llvm::Module& module) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      TOK_TRY(Lanes lanes, Lanes::Of(*kernels[i]));
      Emitter emitter(*kernels[i], lanes, *target, module);
      TOK_RETURN_IF_ERROR(emitter.Emit("k" + std::to_string(i)));
    }
    return Ok();
  }

  Status Run() {
    Clock clock;
    TOK_TRY(std::unique_ptr<llvm::TargetMachine> machine, MakeMachine(*target));
    llvm::LLVMContext context;
    llvm::Module module("tokamak", context);
    module.setTargetTriple(target->triple);
    module.setDataLayout(machine->createDataLayout());
    TOK_RETURN_IF_ERROR(Emit(module));
    times.emit_us = clock.Lap();
    if (optimized) Optimize(module, *machine);
    times.optimize_us = clock.Lap();
    if (as_text) {
      llvm::raw_string_ostream out(result);
      module.print(out, nullptr);
      out.flush();
      if (llvm::verifyModule(module, &out))
        return MakeError(ErrorCode::kCodeGeneration, "llvm: " + result);
      return Ok();
    }
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream out(object);
    llvm::legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
      return MakeError(ErrorCode::kCodeGeneration, "llvm: no object files for " + target->triple);
    passes.run(module);
    result.assign(object.data(), object.size());
    times.generate_us = clock.Lap();
    return Ok();
  }
};

Result<std::string> RunWork(Work& work) {
  Initialize();
  TOK_RETURN_IF_ERROR(Guarded(
      [](void* data) {
        auto* to_do = static_cast<Work*>(data);
        to_do->status = to_do->Run();
      },
      &work));
  if (!work.status.ok()) return std::move(work.status.error());
  return std::move(work.result);
}

}  // namespace

Result<std::string> MakeObject(std::span<const Kernel* const> kernels, const Target& target,
                               CompileTimes* times) {
  Work work{.kernels = kernels, .target = &target};
  Result<std::string> object = RunWork(work);
  if (times != nullptr) *times = work.times;
  return object;
}

Result<std::string> MakeIr(const Kernel& kernel, const Target& target, bool optimized) {
  const Kernel* kernels[] = {&kernel};
  Work work{.kernels = kernels, .target = &target, .as_text = true, .optimized = optimized};
  return RunWork(work);
}

}  // namespace tokamak::cpu
