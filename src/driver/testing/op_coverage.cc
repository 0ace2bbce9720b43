#include "driver/testing/op_coverage.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "driver/report/compile_report.h"
#include "text/load.h"

namespace tokamak {
namespace {

// Computations that the programs of op_samples.def call.
constexpr std::string_view kSampleComputations = R"(
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
twice { x = f32[8] parameter(0)  ROOT r = f32[8] add(x, x) }
made { ROOT r = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8}) }
step { x = f32[8] parameter(0)  c = f32[8] parameter(1)  s = f32[8] add(x, c)
  ROOT r = (f32[8], f32[8]) tuple(s, s) }
below { t = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)  ROOT r = pred[] compare(i, n), direction=LT }
advance { t = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(t), index=0
  x = f32[8] get-tuple-element(t), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[8] add(x, x)  ROOT r = (s32[], f32[8]) tuple(j, y) }
)";

std::string SampleProgram(std::string_view called, std::string_view body) {
  return fmt::format("HloModule sample\n{}\nENTRY main {{\n{}\n}}\n", called, body);
}

struct SampleKind {
  ElementType type;
  std::string_view name;
};
constexpr SampleKind kSampleKinds[] = {{ElementType::kF32, "real"},
                                       {ElementType::kS32, "signed"},
                                       {ElementType::kU32, "unsigned"},
                                       {ElementType::kPred, "pred"},
                                       {ElementType::kC64, "complex"}};

OpSample SampleOfRow(const OpInfo& info, const SampleKind& kind) {
  std::string body, operands;
  for (int i = 0; i < info.arity; ++i) {
    body += fmt::format("  x{} = {}[8] parameter({})\n", i, HloName(kind.type), i);
    operands += fmt::format("{}x{}", i == 0 ? "" : ", ", i);
  }
  body += fmt::format("  ROOT r = {}[8] {}({})", HloName(kind.type), info.name, operands);
  return {info.op, std::string(kind.name), SampleProgram("", body)};
}

}  // namespace

std::vector<OpSample> SamplesOf(Op op) {
  static const auto* written = new std::multimap<Op, std::string_view>{
#define TOK_SAMPLE(id, body) {Op::k##id, body},
#include "driver/testing/op_samples.def"
#undef TOK_SAMPLE
  };
  std::vector<OpSample> samples;
  auto [begin, end] = written->equal_range(op);
  for (auto row = begin; row != end; ++row)
    samples.push_back(OpSample{op, "", SampleProgram(kSampleComputations, row->second)});
  if (!samples.empty()) return samples;
  for (const SampleKind& kind : kSampleKinds)
    if (InfoOf(op).Takes(kind.type)) samples.push_back(SampleOfRow(InfoOf(op), kind));
  return samples;
}

std::string_view NameOf(OpStep step) {
  switch (step) {
    case OpStep::kNone:
      return "no step";
    case OpStep::kCopy:
      return "copy";
    case OpStep::kKernel:
      return "kernel";
    case OpStep::kLibrary:
      return "library";
    case OpStep::kHost:
      return "host";
    case OpStep::kInterpreter:
      return "interpreter";
  }
  return "";
}

Result<OpStep> StepOf(const OpSample& sample, std::string_view target) {
  LoadedFile file = LoadBytes(Bytes::FromString(sample.text), std::string(InfoOf(sample.op).name),
                              Verification::kYes);
  TOK_TRY(std::unique_ptr<Module> module, std::move(file.programs.at(0)));
  TOK_TRY(Target on, TargetNamed(target));
  CompileOptions options;
  options.check_memory = false;
  Result<std::shared_ptr<const Compilation>> compiled = Compile(std::move(module), on, options);
  if (!compiled.ok() && compiled.error().code == ErrorCode::kUnsupportedResult)
    return OpStep::kInterpreter;
  TOK_TRY(std::shared_ptr<const Compilation> made, std::move(compiled));
  TOK_TRY(CompileReport report, ReportOf(std::move(made)));
  if (!report.why_interpreted().empty()) return OpStep::kInterpreter;
  OpStep most = OpStep::kNone;
  for (const StepReport& step : report.steps) {
    OpStep own = step.generator == "host"      ? OpStep::kHost
                 : step.generator == "library" ? OpStep::kLibrary
                 : step.generator == "copy"    ? OpStep::kCopy
                                               : OpStep::kKernel;
    most = std::max(most, own);
  }
  return most;
}

Result<std::string> CoverageOf(Op op, std::string_view target) {
  std::vector<std::pair<OpStep, std::string>> steps;
  for (const OpSample& sample : SamplesOf(op)) {
    TOK_TRY(OpStep step, StepOf(sample, target));
    steps.emplace_back(step, sample.kind);
  }
  if (steps.empty()) return std::string("no sample");
  std::string text(NameOf(steps[0].first));
  for (const auto& [step, kind] : steps)
    if (step != steps[0].first) text += fmt::format("; {}: {}", kind, NameOf(step));
  return text;
}

}  // namespace tokamak
