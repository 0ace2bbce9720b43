#include <algorithm>

#include "driver/report/cuda_source.h"
#include "driver/report/llvm_text.h"
#include "driver/report/views.h"
#include "driver/report/write.h"
#include "kernel/write.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

// Similar names listed in the error (chosen).
constexpr size_t kMaxSuggestions = 5;
constexpr std::string_view kInHorizontal = "// A function of the launch's kernel, below.\n";

bool IsNumber(std::string_view name) {
  return !name.empty() && name.size() < 9 &&
         std::all_of(name.begin(), name.end(), [](char c) { return '0' <= c && c <= '9'; });
}

Error NoSuchKernel(const CompileReport& report, std::string_view name) {
  if (IsNumber(name)) {
    size_t row = std::stoul(std::string(name));
    bool is_step = row >= 1 && row <= report.steps.size();
    return MakeError(ErrorCode::kOptionValue,
                     is_step ? "explain: step " + std::string(name) +
                                   " is not a kernel: " + report.steps[row - 1].generator + " " +
                                   report.steps[row - 1].name
                             : "explain: there is no step " + std::string(name) + ", there are " +
                                   std::to_string(report.steps.size()));
  }
  std::vector<std::string> names;
  for (const Kernel& kernel : report.program().kernels) names.push_back(kernel.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text = "explain: there is no kernel '" + std::string(name) + "'";
  if (names.empty())
    return MakeError(ErrorCode::kOptionValue, text + "; the program has no kernels");
  std::vector<std::string> nearest;
  for (std::string_view near : NearestNames(name, {names.begin(), names.end()}, names.size()))
    nearest.emplace_back(near);
  return MakeError(ErrorCode::kOptionValue,
                   text + "; did you mean " + ShortList(nearest, kMaxSuggestions) + "?");
}

// Numbers of the selected kernels, in order.
std::vector<size_t> NumbersOf(const CompileReport& report, std::string_view name) {
  const std::vector<StepReport>& steps = report.steps;
  if (IsNumber(name)) {
    size_t row = std::stoul(std::string(name));
    return row >= 1 && row <= steps.size() ? steps[row - 1].kernels : std::vector<size_t>{};
  }
  std::vector<size_t> numbers;
  for (size_t i = 0; i < report.program().kernels.size(); ++i)
    if (report.program().kernels[i].name == name) numbers.push_back(i);
  return numbers;
}

// The horizontally fused launch or persistent loop that consists of exactly these kernels; null if
// there is none.
const RunStep* LaunchOf(const CompileReport& report, const std::vector<size_t>& kernels) {
  for (const StepReport& step : report.steps)
    if ((step.generator == "horizontal" || step.generator == "persistent") &&
        step.kernels == kernels)
      return step.step;
  return nullptr;
}

Result<std::string> CodeOf(const Kernel& kernel, bool for_gpu) {
  return for_gpu ? CudaTextOf(kernel) : LlvmTextOf(kernel);
}

// On a GPU the kernels of a horizontally fused launch or a persistent loop are compiled as one; its
// code is shown with the last kernel.
Result<std::string> CodeOfLaunch(const LoweredProgram& program, const RunStep& step) {
  TOK_TRY(LaunchText launch, CudaTextOfLaunch(step, program));
  return std::move(launch.text);
}

}  // namespace

std::string KernelFormOf(const CompileReport& report, size_t kernel) {
  Kernel shown = report.program().kernels[kernel];
  shown.notes = NotesOf(report.program().sources[kernel].region);
  return WriteKernel(shown);
}

Result<std::vector<KernelView>> KernelsNamed(const CompileReport& report, std::string_view name) {
  std::vector<KernelView> views;
  bool for_gpu = report.machine().is_gpu();
  std::vector<size_t> numbers = NumbersOf(report, name);
  const RunStep* launch = for_gpu ? LaunchOf(report, numbers) : nullptr;
  for (size_t number : numbers) {
    const Kernel& kernel = report.program().kernels[number];
    KernelView view{kernel.name, KernelFormOf(report, number), "", for_gpu ? "cuda" : "llvm"};
    bool is_last = views.size() + 1 == numbers.size();
    Result<std::string> code = launch == nullptr ? CodeOf(kernel, for_gpu)
                               : is_last         ? CodeOfLaunch(report.program(), *launch)
                                                 : std::string(kInHorizontal);
    // A build without that backend can still show the kernel IR.
    if (code.ok()) {
      view.code = std::move(code.value());
    } else if (code.error().code != ErrorCode::kBackendNotBuilt) {
      return std::move(code.error());
    }
    views.push_back(std::move(view));
  }
  if (views.empty()) return NoSuchKernel(report, name);
  return views;
}

}  // namespace tokamak
