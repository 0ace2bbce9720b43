// LLVM's passes and its code generator.

#include "backend/cpu/codegen.h"

#include <chrono>
#include <csetjmp>
#include <mutex>
#include <unordered_map>

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ProfileSummaryInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
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

// Machines that nobody uses just now, with what they know of their processor: finding that out
// takes a millisecond. A machine serves one thread at a time. Never destroyed.
class Machines {
 public:
  using Machine = std::unique_ptr<llvm::TargetMachine>;

  static Machines& OfProcess() {
    static auto* machines = new Machines;
    return *machines;
  }
  Result<Machine> Take(const Target& target) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      std::vector<Machine>& free = free_[target.Text()];
      if (!free.empty()) {
        Machine machine = std::move(free.back());
        free.pop_back();
        return machine;
      }
    }
    return MakeMachine(target);
  }
  void Return(const Target& target, Machine machine) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_[target.Text()].push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<Machine>> free_;
};

// LLVM's managers of what passes ask for. PassBuilder would register 150 analyses, and link all
// passes there are: these are the ones that Optimize needs.
class Analyses {
 public:
  explicit Analyses(llvm::TargetMachine& machine) {
    functions.registerPass([] {
      llvm::AAManager alias;
      alias.registerFunctionAnalysis<llvm::BasicAA>();
      alias.registerFunctionAnalysis<llvm::ScopedNoAliasAA>();
      return alias;
    });
    functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
    Register<llvm::AssumptionAnalysis, llvm::BasicAA, llvm::BlockFrequencyAnalysis,
             llvm::BranchProbabilityAnalysis, llvm::DominatorTreeAnalysis, llvm::LoopAnalysis,
             llvm::MemorySSAAnalysis, llvm::OptimizationRemarkEmitterAnalysis,
             llvm::PassInstrumentationAnalysis, llvm::PostDominatorTreeAnalysis,
             llvm::ScalarEvolutionAnalysis, llvm::ScopedNoAliasAA, llvm::TargetLibraryAnalysis>();
    functions.registerPass([&] { return llvm::LoopAnalysisManagerFunctionProxy(loops); });
    functions.registerPass([&] { return llvm::ModuleAnalysisManagerFunctionProxy(modules); });
    loops.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
    loops.registerPass([&] { return llvm::FunctionAnalysisManagerLoopProxy(functions); });
    modules.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
    modules.registerPass([] { return llvm::ProfileSummaryAnalysis(); });
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::ModuleAnalysisManager modules;

 private:
  template <typename... All>
  void Register() {
    (functions.registerPass([] { return All(); }), ...);
  }
};

// Vectors, unrolling and the places of values are decided in kernel form: what is left is to turn
// arrays into registers, to drop what is said twice, and to lift splats and addresses out of loops.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  Analyses analyses(machine);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(
      llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true, /*UseBlockFrequencyInfo=*/false));
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, analyses.functions);
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
    TOK_TRY(Machines::Machine machine, Machines::OfProcess().Take(*target));
    TOK_RETURN_IF_ERROR(Run(*machine));
    Machines::OfProcess().Return(*target, std::move(machine));
    return Ok();
  }

  Status Run(llvm::TargetMachine& machine) {
    Clock clock;
    llvm::LLVMContext context;
    llvm::Module module("tokamak", context);
    module.setTargetTriple(target->triple);
    module.setDataLayout(machine.createDataLayout());
    TOK_RETURN_IF_ERROR(Emit(module));
    times.emit_us = clock.Lap();
    if (optimized) Optimize(module, machine);
    times.optimize_us = clock.Lap();
    if (as_text) return WriteText(module);
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream out(object);
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
      return MakeError(ErrorCode::kCodeGeneration, "llvm: no object files for " + target->triple);
    passes.run(module);
    result.assign(object.data(), object.size());
    times.generate_us = clock.Lap();
    return Ok();
  }

  Status WriteText(const llvm::Module& module) {
    llvm::raw_string_ostream out(result);
    module.print(out, nullptr);
    if (llvm::verifyModule(module, &out))
      return MakeError(ErrorCode::kCodeGeneration, "llvm: " + result);
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
