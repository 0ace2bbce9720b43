// A contraction's candidates are those that the planner chooses from:
//
//   - the schedules of its region: asynchronous multiplies (staging=bulk) and those of a warp or a
//     thread (staging=shared, memory). Their predicted times are those of the kernels, built alone;
//   - the plan of the region without asynchronous multiplies. On GPUs it has the library calls, and
//     the kernels for what a library does not fuse.
//
// A region that is a library call in the program has the kernels for it as candidates. To measure a
// candidate, the region is extracted as a module of its own and compiled with it.

#include "driver/report/contractions.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analysis/index_map.h"
#include "cost/rates.h"
#include "driver/report/write.h"
#include "fusion/make_region.h"
#include "gen/generator.h"
#include "ir/dot_precision.h"
#include "ir/extract.h"

namespace tokamak {
namespace {

// Candidates of one staging that are listed besides the chosen one. Chosen: more differ little.
constexpr size_t kShownPerStaging = 3;

bool IsContraction(const Instr& instr) {
  return instr.op() == Op::kDot || instr.op() == Op::kConvolution;
}

double MultiplicationsOf(const Instr& instr) {
  return static_cast<double>(ReadsPerElement(instr)) *
         static_cast<double>(instr.shape().ElementCount());
}

// A step's region, and how it is computed.
struct ContractionStep {
  const StepReport* step = nullptr;
  FusedRegion region;
  GeneratorKind kind = GeneratorKind::kContract;
  std::optional<Schedule> schedule;  // unset: a library call
  std::optional<double> measured_us;
};

class ContractionFinder {
 public:
  explicit ContractionFinder(const CompileReport& report) : program_(report.program()) {
    for (const StepReport& step : report.steps) Add(step);
  }

  std::vector<ContractionStep> steps() && { return std::move(steps_); }

 private:
  void Add(const StepReport& step) {
    for (size_t kernel : step.kernels) {
      const KernelSource& source = program_.sources[kernel];
      if (std::none_of(source.region.instrs.begin(), source.region.instrs.end(),
                       [](const Instr* instr) { return IsContraction(*instr); }))
        continue;
      bool is_alone = step.kernels.size() == 1 && step.parts.empty();
      steps_.push_back({.step = &step,
                        .region = source.region,
                        .kind = source.kind,
                        .schedule = source.schedule,
                        .measured_us = is_alone ? step.measured_us : std::nullopt});
    }
    bool is_library = step.step != nullptr && step.step->kind == StepKind::kLibrary;
    if (!is_library || step.made.size() != 1 || !IsContraction(*step.made[0])) return;
    const Instr* made = step.made[0];
    steps_.push_back({.step = &step,
                      .region = {.computation = made->parent(),
                                 .instrs = {made},
                                 .inputs = InputsOf({made}),
                                 .roots = {made}},
                      .schedule = std::nullopt,
                      .measured_us = step.measured_us});
  }

  const LoweredProgram& program_;
  std::vector<ContractionStep> steps_;
};

// The steps of a plan in words: "2 library calls, 1 kernel".
std::string StepsText(const Totals& totals) {
  std::string text;
  auto add = [&](int64_t count, std::string_view one, std::string_view many) {
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, count == 1 ? one : many);
  };
  add(totals.library, "library call", "library calls");
  add(totals.kernels, "kernel", "kernels");
  add(totals.host, "host step", "host steps");
  add(totals.copies, "copy", "copies");
  return text;
}

class ContractionReporter {
 public:
  ContractionReporter(const CompileReport& report, const ReportOptions& options)
      : report_(report), options_(options), machine_(report.machine()) {}

  Result<ContractionReport> Run(const ContractionStep& of) {
    ContractionReport made{.name = of.schedule ? KernelNameOf(of.region) : of.step->name};
    AddBound(of.region, made);
    TOK_RETURN_IF_ERROR(AddOwn(of, made));
    TOK_RETURN_IF_ERROR(AddLibrary(of, made));
    std::stable_sort(made.candidates.begin(), made.candidates.end(),
                     [](const ContractionCandidate& x, const ContractionCandidate& y) {
                       return std::pair(!x.is_chosen, x.us()) < std::pair(!y.is_chosen, y.us());
                     });
    return made;
  }

 private:
  // Nanoseconds of an SM or core for the multiplications of a dot or convolution, at full rate.
  double NsOfMultiplications(const Instr& instr) const {
    ElementType type = instr.operand(0)->shape().type();
    bool is_tf32 = type == ElementType::kF32 &&
                   (instr.op() != Op::kDot || AllowsTf32(instr.attrs<DotAttrs>()));
    bool is_narrow = type == ElementType::kBF16 || type == ElementType::kF16;
    Work work;
    if (machine_.async_multiply && (is_tf32 || is_narrow)) {
      constexpr double kTf32Cost = 2;  // of a bf16 multiplication (architecture of Hopper)
      work[Pipe::kTensor] = MultiplicationsOf(instr) * (is_tf32 ? kTf32Cost : 1);
    } else if (instr.op() == Op::kDot) {
      AddElementOp(work, instr, static_cast<double>(instr.shape().ElementCount()), machine_);
    } else {
      work[Pipe::kMultiply] = MultiplicationsOf(instr);
    }
    return NsOfOps(work, RatesOf(machine_));
  }

  // The roofline: multiplications at the full rate of their types, each array moved once.
  void AddBound(const FusedRegion& region, ContractionReport& made) const {
    double ns = 0;
    for (const Instr* instr : region.instrs) {
      if (!IsContraction(*instr)) continue;
      std::string shapes;
      for (const Instr* operand : instr->operands())
        shapes += (shapes.empty() ? "" : " x ") + ToString(operand->shape());
      made.shapes.push_back(shapes + " -> " + ToString(instr->shape()));
      made.flops += 2 * MultiplicationsOf(*instr);
      ns += NsOfMultiplications(*instr);
    }
    for (const std::vector<const Instr*>* arrays : {&region.inputs, &region.roots})
      for (const Instr* array : *arrays)
        for (const Shape& shape : ResultShapesOf(array->shape()))
          made.bytes += static_cast<double>(shape.ByteSize());
    constexpr double kNsPerUs = 1000;
    auto cores = static_cast<double>(std::max<int64_t>(machine_.cores, 1));
    double compute = ns / cores / kNsPerUs;
    double memory = made.bytes / BandwidthAt(RatesOf(machine_).all, made.bytes).read / kNsPerUs;
    made.bound_us = std::max(compute, memory);
    made.bound_by = compute >= memory ? "compute" : "memory";
  }

  Status AddOwn(const ContractionStep& of, ContractionReport& made) {
    std::map<Staging, std::vector<std::pair<double, Schedule>>> by_staging;
    for (const Schedule& schedule : Schedules(of.region, of.kind, machine_)) {
      BuildOutcome outcome = BuildRegion(of.region, schedule, machine_, made.name);
      if (!outcome.built) continue;
      CostEstimate cost =
          EstimateCost(WorkOf(outcome.built->kernel, outcome.built->grid, machine_), machine_);
      if (schedule == of.schedule)
        made.candidates.push_back({.form = ToString(schedule),
                                   .is_chosen = true,
                                   .predicted_us = cost.total(),
                                   .measured_us = of.measured_us});
      else
        by_staging[schedule.staging].emplace_back(cost.total(), schedule);
    }
    for (auto& [staging, all] : by_staging) {
      std::stable_sort(all.begin(), all.end(),
                       [](const auto& x, const auto& y) { return x.first < y.first; });
      if (all.size() > kShownPerStaging) all.resize(kShownPerStaging);
      for (const auto& [us, schedule] : all) {
        ContractionCandidate candidate{.form = ToString(schedule), .predicted_us = us};
        TOK_RETURN_IF_ERROR(MeasureOwn(of, made.name, schedule, candidate));
        made.candidates.push_back(std::move(candidate));
      }
    }
    // Kernels without schedules, and forced ones that the list does not have.
    if (!of.schedule || std::any_of(made.candidates.begin(), made.candidates.end(),
                                    [](const auto& one) { return one.is_chosen; }))
      return Ok();
    made.candidates.push_back({.form = ToString(*of.schedule),
                               .is_chosen = true,
                               .predicted_us = of.step->predicted_us.value_or(0),
                               .measured_us = of.measured_us});
    return Ok();
  }

  // The plan of the region without asynchronous multiplies, or the library call that was chosen.
  Status AddLibrary(const ContractionStep& of, ContractionReport& made) {
    if (!of.schedule) {
      made.candidates.push_back({.form = of.step->library,
                                 .is_chosen = true,
                                 .is_own = false,
                                 .predicted_us = of.step->predicted_us.value_or(0),
                                 .measured_us = of.measured_us});
      return Ok();
    }
    Target target = report_.compilation->target;
    target.machine.async_multiply = false;
    TOK_TRY(CompileReport plan, Planned(of.region, target, {}));
    if (plan.totals.library == 0) return Ok();
    ContractionCandidate candidate{
        .form = StepsText(plan.totals), .is_own = false, .predicted_us = plan.totals.us};
    if (options_.measurer != nullptr) {
      candidate.measured_us = plan.totals.measured_us;
      if (!candidate.measured_us) candidate.why_not = "a step of it was not measured";
    }
    made.candidates.push_back(std::move(candidate));
    return Ok();
  }

  Status MeasureOwn(const ContractionStep& of, const std::string& name, const Schedule& schedule,
                    ContractionCandidate& candidate) {
    if (options_.measurer == nullptr) return Ok();
    Target target = report_.compilation->target;
    target.libraries = LibraryUse::kNone;
    TOK_TRY(CompileReport plan, Planned(of.region, target, {{name, schedule}}));
    if (plan.steps.size() != 1 || plan.steps[0].schedule != ToString(schedule)) {
      candidate.why_not = "alone it has another plan: " + StepsText(plan.totals);
      return Ok();
    }
    candidate.measured_us = plan.totals.measured_us;
    return Ok();
  }

  // The region compiled alone.
  Result<CompileReport> Planned(const FusedRegion& region, const Target& target,
                                std::vector<ForcedSchedule> forced) {
    CompileOptions options = report_.compilation->options;
    options.passes.clear();  // they ran on the whole program
    options.constraints = {};
    options.plan = nullptr;
    options.require_kernels = false;
    options.schedules.mode = ScheduleMode::kClearlyCheaper;
    options.schedules.forced = std::move(forced);
    std::unique_ptr<Module> alone =
        ExtractModule(InputsOf(region.instrs), region.roots, report_.module().name());
    TOK_TRY(std::shared_ptr<const Compilation> made, Compile(std::move(alone), target, options));
    return ReportOf(std::move(made), options_);
  }

  const CompileReport& report_;
  const ReportOptions& options_;
  const Machine& machine_;
};

}  // namespace

double ContractionReport::TflopsOf(const ContractionCandidate& candidate) const {
  constexpr double kFlopsPerUs = 1e6;  // of a TFLOP/s
  return candidate.us() > 0 ? flops / candidate.us() / kFlopsPerUs : 0;
}

double ContractionReport::ShareOf(const ContractionCandidate& candidate) const {
  return candidate.us() > 0 ? bound_us / candidate.us() : 0;
}

Result<std::vector<ContractionReport>> ContractionsOf(const CompileReport& report,
                                                      const ReportOptions& options) {
  std::vector<ContractionReport> all;
  std::map<std::pair<uint64_t, std::string>, size_t> known;
  for (const ContractionStep& step : ContractionFinder(report).steps()) {
    std::string form = step.schedule ? ToString(*step.schedule) : step.step->library;
    bool is_part = step.step->kernels.size() > 1;
    auto [it, is_new] =
        known.try_emplace({is_part ? all.size() + 1 : step.step->hash, form}, all.size());
    if (!is_new) {
      ++all[it->second].count;
      continue;
    }
    TOK_TRY(ContractionReport made, ContractionReporter(report, options).Run(step));
    all.push_back(std::move(made));
  }
  auto us = [](const ContractionReport& one) {
    return one.candidates.empty() ? 0 : one.candidates[0].us() * static_cast<double>(one.count);
  };
  std::stable_sort(
      all.begin(), all.end(),
      [&](const ContractionReport& x, const ContractionReport& y) { return us(x) > us(y); });
  return all;
}

}  // namespace tokamak
