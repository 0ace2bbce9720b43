// Builds the compile report: one StepReport per step that takes time, in execution order, with its
// instructions, source lines, bytes, predicted and (if requested) measured time.
//
// Steps inside loops and branches are listed once, with the number of times that they run
// (`calls`): the product of the trip counts around them, or nullopt if one is data-dependent. The
// report describes what executes: on a device, the condition of a loop with a known trip count is
// not evaluated, a persistent loop is one launch whose parts are its kernels, and copies that
// donation removes are absent.
//
// AddComparisons compiles the same module again without fusion (and with the greedy plan), which is
// as expensive as compiling it. The rest is linear in the steps and their instructions.

#include "driver/report/compile_report.h"

#include <algorithm>
#include <unordered_map>

#include "cost/rates.h"
#include "driver/compile/all_kernels.h"
#include "driver/compile/device_loops.h"
#include "driver/compile/step_cost.h"
#include "driver/report/digest.h"
#include "driver/report/xla_dump.h"
#include "fusion/region_hash.h"
#include "gen/library/custom_kernel.h"
#include "ir/clone.h"
#include "support/hash.h"

namespace tokamak {
namespace {

int64_t ArrayBytesOf(const KernelSource& source, bool outputs) {
  int64_t bytes = 0;
  for (const KernelArgument& argument : source.arguments)
    if (argument.is_output == outputs)
      bytes += ResultShapesOf(argument.instr->shape())[argument.result_index].ByteSize();
  return bytes;
}

// Whether an instruction computes something; names and views do not.
bool Computes(const Instr& instr) {
  return instr.op() != Op::kConstant && instr.op() != Op::kGetTupleElement &&
         instr.op() != Op::kTuple && instr.op() != Op::kParameter && instr.op() != Op::kBitcast;
}

// Builds the reports of steps, in execution order.
class StepReporter {
 public:
  StepReporter(const Compilation& made, const StepTimes& times, bool measured)
      : made_(made),
        program_(made.program),
        machine_(made.target.machine),
        times_(times),
        measured_(measured),
        on_device_(made.target.kernel_backend == KernelBackend::kCuda),
        loops_are_launches_(on_device_ && !made.options.check_kernels),
        phases_(*made.module) {}

  std::vector<StepReport> Run() {
    Walk(program_.steps, 1);
    return std::move(reports_);
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
    std::optional<uint64_t> trips = TripCountOf(step, program_);
    if (!trips || *trips >= INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(*trips);
  }

  void WalkLoop(const RunStep& loop, Calls calls) {
    Calls trips = TripsOf(loop);
    if (loops_are_launches_ && program_.IsPersistent(loop))
      return AddPersistent(loop, calls, trips);
    bool alternates = loop.blocks.size() > 3;
    // On a device, the condition of a loop with a known trip count is not evaluated.
    if (!on_device_ || !trips)
      Walk(loop.blocks[0],
           Times(calls, trips ? Calls(*trips + (loop.runs_first ? 0 : 1)) : std::nullopt));
    Walk(loop.blocks[1], Times(calls, trips));
    // With alternating buffers, an odd trip count leaves values to be copied.
    Calls copies = alternates && trips ? Calls(*trips % 2) : trips;
    if (copies != Calls(0)) Walk(loop.blocks[2], Times(calls, copies));
  }

  // A loop that is one launch, or several if it is long.
  void AddPersistent(const RunStep& loop, Calls calls, Calls trips) {
    StepReport report;
    report.step = &loop;
    Calls launches = trips;
    if (trips) {
      int64_t first = loop.first_slices.empty() ? 0 : 1, most = program_.persistent[loop.target];
      launches = first + (*trips - first + most - 1) / most;
    }
    report.calls = Times(calls, launches);
    report.name = LabelOf(*program_.loops[loop.target]);
    report.generator = "persistent";
    Hasher hasher;
    auto add = [&](const std::vector<RunStep>& steps) {
      for (const RunStep& step : steps) {
        StepReport part;
        if (step.kind == StepKind::kCopy) {
          part.reads = part.writes = step.bytes;
        } else {
          step.kind == StepKind::kHorizontal ? DescribeHorizontal(step, part)
                                             : DescribeKernel(step, part);
        }
        AddPart(std::move(part), report, hasher);
      }
    };
    if (!trips) add(loop.blocks[0]);
    add(loop.blocks[1]);
    report.hash = hasher.digest();
    report.code = DigestOf(report.codes);
    // The iterations are inside the launch: each part's traffic occurs in every iteration.
    double iterations = static_cast<double>(trips.value_or(1));
    double launched = static_cast<double>(std::max<int64_t>(launches.value_or(1), 1));
    report.predicted_us =
        program_.persistent_us[loop.target] * iterations / launched + RatesOf(machine_).wait_us;
    report.reads = static_cast<int64_t>(static_cast<double>(report.reads) * iterations / launched);
    report.writes =
        static_cast<int64_t>(static_cast<double>(report.writes) * iterations / launched);
    reports_.push_back(std::move(report));
  }

  static void AddPart(StepReport part, StepReport& report, Hasher& hasher) {
    report.reads += part.reads;
    report.writes += part.writes;
    report.ops += part.ops;
    report.phase = std::max(report.phase, part.phase);
    hasher.Add(part.hash);
    report.codes.insert(report.codes.end(), part.codes.begin(), part.codes.end());
    auto add_new = [](auto& to, const auto& from) {
      for (const auto& one : from)
        if (std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
    };
    report.kernels.insert(report.kernels.end(), part.kernels.begin(), part.kernels.end());
    report.made.insert(report.made.end(), part.made.begin(), part.made.end());
    add_new(report.read, part.read);
    add_new(report.lines, part.lines);
    report.instrs.insert(report.instrs.end(), part.instrs.begin(), part.instrs.end());
    if (!part.generator.empty()) report.parts.push_back(std::move(part));
  }

  // Control flow and poison steps have no report of their own; skipped and donated copies take no
  // time.
  void AddStep(const RunStep& step, Calls calls) {
    StepReport report;
    report.step = &step;
    report.calls = calls;
    switch (step.kind) {
      case StepKind::kLaunch:
        DescribeKernel(step, report);
        break;
      case StepKind::kHorizontal:
        DescribeHorizontal(step, report);
        break;
      case StepKind::kLibrary:
        report.library = program_.products[step.target].convolution ? "cuDNN"
                         : machine_.is_gpu()                        ? "cuBLASLt"
                                                                    : "OpenBLAS";
        DescribeInstr(*program_.product_instrs[step.target], "library", report);
        report.code = ProductDigest(program_.products[step.target]);
        break;
      case StepKind::kCall:
        report.library = program_.IsOnDevice(step) ? "device" : "tokamak";
        DescribeCall(*program_.call_instrs[step.target], report);
        break;
      case StepKind::kHost: {
        const Instr& instr = *program_.host_instrs[step.target];
        if (program_.IsOnDevice(step)) {
          report.library = "device";
          DescribeCall(instr, report);
          break;
        }
        report.why =
            BelongsToHost(instr) ? "it runs on the host" : program_.host_reasons[step.target];
        DescribeInstr(instr, "host", report);
        break;
      }
      case StepKind::kCopy:
        if ((step.left_out && loops_are_launches_) || IsDonated(step)) return;
        report.name = report.generator = "copy";
        report.reads = report.writes = step.bytes;
        report.hash = report.code = static_cast<uint64_t>(step.bytes);
        // It belongs to the preceding step.
        if (!reports_.empty()) report.phase = reports_.back().phase;
        break;
      default:
        return;
    }
    AddEstimate(step, report);
    reports_.push_back(std::move(report));
  }

  void AddEstimate(const RunStep& step, StepReport& report) const {
    report.predicted_us = step.kind == StepKind::kHorizontal
                              ? EstimateCost({step}, program_, machine_)
                              : EstimateStep(step, program_, machine_);
    if (step.kind == StepKind::kLaunch || step.kind == StepKind::kLibrary) {
      Work work = WorkOf(step, program_, machine_);
      if (measured_) work.min_chunk = static_cast<double>(MinChunkOf(work, machine_));
      report.estimate = EstimateCost(work, machine_);
      report.work = work;
    }
    auto found = times_.find(KeyOf(step));
    if (found != times_.end()) report.measured_us = found->second;
  }

  void DescribeKernel(const RunStep& launch, StepReport& report) const {
    const KernelSource& source = program_.sources[launch.target];
    report.name = program_.kernels[launch.target].name;
    report.generator = NameOf(source.kind);
    if (source.schedule) report.schedule = ToString(*source.schedule);
    report.reads = ArrayBytesOf(source, false);
    report.writes = ArrayBytesOf(source, true);
    report.phase = phases_.Of(source.region.roots);
    report.kernels = {launch.target};
    report.made = source.region.roots;
    report.read = source.region.inputs;
    const Computation& computation = *source.region.computation;
    report.hash =
        hashers_.try_emplace(&computation, computation).first->second.HashOf(source.region);
    report.codes = {LaunchDigest(program_.kernels[launch.target], launch.grid)};
    report.code = report.codes[0];
    Describe(source.region.instrs, report);
  }

  // A horizontally fused launch, named after its first kernel.
  void DescribeHorizontal(const RunStep& fused_launch, StepReport& report) const {
    Hasher hasher;
    for (const RunStep& launch : fused_launch.blocks[0]) {
      StepReport part;
      DescribeKernel(launch, part);
      AddPart(std::move(part), report, hasher);
    }
    report.hash = hasher.digest();
    report.code = DigestOf(report.codes);
    report.name = report.parts[0].name;
    report.generator = "horizontal";
  }

  void DescribeInstr(const Instr& instr, const char* generator, StepReport& report) const {
    report.name = LabelOf(instr);
    report.generator = generator;
    report.phase = phases_.Of(instr);
    report.writes = BytesOfLeaves(instr.shape());
    report.made = {&instr};
    Hasher hasher;
    hasher.Add(std::string_view(generator));
    hasher.Add(instr.op());
    hasher.Add(ToString(instr.shape()));
    for (const Instr* operand : instr.operands()) {
      report.reads += BytesOfLeaves(operand->shape());
      report.read.push_back(operand);
      hasher.Add(ToString(operand->shape()));
    }
    report.hash = hasher.digest();
    Describe({&instr}, report);
  }

  // A call of a library, or a kernel of the user with the instructions that its hooks compute.
  void DescribeCall(const Instr& instr, StepReport& report) const {
    if (CustomKernelIn(instr) == nullptr) return DescribeInstr(instr, "library", report);
    report.library.clear();
    DescribeInstr(instr, "custom", report);
    if (instr.op() == Op::kFusion) AddFused(instr, report);
  }

  static void AddFused(const Instr& fusion, StepReport& report) {
    for (const Instr* inside : fusion.called(0)->PostOrder()) {
      if (inside->op() == Op::kParameter || inside->op() == Op::kConstant ||
          inside->op() == Op::kTuple || inside->op() == Op::kGetTupleElement)
        continue;
      report.instrs.push_back(LabelOf(*inside));
      report.ops += Computes(*inside) ? 1 : 0;
      if (inside->origins() != OriginId::kNone) AddLines(*inside, report);
    }
  }

  void Describe(const std::vector<const Instr*>& instrs, StepReport& report) const {
    for (const Instr* instr : instrs) {
      // Forward values are often recomputed in later phases.
      Phase phase = phases_.Of(*instr);
      if (phase != Phase::kForward && phase != report.phase &&
          std::find(report.also.begin(), report.also.end(), phase) == report.also.end())
        report.also.push_back(phase);
      report.instrs.push_back(LabelOf(*instr));
      report.ops += Computes(*instr) ? 1 : 0;
      if (instr->origins() != OriginId::kNone) AddLines(*instr, report);
    }
    // Locations in the program's text are less useful than source lines.
    if (report.lines.empty())
      for (const Instr* instr : instrs) AddLines(*instr, report);
  }

  static void AddLines(const Instr& instr, StepReport& report) {
    for (std::string& line : SourceLines(instr))
      if (std::find(report.lines.begin(), report.lines.end(), line) == report.lines.end())
        report.lines.push_back(std::move(line));
  }

  // Whether a copy is from a donated parameter to the result that reuses its memory: a no-op.
  bool IsDonated(const RunStep& copy) const {
    int64_t parameter = copy.slices[1].memory - 1;
    auto count = static_cast<int64_t>(made_.parameters.size());
    if (parameter < 0 || parameter >= count || copy.slices[0].offset != copy.slices[1].offset)
      return false;
    int64_t result = copy.slices[0].memory - 1 - count;
    return result >= 0 && made_.parameters[static_cast<size_t>(parameter)].alias_result == result;
  }

  const Compilation& made_;
  const LoweredProgram& program_;
  const Machine& machine_;
  const StepTimes& times_;
  bool measured_;
  bool on_device_;           // a device executes the steps; the host only issues them
  bool loops_are_launches_;  // loops that may be persistent are
  Phases phases_;
  mutable std::unordered_map<const Computation*, FusedRegionHasher> hashers_;
  std::vector<StepReport> reports_;
};

// Memory that is allocated under any plan.
int64_t BytesAround(const Module& module, const LoweredProgram& program) {
  int64_t bytes = BytesOfLeaves(module.entry()->root()->shape());
  for (const Instr* parameter : module.entry()->parameters())
    bytes += BytesOfLeaves(parameter->shape());
  for (const Instr* constant : program.constants) bytes += BytesOfLeaves(constant->shape());
  // A result that takes the memory of a donated argument.
  for (const InputOutputAlias& alias : module.aliases) {
    auto parameter = static_cast<size_t>(alias.parameter);
    if (parameter < module.entry()->parameters().size() && alias.parameter_index.empty())
      bytes -= BytesOfLeaves(module.entry()->parameters()[parameter]->shape());
  }
  return bytes;
}

Totals TotalsOf(const CompileReport& report) {
  const Compilation& made = *report.compilation;
  Totals totals = TotalsOf(report.steps, std::nullopt);
  totals.temporary_bytes = made.program.arena_bytes;
  totals.peak_bytes = made.program.arena_bytes + BytesAround(*made.module, made.program);
  totals.planning_ms = made.times.planning_ms;
  return totals;
}

// The totals of the same module with another fusion mode.
Result<std::optional<Totals>> TotalsIn(FusionMode mode, const Compilation& made,
                                       const Module& before) {
  CompileOptions options = made.options;
  options.fusion = mode;
  options.require_kernels = false;
  // Fusions required of this plan are not required of the plans that it is compared with.
  options.constraints.fuse.insert(options.constraints.fuse.end(),
                                  options.constraints.require_fused.begin(),
                                  options.constraints.require_fused.end());
  options.constraints.require_fused.clear();
  options.schedules.forced.clear();  // they name kernels of this plan
  if (mode == FusionMode::kNone) options.apply_constraints = false;
  Result<std::shared_ptr<const Compilation>> other =
      Compile(CloneModule(before), made.target, options);
  // A fusion that the program itself requires may be impossible in that mode: then there is no row.
  if (!other.ok() && other.error().code == ErrorCode::kOptionValue) return std::optional<Totals>();
  TOK_TRY(std::shared_ptr<const Compilation> compared, std::move(other));
  TOK_TRY(CompileReport report, ReportOf(std::move(compared)));
  return std::optional(report.totals);
}

}  // namespace

StepKey KeyOf(const RunStep& step) {
  return {step.kind, step.kind == StepKind::kHorizontal ? step.blocks[0][0].target : step.target};
}

Totals TotalsOf(const std::vector<StepReport>& steps, std::optional<Phase> phase) {
  Totals totals;
  for (const StepReport& step : steps) {
    if (phase && step.phase != *phase) continue;
    int64_t& count = step.generator == "library" ? totals.library
                     : step.generator == "host"  ? totals.host
                     : step.generator == "copy"  ? totals.copies
                                                 : totals.kernels;
    ++count;
    totals.bytes += step.runs() * (step.reads + step.writes);
    totals.us += step.us();
    if (step.measured_us)
      totals.measured_us =
          totals.measured_us.value_or(0) + static_cast<double>(step.runs()) * *step.measured_us;
    totals.data_decides |= !step.calls;
  }
  return totals;
}

std::vector<const Instr*> CompileReport::KernelInstrsOf(const StepReport& step) const {
  std::vector<const Instr*> instrs;
  for (size_t kernel : step.kernels) {
    const std::vector<const Instr*>& own = program().sources[kernel].region.instrs;
    instrs.insert(instrs.end(), own.begin(), own.end());
  }
  return instrs;
}

Result<CompileReport> ReportOf(std::shared_ptr<const Compilation> compilation,
                               const ReportOptions& options) {
  CompileReport report;
  report.compilation = std::move(compilation);
  const Compilation& made = *report.compilation;
  if (!made.why_interpreted.empty()) return report;
  StepTimes times;
  if (options.measurer != nullptr) {
    TOK_TRY(times, options.measurer(made, options.seconds));
  }
  report.steps = StepReporter(made, times, options.measurer != nullptr).Run();
  report.totals = TotalsOf(report);
  return report;
}

Result<std::optional<Totals>> UnfusedTotals(const Compilation& made, const Module& before) {
  return TotalsIn(FusionMode::kNone, made, before);
}

Status AddComparisons(CompileReport& report, const Module& before) {
  const Compilation& made = *report.compilation;
  FusionMode mode = made.options.fusion;
  if (!made.why_interpreted.empty() || mode == FusionMode::kNone) return Ok();
  TOK_TRY(report.unfused, UnfusedTotals(made, before));
  if (mode == FusionMode::kSearch) {
    TOK_TRY(report.greedy, TotalsIn(FusionMode::kGreedy, made, before));
  }
  return Ok();
}

}  // namespace tokamak
