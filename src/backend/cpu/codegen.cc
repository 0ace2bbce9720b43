// LLVM's passes and code generator.

#include "backend/cpu/codegen.h"

#include <chrono>
#include <cstdlib>
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
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
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
#include "runtime/guarded_thread.h"

namespace tokamak::cpu {
namespace {

void OnFatalError(void*, const char* reason, bool) {
  // On other threads this returns, and LLVM aborts.
  AbandonGuardedWork(std::string("llvm: ") + reason);
}

void Initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::install_fatal_error_handler(OnFatalError);
  });
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

Result<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target,
                                                         CodegenEffort effort) {
  std::string error, features;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) return MakeError(ErrorCode::kCodeGeneration, "llvm: " + error);
  for (const std::string& feature : target.features)
    features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // no contraction: FMA is an explicit op
  bool has_other_selector = llvm::Triple(target.triple).isAArch64();
  auto level = effort == CodegenEffort::kFull ||
                       (effort == CodegenEffort::kOtherSelector && has_other_selector)
                   ? llvm::CodeGenOptLevel::Default
                   : llvm::CodeGenOptLevel::None;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, target.cpu, features, options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, level, true));
  if (machine == nullptr)
    return MakeError(ErrorCode::kCodeGeneration, "llvm: no code for " + target.triple);
  // At -O0 a target machine selects its fast selector: FastISel, or GlobalISel on aarch64. Where
  // that fails, it falls back to the default selector.
  if (effort == CodegenEffort::kOtherSelector && has_other_selector) machine->setGlobalISel(true);
  machine->setGlobalISelAbort(llvm::GlobalISelAbortMode::Disable);
  return machine;
}

// Idle target machines of full effort, with their subtarget information, which takes a millisecond
// to compute. A machine serves one thread at a time. Never destroyed.
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
    return MakeMachine(target, CodegenEffort::kFull);
  }
  void Return(const Target& target, Machine machine) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_[target.Text()].push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<Machine>> free_;
};

// LLVM's analysis managers. PassBuilder would register 150 analyses and link all passes; these are
// the ones that Optimize needs.
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

// Vectorization, unrolling and the placement of values are decided in the kernel IR. What remains:
// promote arrays to registers, eliminate common subexpressions, and hoist splats and addresses out
// of loops.
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

// By default LLVM calls exit(1) on an error diagnostic.
void OnDiagnostic(const llvm::DiagnosticInfo* info, void* errors) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream out(*static_cast<std::string*>(errors));
  llvm::DiagnosticPrinterRawOStream printer(out);
  info->print(printer);
}

void Plant(InjectedFault fault) {
  static int* volatile nowhere = nullptr;
  static volatile bool endless = true;
  if (fault == InjectedFault::kCrash) *nowhere = 1;
  if (fault == InjectedFault::kAbort) std::abort();
  if (fault == InjectedFault::kFatalError) llvm::report_fatal_error("planted");
  while (fault == InjectedFault::kEndless && endless) {
  }
}

// Owns everything that it uses: the thread that runs it may be abandoned.
class CodegenWork final : public GuardedWork {
 public:
  CodegenWork(std::span<const Kernel* const> kernels, const Target& target,
              const CodegenOptions& options)
      : target_(target), options_(options) {
    for (const Kernel* kernel : kernels) kernels_.push_back(*kernel);
  }

  bool as_text = false, as_assembly = false, load = false;
  CompileTimes times;
  Status status = Ok();
  ObjectCode made;  // `object` is IR text or assembly if that was requested

  void Run() override { status = Generate(); }
  GuardedLimits Limits() const {
    // Wall time limit as a multiple of CPU time: the machine may be busy, or the process suspended.
    // Chosen (docs/choices/2026-11-17-code-generation-faults.md).
    constexpr int kWall = 10;
    auto time = options_.kernel_time * static_cast<int64_t>(std::max<size_t>(1, kernels_.size()));
    return {time, kWall * time};
  }

 private:
  Status Generate() {
    bool is_kept = options_.effort == CodegenEffort::kFull;
    TOK_TRY(Machines::Machine machine,
            is_kept ? Machines::OfProcess().Take(target_) : MakeMachine(target_, options_.effort));
    TOK_RETURN_IF_ERROR(Generate(*machine));
    if (is_kept) Machines::OfProcess().Return(target_, std::move(machine));
    if (!load) return Ok();
    Clock clock;
    TOK_TRY(made.loaded, LoadObject(made.object, kernels_.size()));
    times.load_us = clock.Lap();
    return Ok();
  }

  Status Generate(llvm::TargetMachine& machine) {
    Clock clock;
    llvm::LLVMContext context;
    std::string errors;
    context.setDiagnosticHandlerCallBack(OnDiagnostic, &errors);
    llvm::Module module("tokamak", context);
    module.setTargetTriple(target_.triple);
    module.setDataLayout(machine.createDataLayout());
    TOK_RETURN_IF_ERROR(Emit(module));
    times.emit_us = clock.Lap();
    if (options_.effort != CodegenEffort::kLeast) Optimize(module, machine);
    times.optimize_us = clock.Lap();
    if (as_text) return WriteText(module);
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream out(object);
    llvm::legacy::PassManager passes;
    auto type =
        as_assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    if (machine.addPassesToEmitFile(passes, out, nullptr, type))
      return MakeError(ErrorCode::kCodeGeneration, "llvm: no object files for " + target_.triple);
    passes.run(module);
    if (!errors.empty()) return MakeError(ErrorCode::kCodeGeneration, "llvm: " + errors);
    made.object.assign(object.data(), object.size());
    times.generate_us = clock.Lap();
    return Ok();
  }

  Status Emit(llvm::Module& module) {
    Plant(options_.fault);
    for (size_t i = 0; i < kernels_.size(); ++i) {
      TOK_TRY(Lanes lanes, Lanes::Of(kernels_[i]));
      LlvmEmitter emitter(kernels_[i], lanes, target_, module);
      TOK_RETURN_IF_ERROR(emitter.Emit("k" + std::to_string(i)));
    }
    return Ok();
  }

  Status WriteText(const llvm::Module& module) {
    llvm::raw_string_ostream out(made.object);
    module.print(out, nullptr);
    if (llvm::verifyModule(module, &out))
      return MakeError(ErrorCode::kCodeGeneration, "llvm: " + made.object);
    return Ok();
  }

  std::vector<Kernel> kernels_;
  Target target_;
  CodegenOptions options_;
};

Result<ObjectCode> RunWork(const std::shared_ptr<CodegenWork>& work) {
  Initialize();
  if (std::string reason = RunGuarded(work, work->Limits()); !reason.empty())
    return MakeError(ErrorCode::kCodeGeneration, "code generation was abandoned: " + reason);
  TOK_RETURN_IF_ERROR(std::move(work->status));
  return std::move(work->made);
}

}  // namespace

std::string_view NameOf(CodegenEffort effort) {
  switch (effort) {
    case CodegenEffort::kFull:
      return "in full";
    case CodegenEffort::kOtherSelector:
      return "by another instruction selector";
    case CodegenEffort::kLeast:
      return "without optimization";
  }
  return "";
}

Result<std::string> MakeObject(std::span<const Kernel* const> kernels, const Target& target,
                               const CodegenOptions& options, CompileTimes* times) {
  auto work = std::make_shared<CodegenWork>(kernels, target, options);
  TOK_TRY(ObjectCode made, RunWork(work));
  if (times != nullptr) *times = work->times;
  return std::move(made.object);
}

Result<ObjectCode> MakeCode(std::span<const Kernel* const> kernels, const Target& target,
                            const CodegenOptions& options, CompileTimes& times) {
  auto work = std::make_shared<CodegenWork>(kernels, target, options);
  work->load = true;
  TOK_TRY(ObjectCode made, RunWork(work));
  times += work->times;
  return made;
}

Result<std::string> MakeIr(const Kernel& kernel, const Target& target, bool optimized) {
  const Kernel* kernels[] = {&kernel};
  CodegenOptions options;
  if (!optimized) options.effort = CodegenEffort::kLeast;
  auto work = std::make_shared<CodegenWork>(kernels, target, options);
  work->as_text = true;
  TOK_TRY(ObjectCode made, RunWork(work));
  return std::move(made.object);
}

Result<std::string> MakeAssembly(const Kernel& kernel, const Target& target) {
  const Kernel* kernels[] = {&kernel};
  auto work = std::make_shared<CodegenWork>(kernels, target, CodegenOptions());
  work->as_assembly = true;
  TOK_TRY(ObjectCode made, RunWork(work));
  return std::move(made.object);
}

}  // namespace tokamak::cpu
