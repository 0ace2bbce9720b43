#include "driver/account/account.h"

#include <algorithm>
#include <unordered_map>

#include "cost/rates.h"
#include "driver/account/digest.h"
#include "driver/all_kernels.h"
#include "driver/as_given.h"
#include "driver/device_loops.h"
#include "driver/measure_device.h"
#include "driver/measure_steps.h"
#include "driver/step_price.h"
#include "fusion/region_hash.h"
#include "ir/clone.h"
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
  Walker(const Compilation& made, const StepTimes& times, bool measured)
      : made_(made),
        program_(made.program),
        machine_(made.target.machine),
        times_(times),
        measured_(measured),
        on_device_(made.target.maker == KernelMaker::kCuda),
        loops_are_launches_(on_device_ && !made.options.check_kernels),
        phases_(*made.module) {}

  std::vector<StepAccount> Run() {
    Walk(program_.steps, 1);
    return std::move(accounts_);
  }

 private:
  using Calls = std::optional<int64_t>;

  static Calls Times(Calls calls, Calls more) {
    int64_t product = 0;
    if (!calls || !more || __builtin_mul_overflow(*calls, *more, &product)) return std::nullopt;
    return product;
  }

  void Walk(const std::vector<RunStep>& steps, Calls calls) {
    for (const RunStep& step : steps) {
      if (step.kind == StepKind::kWhile) {
        WalkLoop(step, calls);
        continue;
      }
      AddStep(step, calls);
      if (step.kind == StepKind::kConditional)
        for (const std::vector<RunStep>& block : step.blocks) Walk(block, std::nullopt);
    }
  }

  Calls TripsOf(const RunStep& step) const {
    std::optional<uint64_t> trips = RoundsOf(step, program_);
    if (!trips || *trips >= INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(*trips);
  }

  void WalkLoop(const RunStep& loop, Calls calls) {
    Calls trips = TripsOf(loop);
    if (loops_are_launches_ && program_.IsPersistent(loop))
      return AddPersistent(loop, calls, trips);
    bool alternates = loop.blocks.size() > 3;
    // A device need not be asked whether a known number of iterations is over.
    if (!on_device_ || !trips)
      Walk(loop.blocks[0],
           Times(calls, trips ? Calls(*trips + (loop.runs_first ? 0 : 1)) : std::nullopt));
    Walk(loop.blocks[1], Times(calls, trips));
    // Where buffers alternate, the last of an odd number of iterations leaves values to be copied.
    Calls copies = alternates && trips ? Calls(*trips % 2) : trips;
    if (copies != Calls(0)) Walk(loop.blocks[2], Times(calls, copies));
  }

  // A loop that is one launch, or a few when it is long.
  void AddPersistent(const RunStep& loop, Calls calls, Calls trips) {
    StepAccount account;
    account.step = &loop;
    Calls launches = trips;
    if (trips) {
      int64_t first = loop.first_places.empty() ? 0 : 1, most = program_.persistent[loop.target];
      launches = first + (*trips - first + most - 1) / most;
    }
    account.calls = Times(calls, launches);
    account.name = LabelOf(*program_.loops[loop.target]);
    account.generator = "persistent";
    Hasher hasher;
    auto add = [&](const std::vector<RunStep>& steps) {
      for (const RunStep& step : steps) {
        StepAccount part;
        if (step.kind == StepKind::kCopy) {
          part.reads = part.writes = step.bytes;
        } else {
          step.kind == StepKind::kPack ? DescribePack(step, part) : DescribeKernel(step, part);
        }
        AddPart(std::move(part), account, hasher);
      }
    };
    if (!trips) add(loop.blocks[0]);
    add(loop.blocks[1]);
    account.hash = hasher.digest();
    account.code = DigestOf(account.codes);
    // Iterations are inside of the launch: what the parts move, they move in each.
    double iterations = static_cast<double>(trips.value_or(1));
    double launched = static_cast<double>(std::max<int64_t>(launches.value_or(1), 1));
    account.predicted_us =
        program_.persistent_us[loop.target] * iterations / launched + RatesOf(machine_).wait_us;
    account.reads =
        static_cast<int64_t>(static_cast<double>(account.reads) * iterations / launched);
    account.writes =
        static_cast<int64_t>(static_cast<double>(account.writes) * iterations / launched);
    accounts_.push_back(std::move(account));
  }

  static void AddPart(StepAccount part, StepAccount& account, Hasher& hasher) {
    account.reads += part.reads;
    account.writes += part.writes;
    account.ops += part.ops;
    account.phase = std::max(account.phase, part.phase);
    hasher.Add(part.hash);
    account.codes.insert(account.codes.end(), part.codes.begin(), part.codes.end());
    auto add_new = [](auto& to, const auto& from) {
      for (const auto& one : from)
        if (std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
    };
    account.kernels.insert(account.kernels.end(), part.kernels.begin(), part.kernels.end());
    account.made.insert(account.made.end(), part.made.begin(), part.made.end());
    add_new(account.read, part.read);
    add_new(account.lines, part.lines);
    account.instrs.insert(account.instrs.end(), part.instrs.begin(), part.instrs.end());
    if (!part.generator.empty()) account.parts.push_back(std::move(part));
  }

  void AddStep(const RunStep& step, Calls calls) {
    StepAccount account;
    account.step = &step;
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
        account.code = ProductDigest(program_.products[step.target]);
        break;
      case StepKind::kCall:
        account.library = program_.IsOnDevice(step) ? "device" : "tokamak";
        DescribeInstr(*program_.call_instrs[step.target], "library", account);
        break;
      case StepKind::kHost: {
        const Instr& instr = *program_.host_instrs[step.target];
        if (program_.IsOnDevice(step)) {
          account.library = "device";
          DescribeInstr(instr, "library", account);
          break;
        }
        account.why =
            BelongsToHost(instr) ? "it is the host's" : program_.host_reasons[step.target];
        DescribeInstr(instr, "host", account);
        break;
      }
      case StepKind::kCopy:
        if ((step.left_out && loops_are_launches_) || IsDonated(step)) return;
        account.name = account.generator = "copy";
        account.reads = account.writes = step.bytes;
        account.hash = account.code = static_cast<uint64_t>(step.bytes);
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
    account.codes = {LaunchDigest(program_.kernels[launch.target], launch.grid)};
    account.code = account.codes[0];
    Describe(source.region.instrs, account);
  }

  // Kernels that run as one: its name is that of the first.
  void DescribePack(const RunStep& pack, StepAccount& account) const {
    Hasher hasher;
    for (const RunStep& launch : pack.blocks[0]) {
      StepAccount part;
      DescribeKernel(launch, part);
      AddPart(std::move(part), account, hasher);
    }
    account.hash = hasher.digest();
    account.code = DigestOf(account.codes);
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

  // A copy of a donated parameter to the result that takes its memory: there is nothing to copy.
  bool IsDonated(const RunStep& copy) const {
    int64_t parameter = copy.places[1].memory - 1;
    auto count = static_cast<int64_t>(made_.parameters.size());
    if (parameter < 0 || parameter >= count || copy.places[0].offset != copy.places[1].offset)
      return false;
    int64_t result = copy.places[0].memory - 1 - count;
    return result >= 0 && made_.parameters[static_cast<size_t>(parameter)].alias_result == result;
  }

  const Compilation& made_;
  const LoweredProgram& program_;
  const Machine& machine_;
  const StepTimes& times_;
  bool measured_;
  bool on_device_;           // a device issues the steps, and the host only asks for them
  bool loops_are_launches_;  // loops that may be persistent are
  Phases phases_;
  mutable std::unordered_map<const Computation*, RegionHasher> hashers_;
  std::vector<StepAccount> accounts_;
};

// What lies in memory whatever the plan is.
int64_t BytesAround(const Module& module, const LoweredProgram& program) {
  int64_t bytes = ArrayBytesOf(module.entry()->root()->shape());
  for (const Instr* parameter : module.entry()->parameters())
    bytes += ArrayBytesOf(parameter->shape());
  for (const Instr* constant : program.constants) bytes += ArrayBytesOf(constant->shape());
  return bytes;
}

Totals TotalsOf(const ProgramAccount& account) {
  const Compilation& made = *account.compilation;
  Totals totals = TotalsOf(account.steps, std::nullopt);
  totals.temporary_bytes = made.program.arena_bytes;
  totals.peak_bytes = made.program.arena_bytes + BytesAround(*made.module, made.program);
  totals.planning_ms = made.times.planning_ms;
  return totals;
}

Result<StepTimes> MeasuredTimes(const Compilation& made, const AccountOptions& options) {
  if (!options.measure) return StepTimes{};
  MeasureOptions measure{.seconds = options.seconds};
  if (made.target.device != nullptr)
    return MeasureSteps(*made.module, made.program, static_cast<cuda::Gpu&>(*made.target.device),
                        measure);
  if (made.target.is_gpu())
    return MakeError(ErrorCode::kNoDevice, "measure: '" + made.target.name + "' is no GPU here");
  return MeasureSteps(*made.module, made.program, measure);
}

// The sums of another way to fuse the same module.
Result<std::optional<Totals>> TotalsIn(FusionMode mode, const Compilation& made,
                                       const Module& before) {
  CompileOptions options = made.options;
  options.fusion = mode;
  options.require_kernels = false;
  // What must be one kernel in the plan at hand need not be one in those beside it.
  options.pins.fuse.insert(options.pins.fuse.end(), options.pins.require_fused.begin(),
                           options.pins.require_fused.end());
  options.pins.require_fused.clear();
  if (mode == FusionMode::kNone) options.pinned = false;
  Result<std::shared_ptr<const Compilation>> other =
      Compile(CloneModule(before), made.target, options);
  // What the program itself requires to be one kernel may be beyond tier 0: there is no row then.
  if (!other.ok() && other.error().code == ErrorCode::kOptionValue) return std::optional<Totals>();
  TOK_TRY(std::shared_ptr<const Compilation> compared, std::move(other));
  TOK_TRY(ProgramAccount account, AccountOf(std::move(compared)));
  return std::optional(account.totals);
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

Result<ProgramAccount> AccountOf(std::shared_ptr<const Compilation> compilation,
                                 const AccountOptions& options) {
  ProgramAccount account;
  account.compilation = std::move(compilation);
  const Compilation& made = *account.compilation;
  if (!made.why_interpreted.empty()) return account;
  TOK_TRY(StepTimes times, MeasuredTimes(made, options));
  account.steps = Walker(made, times, options.measure).Run();
  account.totals = TotalsOf(account);
  return account;
}

Status AddComparisons(ProgramAccount& account, const Module& before) {
  const Compilation& made = *account.compilation;
  FusionMode mode = made.options.fusion;
  if (!made.why_interpreted.empty() || mode == FusionMode::kNone) return Ok();
  TOK_TRY(account.unfused, TotalsIn(FusionMode::kNone, made, before));
  if (mode == FusionMode::kSearch) {
    TOK_TRY(account.greedy, TotalsIn(FusionMode::kGreedy, made, before));
  }
  return Ok();
}

}  // namespace tokamak
