#include "driver/account/account.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "analysis/loops.h"
#include "driver/all_kernels.h"
#include "driver/as_given.h"
#include "driver/device_libraries.h"
#include "driver/devices.h"
#include "driver/host_rates.h"
#include "driver/kernel_codes.h"
#include "driver/lower_module.h"
#include "driver/measure_device.h"
#include "driver/measure_steps.h"
#include "driver/step_price.h"
#include "fusion/region_hash.h"
#include "ir/clone.h"
#include "passes/passes.h"
#include "support/hash.h"

namespace tokamak {
namespace {

int64_t ArrayBytesOf(const Shape& shape) {
  int64_t bytes = 0;
  for (const Shape& leaf : LeavesOf(shape)) bytes += leaf.IsArray() ? leaf.ByteSize() : 0;
  return bytes;
}

int64_t ArrayBytesOf(const KernelSource& source, bool outputs) {
  int64_t bytes = 0;
  for (const KernelArgument& argument : source.arguments)
    if (argument.is_output == outputs)
      bytes += PartsOf(argument.instr->shape())[argument.part].ByteSize();
  return bytes;
}

// Names and places take no operation.
bool Computes(const Instr& instr) {
  return instr.op() != Op::kConstant && instr.op() != Op::kGetTupleElement &&
         instr.op() != Op::kTuple && instr.op() != Op::kParameter && instr.op() != Op::kBitcast;
}

// Steps as accounts, in the order in which they run.
class Walker {
 public:
  Walker(const Module& module, const LoweredProgram& program, const Machine& machine,
         const StepTimes& times, bool measured)
      : program_(program), machine_(machine), times_(times), measured_(measured), phases_(module) {}

  std::vector<StepAccount> Run() {
    Walk(program_.steps, 1);
    return std::move(accounts_);
  }

 private:
  using Calls = std::optional<int64_t>;

  void Walk(const std::vector<RunStep>& steps, Calls calls) {
    for (const RunStep& step : steps) {
      Calls inner = calls;
      if (step.kind == StepKind::kConditional) inner = std::nullopt;
      if (step.kind == StepKind::kWhile) inner = TripsOf(step, calls);
      AddStep(step, calls);
      if (step.kind == StepKind::kPack) continue;
      for (const std::vector<RunStep>& block : step.blocks) Walk(block, inner);
    }
  }

  // The condition is computed once more than the body, which is not counted.
  Calls TripsOf(const RunStep& step, Calls calls) const {
    auto* instr = const_cast<Instr*>(program_.loops[step.target]);
    std::optional<WhileLoop> loop = LoopOf(instr);
    std::optional<uint64_t> trips = loop ? TripCount(*loop) : std::nullopt;
    int64_t product = 0;
    if (!calls || !trips || *trips > INT64_MAX ||
        __builtin_mul_overflow(*calls, static_cast<int64_t>(*trips), &product))
      return std::nullopt;
    return product;
  }

  void AddStep(const RunStep& step, Calls calls) {
    StepAccount account;
    account.calls = calls;
    switch (step.kind) {
      case StepKind::kLaunch:
        DescribeKernel(step, account);
        break;
      case StepKind::kPack:
        DescribePack(step, account);
        break;
      case StepKind::kLibrary:
        account.library = program_.products[step.target].convolution ? "cuDNN"
                          : machine_.is_gpu()                        ? "cuBLASLt"
                                                                     : "OpenBLAS";
        DescribeInstr(*program_.product_instrs[step.target], "library", account);
        break;
      case StepKind::kCall:
        account.library = "tokamak";
        DescribeInstr(*program_.call_instrs[step.target], "library", account);
        break;
      case StepKind::kHost: {
        const Instr& instr = *program_.host_instrs[step.target];
        account.why =
            BelongsToHost(instr) ? "it is the host's" : program_.host_reasons[step.target];
        DescribeInstr(instr, "host", account);
        break;
      }
      case StepKind::kCopy:
        account.name = account.generator = "copy";
        account.reads = account.writes = step.bytes;
        account.hash = static_cast<uint64_t>(step.bytes);
        // It is for the sake of what comes before it.
        if (!accounts_.empty()) account.phase = accounts_.back().phase;
        break;
      default:
        return;
    }
    AddPrice(step, account);
    accounts_.push_back(std::move(account));
  }

  void AddPrice(const RunStep& step, StepAccount& account) const {
    account.predicted_us = step.kind == StepKind::kPack ? PriceOf({step}, program_, machine_)
                                                        : PriceOfStep(step, program_, machine_);
    if (step.kind == StepKind::kLaunch || step.kind == StepKind::kLibrary) {
      Work work = WorkOf(step, program_, machine_);
      if (measured_) work.grain = static_cast<double>(GrainOf(work, machine_));
      account.price = PriceOf(work, machine_);
      account.work = work;
    }
    auto found = times_.find(KeyOf(step));
    if (found != times_.end()) account.measured_us = found->second;
  }

  void DescribeKernel(const RunStep& launch, StepAccount& account) const {
    const KernelSource& source = program_.sources[launch.target];
    account.name = program_.kernels[launch.target].name;
    account.generator = NameOf(source.kind);
    account.reads = ArrayBytesOf(source, false);
    account.writes = ArrayBytesOf(source, true);
    account.phase = phases_.Of(source.region.roots);
    account.kernels = {launch.target};
    account.made = source.region.roots;
    account.read = source.region.inputs;
    const Computation& computation = *source.region.computation;
    account.hash = hashers_.try_emplace(&computation, computation).first->second.Of(source.region);
    Describe(source.region.instrs, account);
  }

  // Kernels that run as one: its name is that of the first.
  void DescribePack(const RunStep& pack, StepAccount& account) const {
    std::vector<const Instr*> all;
    Hasher hasher;
    for (const RunStep& launch : pack.blocks[0]) {
      const std::vector<const Instr*>& own = program_.sources[launch.target].region.instrs;
      all.insert(all.end(), own.begin(), own.end());
      StepAccount part;
      DescribeKernel(launch, part);
      account.reads += part.reads;
      account.writes += part.writes;
      account.phase = std::max(account.phase, part.phase);
      account.kernels.push_back(launch.target);
      account.made.insert(account.made.end(), part.made.begin(), part.made.end());
      for (const Instr* value : part.read)
        if (std::find(account.read.begin(), account.read.end(), value) == account.read.end())
          account.read.push_back(value);
      hasher.Add(part.hash);
      account.parts.push_back(std::move(part));
    }
    Describe(all, account);
    account.hash = hasher.digest();
    account.name = account.parts[0].name;
    account.generator = "pack";
  }

  void DescribeInstr(const Instr& instr, const char* generator, StepAccount& account) const {
    account.name = LabelOf(instr);
    account.generator = generator;
    account.phase = phases_.Of(instr);
    account.writes = ArrayBytesOf(instr.shape());
    account.made = {&instr};
    Hasher hasher;
    hasher.Add(std::string_view(generator));
    hasher.Add(instr.op());
    hasher.Add(ToString(instr.shape()));
    for (const Instr* operand : instr.operands()) {
      account.reads += ArrayBytesOf(operand->shape());
      account.read.push_back(operand);
      hasher.Add(ToString(operand->shape()));
    }
    account.hash = hasher.digest();
    Describe({&instr}, account);
  }

  void Describe(const std::vector<const Instr*>& instrs, StepAccount& account) const {
    for (const Instr* instr : instrs) {
      // What the forward part computes is often computed again.
      Phase phase = phases_.Of(*instr);
      if (phase != Phase::kForward && phase != account.phase &&
          std::find(account.also.begin(), account.also.end(), phase) == account.also.end())
        account.also.push_back(phase);
      account.instrs.push_back(LabelOf(*instr));
      account.ops += Computes(*instr) ? 1 : 0;
      if (instr->origins() != OriginId::kNone) AddLines(*instr, account);
    }
    // Where they stand in the program's text says less.
    if (account.lines.empty())
      for (const Instr* instr : instrs) AddLines(*instr, account);
  }

  static void AddLines(const Instr& instr, StepAccount& account) {
    for (std::string& line : SourceLines(instr))
      if (std::find(account.lines.begin(), account.lines.end(), line) == account.lines.end())
        account.lines.push_back(std::move(line));
  }

  const LoweredProgram& program_;
  const Machine& machine_;
  const StepTimes& times_;
  bool measured_;
  Phases phases_;
  mutable std::unordered_map<const Computation*, RegionHasher> hashers_;
  std::vector<StepAccount> accounts_;
};

Result<LoweredProgram> LowerFor(Module& module, const AccountOptions& options, FusionMode mode,
                                const Machine& machine, DecisionLog& log) {
  LowerOptions lower;
  lower.strict = options.strict;
  lower.plan.mode = mode;
  lower.plan.effort = options.fusion.effort;
  lower.plan.pinned = mode == options.fusion.mode;
  lower.plan.pin_words = options.fusion.pins;
  bool for_gpu = options.target != "host";
  lower.plan.packs =
      PackModeNamed(options.packs).value_or(for_gpu ? PackMode::kPriced : PackMode::kNone);
  if (!for_gpu) return LowerForHost(module, lower, log, options.fusion.paper);
  lower.machine = machine;
  return LowerModule(module, lower, log, options.fusion.paper);
}

Result<cuda::Gpu*> GpuOf(const std::string& backend) {
  TOK_TRY(Device * device, DeviceOf(backend));
  if (device == nullptr)
    return MakeError(ErrorCode::kNoDevice, "measure: '" + backend + "' is no GPU");
  return static_cast<cuda::Gpu*>(device);
}

// As its programs are planned (driver/cuda_executable.cc).
void PlanFor(cuda::Gpu& gpu, Module& module, Machine& machine, DecisionLog& log) {
  machine.cores = gpu.info().multiprocessors;
  PlanLibraries(gpu, module, machine, log);
}

// What lies in memory whatever the plan is.
int64_t BytesAround(const Module& module, const LoweredProgram& program) {
  int64_t bytes = ArrayBytesOf(module.entry()->root()->shape());
  for (const Instr* parameter : module.entry()->parameters())
    bytes += ArrayBytesOf(parameter->shape());
  for (const Instr* constant : program.constants) bytes += ArrayBytesOf(constant->shape());
  return bytes;
}

using Clock = std::chrono::steady_clock;

double MillisSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Totals TotalsOf(const ProgramAccount& account, const Module& module, double planning_ms) {
  Totals totals = TotalsOf(account.steps, std::nullopt);
  totals.temporary_bytes = account.program.arena_bytes;
  totals.peak_bytes = account.program.arena_bytes + BytesAround(module, account.program);
  totals.planning_ms = planning_ms;
  return totals;
}

Result<Totals> TotalsIn(FusionMode mode, const Module& optimized, const AccountOptions& options,
                        const Machine& machine) {
  std::unique_ptr<Module> copy = CloneModule(optimized);
  ProgramAccount other;
  Clock::time_point begin = Clock::now();
  TOK_TRY(other.program, LowerFor(*copy, options, mode, machine, other.log));
  double took = MillisSince(begin);
  other.steps = Walker(*copy, other.program, machine, {}, false).Run();
  return TotalsOf(other, *copy, took);
}

}  // namespace

Totals TotalsOf(const std::vector<StepAccount>& steps, std::optional<Phase> phase) {
  Totals totals;
  for (const StepAccount& step : steps) {
    if (phase && step.phase != *phase) continue;
    int64_t& count = step.generator == "library" ? totals.library
                     : step.generator == "host"  ? totals.host
                     : step.generator == "copy"  ? totals.copies
                                                 : totals.kernels;
    ++count;
    totals.bytes += step.runs() * (step.reads + step.writes);
    totals.us += static_cast<double>(step.runs()) * step.predicted_us.value_or(0);
    if (step.measured_us)
      totals.measured_us =
          totals.measured_us.value_or(0) + static_cast<double>(step.runs()) * *step.measured_us;
    totals.data_decides |= !step.calls;
  }
  return totals;
}

Result<std::unique_ptr<ProgramAccount>> AccountOf(Module& module, const AccountOptions& options) {
  auto account = std::make_unique<ProgramAccount>();
  bool for_gpu = options.target != "host";
  account->machine = for_gpu ? GpuMachine() : HostMachine();
  if (for_gpu) account->machine.rates = &GpuRates();
  cuda::Gpu* gpu = nullptr;
  if (for_gpu && options.measure) {
    TOK_TRY(gpu, GpuOf(options.device));
  }
  MarkPins(module, options.fusion.pins);
  TOK_TRY(Pipeline pipeline, ParsePipeline("default"));
  PassContext context(account->log, {}, {.strict = options.strict});
  PipelineOptions passes;
  passes.skip = options.fusion.paper.skip;
  TOK_TRY([[maybe_unused]] std::vector<PassRun> runs, RunPasses(module, pipeline, context, passes));
  account->why_interpreted = WhyNotLowered(module);
  if (!account->why_interpreted.empty()) return account;
  if (gpu != nullptr) PlanFor(*gpu, module, account->machine, account->log);
  bool compare = options.compare && options.fusion.mode != FusionMode::kNone;
  std::unique_ptr<Module> optimized = compare ? CloneModule(module) : nullptr;
  Clock::time_point begin = Clock::now();
  TOK_TRY(account->program,
          LowerFor(module, options, options.fusion.mode, account->machine, account->log));
  double took = MillisSince(begin);
  StepTimes times;
  MeasureOptions measure{.seconds = options.seconds};
  if (gpu != nullptr) {
    TOK_TRY(times, MeasureSteps(module, account->program, *gpu, measure));
  } else if (options.measure) {
    TOK_TRY(times, MeasureSteps(module, account->program, measure));
  }
  account->steps = Walker(module, account->program, account->machine, times, options.measure).Run();
  account->root = module.entry()->root();
  account->totals = TotalsOf(*account, module, took);
  if (compare) {
    TOK_TRY(account->unfused, TotalsIn(FusionMode::kNone, *optimized, options, account->machine));
    if (options.fusion.mode == FusionMode::kSearch) {
      TOK_TRY(account->greedy,
              TotalsIn(FusionMode::kGreedy, *optimized, options, account->machine));
    }
  }
  return account;
}

}  // namespace tokamak
