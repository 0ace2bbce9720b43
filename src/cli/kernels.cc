#include <fmt/format.h>

#include "cli/explain.h"
#include "cli/programs.h"
#include "driver/compile/compilation.h"
#include "driver/report/cuda_source.h"
#include "ir/clone.h"
#include "kernel/verify.h"
#include "kernel/write.h"

// `tokamak kernels`: the kernels and steps of a program for a CPU or a GPU.

namespace tokamak {
namespace {

class Shower {
 public:
  Shower(const KernelsCommand& command, Console& console) : command_(command), console_(console) {}

  Status Show(const Module& module) {
    std::unique_ptr<Module> copy = CloneModule(module);
    TOK_TRY(Target target, TargetToShow());
    CompileOptions options;
    TOK_RETURN_IF_ERROR(SetFusion(options, command_.fusion));
    TOK_TRY(options.passes, ParsePipeline(command_.passes));
    if (command_.unfused) options.fusion = FusionMode::kNone;
    options.strict |= command_.strict;
    options.require_kernels = command_.strict;
    options.check_memory = false;
    options.hoist = command_.hoist;
    options.corrupt_kernel = command_.corrupt_kernel;
    options.horizontal = HorizontalModeFromName(command_.horizontal);
    options.memory_limit = command_.memory_limit;
    TOK_TRY(std::shared_ptr<const Compilation> made, Compile(std::move(copy), target, options));
    if (!made->why_interpreted.empty()) {
      console_.Out("the whole program is interpreted: " + made->why_interpreted + "\n");
      return Ok();
    }
    program_ = made->program;
    for (size_t i = 0; i < program_.kernels.size(); ++i) {
      Kernel& kernel = program_.kernels[i];
      kernel.notes = NotesOf(program_.sources[i].region);
      if (command_.text && !command_.cuda) console_.Out(WriteKernel(kernel));
      TOK_RETURN_IF_ERROR(VerifyKernel(kernel));
    }
    if (command_.cuda) TOK_RETURN_IF_ERROR(ShowCuda(program_.steps));
    ShowSteps(program_.steps, 0);
    size_t called = program_.products.size() + program_.calls.size();
    std::string calls = called == 0 ? "" : fmt::format(" {} library calls,", called);
    console_.Out(fmt::format("{} launches,{} {} host steps, {} copies, {} bytes of arena\n",
                             program_.launches, calls, program_.host_instrs.size(), program_.copies,
                             program_.arena_bytes));
    if (command_.decisions)
      for (const Decision& decision : made->log.all()) console_.Err(ToString(decision) + "\n");
    return CheckPlan(command_.checks, std::move(made), module, console_);
  }

 private:
  Result<Target> TargetToShow() const {
    bool for_gpu = command_.target == "cuda" || command_.cuda;
    TOK_TRY(Target target, TargetNamed(for_gpu ? "h200" : "host"));
    if (command_.vector_bits > 0) target.machine.vector_bits = command_.vector_bits;
    target.memory_bytes = 0;
    if (command_.library == "on") target.libraries = LibraryUse::kAll;
    if (command_.library == "off") target.libraries = LibraryUse::kNone;
    return target;
  }

  // Prints the CUDA source of each launch or horizontally fused launch.
  Status ShowCuda(const std::vector<RunStep>& steps) {
    for (const RunStep& step : steps) {
      bool is_launch = step.kind == StepKind::kLaunch || step.kind == StepKind::kHorizontal ||
                       (step.kind == StepKind::kWhile && program_.IsPersistent(step));
      if (is_launch) {
        TOK_TRY(LaunchText launch, CudaTextOfLaunch(step, program_));
        if (command_.text) console_.Out(launch.text + "\n");
      } else {
        for (const std::vector<RunStep>& block : step.blocks) TOK_RETURN_IF_ERROR(ShowCuda(block));
      }
    }
    return Ok();
  }

  void ShowSteps(const std::vector<RunStep>& steps, int depth) {
    for (const RunStep& step : steps) {
      console_.Out(std::string(static_cast<size_t>(depth) * 2, ' ') + TextOf(step) + "\n");
      // The blocks of odd iterations repeat the same steps on other slices.
      size_t shown = step.kind == StepKind::kWhile ? 3 : step.blocks.size();
      if (step.kind == StepKind::kWhile && step.blocks[2].empty()) shown = 2;
      for (size_t i = 0; i < std::min(shown, step.blocks.size()); ++i) {
        if (i > 0) console_.Out(std::string(static_cast<size_t>(depth) * 2, ' ') + "--\n");
        ShowSteps(step.blocks[i], depth + 1);
      }
    }
  }

  static std::string LibraryText(const ProductCall& call) {
    if (call.convolution) return "library " + ToString(*call.convolution);
    return fmt::format("library {} in {}", ToString(call.product), call.blocks.count);
  }

  std::string TextOf(const RunStep& step) const {
    std::string slices;
    for (const BufferSlice& slice : step.slices)
      slices += fmt::format(" {}+{}", slice.memory, slice.offset);
    switch (step.kind) {
      case StepKind::kLaunch:
        return fmt::format("launch {} of {}:{}", program_.kernels[step.target].name, step.grid,
                           slices);
      case StepKind::kHorizontal:
        return fmt::format("horizontal of {}", step.blocks[0].size());
      case StepKind::kLibrary:
        return LibraryText(program_.products[step.target]) + ":" + slices;
      case StepKind::kCall:
        return fmt::format("library {}:{}", program_.calls[step.target]->Text(), slices);
      case StepKind::kHost:
        return fmt::format("host {} ({}):{}", program_.host_instrs[step.target]->info().name,
                           program_.host_reasons[step.target], slices);
      case StepKind::kCopy:
        return fmt::format("copy {} bytes:{}", step.bytes, slices);
      case StepKind::kPoison:
        return fmt::format("poison {} bytes:{}", step.bytes, slices);
      case StepKind::kWhile:
        return fmt::format("{} {}+{}{}",
                           program_.IsPersistent(step) ? "while in one launch" : "while",
                           step.slices[0].memory, step.slices[0].offset,
                           step.blocks.size() > 3 ? ", buffers alternate" : "");
      case StepKind::kConditional:
        return "conditional" + slices;
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
