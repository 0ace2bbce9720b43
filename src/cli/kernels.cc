#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/programs.h"
#include "driver/all_kernels.h"
#include "driver/compiled_run.h"
#include "driver/cuda_source.h"
#include "driver/host_libraries.h"
#include "driver/host_rates.h"
#include "driver/kernel_codes.h"
#include "driver/lower_module.h"
#include "kernel/verify.h"
#include "kernel/write.h"
#include "passes/passes.h"

// `tokamak kernels`: what a program becomes on a CPU or a GPU.

namespace tokamak {
namespace {

class Shower {
 public:
  Shower(const KernelsCommand& command, Console& console) : command_(command), console_(console) {}

  Status Show(Module& module) {
    DecisionLog log;
    if (command_.hoist) {
      TOK_TRY([[maybe_unused]] std::vector<Value> values, HoistConstants(module));
    }
    MarkPins(module, command_.fusion.pins);
    TOK_TRY(Pipeline pipeline, ParsePipeline(command_.passes));
    TOK_TRY(FusionChoice fusion,
            ParseFusion(command_.fusion.mode, command_.fusion.lift, command_.fusion.skip));
    PassContext context(log, {}, {.strict = command_.strict});
    PipelineOptions passes;
    passes.skip = fusion.paper.skip;
    TOK_TRY([[maybe_unused]] std::vector<PassRun> runs,
            RunPasses(module, pipeline, context, passes));
    if (std::string why = WhyNotLowered(module); !why.empty()) {
      if (command_.strict)
        return MakeError(ErrorCode::kNoKernel, "kernels: the interpreter runs all of it: " + why,
                         {.file = module.file});
      console_.Out("the interpreter runs all of it: " + why + "\n");
      return Ok();
    }
    LowerOptions options;
    options.machine = command_.target == "cuda" || command_.cuda ? GpuMachine() : HostMachine();
    if (options.machine.is_gpu()) options.machine.rates = &GpuRates();
    if (command_.vector_bits > 0) options.machine.vector_bits = command_.vector_bits;
    options.strict = command_.strict;
    options.plan.mode = command_.unfused ? FusionMode::kNone : fusion.mode;
    TOK_TRY(options.plan.effort, ParseEffort(command_.fusion.effort));
    options.plan.pin_words = command_.fusion.pins;
    options.plan.memory_limit = command_.memory_limit;
    options.plan.packs =
        PackModeNamed(command_.packs)
            .value_or(options.machine.is_gpu() ? PackMode::kPriced : PackMode::kNone);
    bool is_gpu = options.machine.is_gpu();
    AssumedLibraries all(is_gpu);
    HostLibraries own;
    TargetLibraries* libraries = nullptr;
    if (command_.library == "on") libraries = &all;
    if (command_.library == "auto" && !is_gpu) libraries = &own;
    TOK_TRY(program_, LowerModule(module, options, log, fusion.paper, libraries));
    for (size_t i = 0; i < program_.kernels.size(); ++i) {
      Kernel& kernel = program_.kernels[i];
      kernel.notes = NotesOf(program_.sources[i].region);
      TOK_RETURN_IF_ERROR(VerifyKernel(kernel));
      if (command_.text && !command_.cuda) console_.Out(WriteKernel(kernel));
    }
    if (command_.cuda) TOK_RETURN_IF_ERROR(ShowCuda(program_.steps));
    ShowSteps(program_.steps, 0);
    size_t called = program_.products.size() + program_.calls.size();
    std::string calls = called == 0 ? "" : fmt::format(" {} library calls,", called);
    console_.Out(fmt::format("{} launches,{} {} host steps, {} copies, {} bytes of arena\n",
                             program_.launches, calls, program_.host_instrs.size(), program_.copies,
                             program_.arena_bytes));
    if (command_.decisions)
      for (const Decision& decision : log.all()) console_.Err(ToString(decision) + "\n");
    return command_.strict ? CheckAllKernels(program_, module) : Ok();
  }

 private:
  // Each launch's kernel, or its pack's.
  Status ShowCuda(const std::vector<RunStep>& steps) {
    for (const RunStep& step : steps) {
      std::string text;
      if (step.kind == StepKind::kLaunch) {
        TOK_TRY(text, CudaTextOf(program_.kernels[step.target]));
      } else if (step.kind == StepKind::kPack) {
        std::vector<std::pair<const Kernel*, int64_t>> parts;
        for (const RunStep& launch : step.blocks[0])
          parts.emplace_back(&program_.kernels[launch.target], launch.grid);
        TOK_TRY(text, CudaTextOfPack("pack_" + parts[0].first->name, parts));
      } else if (step.kind == StepKind::kWhile && IsPersistent(step)) {
        TOK_TRY(text, CudaTextOfLoop(step, program_));
      } else {
        for (const std::vector<RunStep>& block : step.blocks) TOK_RETURN_IF_ERROR(ShowCuda(block));
      }
      if (command_.text && !text.empty()) console_.Out(text + "\n");
    }
    return Ok();
  }

  bool IsPersistent(const RunStep& loop) const {
    return loop.target < program_.persistent.size() && program_.persistent[loop.target] > 0;
  }

  void ShowSteps(const std::vector<RunStep>& steps, int depth) {
    for (const RunStep& step : steps) {
      console_.Out(std::string(static_cast<size_t>(depth) * 2, ' ') + TextOf(step) + "\n");
      for (const std::vector<RunStep>& block : step.blocks) {
        ShowSteps(block, depth + 1);
        if (step.kind == StepKind::kWhile && &block == &step.blocks[1] && step.blocks[2].empty())
          break;
        if (&block != &step.blocks.back())
          console_.Out(std::string(static_cast<size_t>(depth) * 2, ' ') + "--\n");
      }
    }
  }

  static std::string LibraryText(const ProductCall& call) {
    if (call.convolution) return "library " + ToString(*call.convolution);
    return fmt::format("library {} in {}", ToString(call.product), call.blocks.count);
  }

  std::string TextOf(const RunStep& step) const {
    std::string places;
    for (const Place& place : step.places)
      places += fmt::format(" {}+{}", place.memory, place.offset);
    switch (step.kind) {
      case StepKind::kLaunch:
        return fmt::format("launch {} of {}:{}", program_.kernels[step.target].name, step.grid,
                           places);
      case StepKind::kPack:
        return fmt::format("pack of {}", step.blocks[0].size());
      case StepKind::kLibrary:
        return LibraryText(program_.products[step.target]) + ":" + places;
      case StepKind::kCall:
        return fmt::format("library {}:{}", program_.calls[step.target]->Text(), places);
      case StepKind::kHost:
        return fmt::format("host {} ({}):{}", program_.host_instrs[step.target]->info().name,
                           program_.host_reasons[step.target], places);
      case StepKind::kCopy:
        return fmt::format("copy {} bytes:{}", step.bytes, places);
      case StepKind::kPoison:
        return fmt::format("poison {} bytes:{}", step.bytes, places);
      case StepKind::kWhile:
        return (IsPersistent(step) ? "while in one launch" : "while") + places;
      case StepKind::kConditional:
        return "conditional" + places;
    }
    return "";
  }

  const KernelsCommand& command_;
  Console& console_;
  LoweredProgram program_;
};

}  // namespace

int Kernels(const KernelsCommand& command, Console& console) {
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    Status shown = Shower(command, console).Show(program);
    return shown.ok() ? 0 : console.Report(shown.error(), source);
  });
}

}  // namespace tokamak
