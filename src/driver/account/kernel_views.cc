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
  for (const Kernel& kernel : account.program.kernels) names.push_back(kernel.name);
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
  for (size_t i = 0; i < account.program.kernels.size(); ++i)
    if (account.program.kernels[i].name == name) numbers.push_back(i);
  return numbers;
}

}  // namespace

Result<std::vector<KernelView>> KernelsNamed(const ProgramAccount& account, std::string_view name) {
  std::vector<KernelView> views;
  bool for_gpu = account.machine.is_gpu();
  for (size_t number : NumbersOf(account, name)) {
    Kernel kernel = account.program.kernels[number];
    kernel.notes = NotesOf(account.program.sources[number].region);
    KernelView view{kernel.name, WriteKernel(kernel), "", for_gpu ? "cuda" : "llvm"};
    Result<std::string> code = for_gpu ? CudaTextOf(kernel) : LlvmTextOf(kernel);
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
