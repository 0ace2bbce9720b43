#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/loops.h"
#include "cli/commands.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "cost/json.h"
#include "driver/all_kernels.h"
#include "driver/host_rates.h"
#include "driver/kernel_codes.h"
#include "driver/lower_module.h"
#include "driver/measure_steps.h"
#include "driver/program_facts.h"
#include "driver/step_price.h"
#include "lower/lower.h"
#include "passes/passes.h"

// `tokamak explain`: the steps that a program becomes, what each does for which lines of the user's
// program, and what the interpreter does for want of a kernel.

namespace tokamak {
namespace {

using nlohmann::json;

int64_t BytesOf(const KernelSource& source, bool outputs) {
  int64_t bytes = 0;
  for (const KernelArgument& argument : source.arguments)
    if (argument.is_output == outputs)
      bytes += PartsOf(argument.instr->shape())[argument.part].ByteSize();
  return bytes;
}

int64_t BytesOf(const Instr& instr, bool outputs) {
  int64_t bytes = 0;
  auto add = [&](const Shape& shape) {
    for (const Shape& leaf : LeavesOf(shape)) bytes += leaf.IsArray() ? leaf.ByteSize() : 0;
  };
  if (outputs) add(instr.shape());
  if (!outputs)
    for (const Instr* operand : instr.operands()) add(operand->shape());
  return bytes;
}

class Explainer {
 public:
  Explainer(const ExplainCommand& command, Console& console)
      : command_(command), console_(console) {}

  Status Explain(Module& module) {
    module_ = &module;
    TOK_TRY(Pipeline pipeline, ParsePipeline("default"));
    PassContext context(log_, {}, {.strict = command_.strict});
    TOK_TRY([[maybe_unused]] std::vector<PassRun> runs,
            RunPasses(module, pipeline, context, PipelineOptions{}));
    std::string why = WhyNotLowered(module);
    if (why.empty()) {
      LowerOptions options;
      TOK_TRY(FusionChoice fusion,
              ParseFusion(command_.fusion.mode, command_.fusion.lift, command_.fusion.skip));
      options.plan.mode = command_.unfused ? FusionMode::kNone : fusion.mode;
      options.plan.packs =
          PackModeNamed(command_.packs)
              .value_or(command_.target == "h200" ? PackMode::kPriced : PackMode::kNone);
      if (command_.target == "h200") {
        options.machine = machine_ = GpuMachine();
        options.machine.rates = machine_.rates = &GpuRates();
        TOK_TRY(program_, LowerModule(module, options, log_, fusion.paper));
      } else {
        TOK_TRY(program_, LowerForHost(module, options, log_, fusion.paper));
      }
      if (command_.measure && command_.target == "host") {
        TOK_TRY(times_, MeasureSteps(module, program_, {.seconds = command_.seconds}));
      }
      Walk(program_.steps, 1);
    }
    if (command_.strict && !why.empty())
      return MakeError(ErrorCode::kNoKernel, "explain: the interpreter runs all of it: " + why,
                       {.file = module.file});
    command_.json ? PrintJson(why) : PrintText(why);
    return command_.strict ? CheckAllKernels(program_, module) : Ok();
  }

 private:
  // Nothing: data decides how often.
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
    json entry = {{"predicted_us", nullptr}, {"measured_us", nullptr}, {"library", nullptr}};
    entry["calls"] = calls ? json(*calls) : json(nullptr);
    AddPrice(step, entry);
    if (step.kind == StepKind::kLaunch) {
      DescribeKernel(step, entry);
    } else if (step.kind == StepKind::kPack) {
      DescribePack(step, entry);
    } else if (step.kind == StepKind::kHost || step.kind == StepKind::kLibrary ||
               step.kind == StepKind::kCall) {
      const Instr& instr = step.kind == StepKind::kLibrary ? *program_.product_instrs[step.target]
                           : step.kind == StepKind::kCall  ? *program_.call_instrs[step.target]
                                                           : *program_.host_instrs[step.target];
      entry["name"] = LabelOf(instr);
      entry["generator"] = step.kind == StepKind::kHost ? "host" : "library";
      if (step.kind != StepKind::kHost) {
        entry["library"] = step.kind == StepKind::kLibrary ? "OpenBLAS" : "tokamak";
      } else {
        entry["why"] =
            BelongsToHost(instr) ? "it is the host's" : program_.host_reasons[step.target];
      }
      entry["reads_bytes"] = BytesOf(instr, false);
      entry["writes_bytes"] = BytesOf(instr, true);
      Describe({&instr}, entry);
    } else if (step.kind == StepKind::kCopy) {
      entry["name"] = "copy";
      entry["generator"] = "copy";
      entry["reads_bytes"] = entry["writes_bytes"] = step.bytes;
      entry["instrs"] = entry["lines"] = json::array();
    } else {
      return;
    }
    steps_.push_back(std::move(entry));
  }

  void AddPrice(const RunStep& step, json& entry) const {
    if (step.kind == StepKind::kWhile || step.kind == StepKind::kConditional) return;
    entry["predicted_us"] = step.kind == StepKind::kPack ? PriceOf({step}, program_, machine_)
                                                         : PriceOfStep(step, program_, machine_);
    if (step.kind == StepKind::kLaunch || step.kind == StepKind::kLibrary) {
      Work work = WorkOf(step, program_, machine_);
      if (command_.measure) work.grain = static_cast<double>(GrainOf(work, machine_));
      Price price = PriceOf(work, machine_);
      entry["price"] = {{"launch", price.launch},
                        {"memory", price.memory},
                        {"compute", price.compute},
                        {"binding", price.binding},
                        {"threads", price.threads}};
      entry["work"] = json::parse(ToJson(work));
    }
    auto found = times_.find({step.kind, step.target});
    if (found != times_.end()) entry["measured_us"] = found->second;
  }

  void DescribeKernel(const RunStep& launch, json& entry) const {
    const KernelSource& source = program_.sources[launch.target];
    entry["name"] = program_.kernels[launch.target].name;
    entry["generator"] = NameOf(source.kind);
    entry["reads_bytes"] = BytesOf(source, false);
    entry["writes_bytes"] = BytesOf(source, true);
    Describe(source.region.instrs, entry);
  }

  // Kernels that run as one: its name is that of the first.
  void DescribePack(const RunStep& pack, json& entry) const {
    std::vector<const Instr*> all;
    int64_t reads = 0, writes = 0;
    json parts = json::array();
    for (const RunStep& launch : pack.blocks[0]) {
      const std::vector<const Instr*>& own = program_.sources[launch.target].region.instrs;
      all.insert(all.end(), own.begin(), own.end());
      json part = json::object();
      DescribeKernel(launch, part);
      reads += part["reads_bytes"].get<int64_t>();
      writes += part["writes_bytes"].get<int64_t>();
      parts.push_back(std::move(part));
    }
    Describe(all, entry);
    entry["name"] = parts[0]["name"];
    entry["generator"] = "pack";
    entry["reads_bytes"] = reads;
    entry["writes_bytes"] = writes;
    entry["parts"] = std::move(parts);
  }

  void Describe(const std::vector<const Instr*>& instrs, json& entry) const {
    entry["instrs"] = entry["lines"] = json::array();
    for (const Instr* instr : instrs) {
      entry["instrs"].push_back(LabelOf(*instr));
      for (const std::string& line : LinesOf(*instr))
        if (std::find(entry["lines"].begin(), entry["lines"].end(), line) == entry["lines"].end())
          entry["lines"].push_back(line);
    }
  }

  // "train.py:12 (loss)", each once; of programs without such, where the instruction stands.
  std::vector<std::string> LinesOf(const Instr& instr) const {
    std::vector<std::string> lines;
    for (const Origin* origin : module_->origins().Of(instr.origins())) {
      if (origin->frame == FrameId::kNone) continue;
      const Frame& frame = module_->origins().frame(origin->frame);
      lines.push_back(frame.file + ":" + std::to_string(frame.line) +
                      (frame.function.empty() ? "" : " (" + frame.function + ")"));
    }
    if (lines.empty() && instr.pos().line > 0)
      lines.push_back(module_->file + ":" + std::to_string(instr.pos().line));
    return lines;
  }

  int64_t Count(std::string_view generator) const {
    return std::count_if(steps_.begin(), steps_.end(),
                         [&](const json& entry) { return entry["generator"] == generator; });
  }

  void PrintText(const std::string& why) {
    if (!why.empty()) return console_.Out("the interpreter runs all of it: " + why + "\n");
    int64_t host = Count("host"), copies = Count("copy"), library = Count("library");
    std::string calls = library == 0 ? "" : fmt::format(" {} library calls,", library);
    console_.Out(
        fmt::format("{} kernels,{} {} host steps, {} copies; {} bytes of temporary memory\n",
                    static_cast<int64_t>(steps_.size()) - host - copies - library, calls, host,
                    copies, program_.arena_bytes));
    for (const json& entry : steps_) {
      std::string often = entry["calls"].is_null()    ? "as data decides"
                          : entry["calls"] == json(1) ? "once"
                                                      : entry["calls"].dump() + " times";
      console_.Out(fmt::format(
          "{:<8} {}  reads {} bytes, writes {}, runs {}{}\n", entry["generator"].get<std::string>(),
          entry["name"].get<std::string>(), entry["reads_bytes"].get<int64_t>(),
          entry["writes_bytes"].get<int64_t>(), often, TimesOf(entry)));
      if (entry.contains("why"))
        console_.Out("           " + entry["why"].get<std::string>() + "\n");
      if (entry.contains("parts")) {
        PrintParts(entry["parts"]);
        continue;
      }
      PrintList(entry, "instrs");
      PrintList(entry, "lines");
    }
    PrintMachine();
    if (command_.decisions)
      for (const Decision& decision : log_.all()) console_.Out(ToString(decision) + "\n");
  }

  // ": 12.3 us predicted, 11.8 measured".
  static std::string TimesOf(const json& entry) {
    if (entry["predicted_us"].is_null()) return "";
    std::string text = fmt::format(": {:.3g} us predicted", entry["predicted_us"].get<double>());
    if (!entry["measured_us"].is_null())
      text += fmt::format(", {:.3g} measured", entry["measured_us"].get<double>());
    return text;
  }

  // Where prices come from.
  void PrintMachine() {
    const Rates& rates = RatesOf(machine_);
    if (rates.is_default) {
      console_.Out(
          "prices: this processor was not measured, and is taken for a slow one; "
          "`tokamak calibrate` measures it\n");
    } else {
      console_.Out("prices: " + rates.name + " (" + rates.source + ")\n");
    }
  }

  void PrintParts(const json& parts) {
    for (const json& part : parts) {
      console_.Out(fmt::format("  {:<8} {}\n", part["generator"].get<std::string>(),
                               part["name"].get<std::string>()));
      PrintList(part, "instrs");
      PrintList(part, "lines");
    }
  }

  void PrintList(const json& entry, const char* key) {
    std::string text;
    for (const json& word : entry[key])
      text += (text.empty() ? "           " : ", ") + word.get<std::string>();
    if (!text.empty()) console_.Out(text + "\n");
  }

  void PrintJson(const std::string& why) {
    json decisions = json::array();
    for (const Decision& decision : log_.all())
      decisions.push_back({{"pass", decision.pass},
                           {"rule", decision.rule},
                           {"verdict", decision.verdict == Verdict::kTaken ? "taken" : "rejected"},
                           {"subject", decision.subject},
                           {"other", decision.other},
                           {"before_us", decision.before_us},
                           {"after_us", decision.after_us},
                           {"because", decision.because}});
    json out = {{"target", command_.target == "host" ? "cpu" : command_.target},
                {"kernels", steps_},
                {"decisions", decisions}};
    out["host_steps"] = Count("host");
    out["temporary_bytes"] = program_.arena_bytes;
    out["machine"] = {{"name", RatesOf(machine_).name}, {"rates", RatesOf(machine_).source}};
    if (!why.empty()) out["interpreted"] = why;
    console_.Out(JsonLine(out));
  }

  const ExplainCommand& command_;
  Console& console_;
  DecisionLog log_;
  const Module* module_ = nullptr;
  LoweredProgram program_;
  Machine machine_ = HostMachine();
  StepTimes times_;
  std::vector<json> steps_;
};

}  // namespace

int Explain(const ExplainCommand& command, Console& console) {
  if (command.as_given) return ExplainGiven(command, console);
  if (std::optional<int> told = ExplainRule(command, console)) return *told;
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    Status shown = Explainer(command, console).Explain(program);
    return shown.ok() ? 0 : console.Report(shown.error(), source);
  });
}

}  // namespace tokamak
