#include <algorithm>

#include "driver/account/views.h"
#include "driver/account/write.h"
#include "driver/cuda_source.h"
#include "driver/llvm_text.h"
#include "kernel/write.h"
#include "support/edit_distance.h"

namespace tokamak {
namespace {

constexpr size_t kNearNames = 5;
constexpr std::string_view kInPack = "// A function of the launch's kernel, below.\n";

bool IsNumber(std::string_view name) {
  return !name.empty() && name.size() < 9 &&
         std::all_of(name.begin(), name.end(), [](char c) { return '0' <= c && c <= '9'; });
}

Error NoSuchKernel(const ProgramAccount& account, std::string_view name) {
  if (IsNumber(name)) {
    size_t row = std::stoul(std::string(name));
    bool is_step = row >= 1 && row <= account.steps.size();
    return MakeError(ErrorCode::kOptionValue,
                     is_step ? "explain: step " + std::string(name) +
                                   " is no kernel: " + account.steps[row - 1].generator + " " +
                                   account.steps[row - 1].name
                             : "explain: there is no step " + std::string(name) + ", there are " +
                                   std::to_string(account.steps.size()));
  }
  std::vector<std::string> names;
  for (const Kernel& kernel : account.program().kernels) names.push_back(kernel.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::stable_sort(names.begin(), names.end(), [&](const std::string& x, const std::string& y) {
    return EditDistance(name, x) < EditDistance(name, y);
  });
  std::string text = "explain: there is no kernel '" + std::string(name) + "'";
  if (names.empty()) return MakeError(ErrorCode::kOptionValue, text + "; it has none");
  return MakeError(ErrorCode::kOptionValue,
                   text + "; those nearest are " + ShortList(names, kNearNames));
}

// Numbers of the kernels that are meant, in order.
std::vector<size_t> NumbersOf(const ProgramAccount& account, std::string_view name) {
  const std::vector<StepAccount>& steps = account.steps;
  if (IsNumber(name)) {
    size_t row = std::stoul(std::string(name));
    return row >= 1 && row <= steps.size() ? steps[row - 1].kernels : std::vector<size_t>{};
  }
  std::vector<size_t> numbers;
  for (size_t i = 0; i < account.program().kernels.size(); ++i)
    if (account.program().kernels[i].name == name) numbers.push_back(i);
  return numbers;
}

// The pack or persistent loop that launches exactly these kernels; null when they are none.
const RunStep* LaunchOf(const ProgramAccount& account, const std::vector<size_t>& kernels) {
  for (const StepAccount& step : account.steps)
    if ((step.generator == "pack" || step.generator == "persistent") && step.kernels == kernels)
      return step.step;
  return nullptr;
}

Result<std::string> CodeOf(const Kernel& kernel, bool for_gpu) {
  return for_gpu ? CudaTextOf(kernel) : LlvmTextOf(kernel);
}

// On a GPU the kernels of a pack or of a persistent loop are one: it is shown with the last.
Result<std::string> CodeOfLaunch(const LoweredProgram& program, const RunStep& launch) {
  if (launch.kind == StepKind::kWhile) return CudaTextOfLoop(launch, program);
  std::vector<std::pair<const Kernel*, int64_t>> parts;
  for (const RunStep& part : launch.blocks[0])
    parts.emplace_back(&program.kernels[part.target], part.grid);
  return CudaTextOfPack("pack_" + parts[0].first->name, parts);
}

}  // namespace

Result<std::vector<KernelView>> KernelsNamed(const ProgramAccount& account, std::string_view name) {
  std::vector<KernelView> views;
  bool for_gpu = account.machine().is_gpu();
  std::vector<size_t> numbers = NumbersOf(account, name);
  const RunStep* launch = for_gpu ? LaunchOf(account, numbers) : nullptr;
  for (size_t number : numbers) {
    Kernel kernel = account.program().kernels[number];
    kernel.notes = NotesOf(account.program().sources[number].region);
    KernelView view{kernel.name, WriteKernel(kernel), "", for_gpu ? "cuda" : "llvm"};
    bool is_last = views.size() + 1 == numbers.size();
    Result<std::string> code = launch == nullptr ? CodeOf(kernel, for_gpu)
                               : is_last         ? CodeOfLaunch(account.program(), *launch)
                                                 : std::string(kInPack);
    // A build without that backend still has the form to show.
    if (code.ok()) {
      view.code = std::move(code.value());
    } else if (code.error().code != ErrorCode::kBackendNotBuilt) {
      return std::move(code.error());
    }
    views.push_back(std::move(view));
  }
  if (views.empty()) return NoSuchKernel(account, name);
  return views;
}

}  // namespace tokamak
