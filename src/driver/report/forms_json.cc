#include <map>

#include <nlohmann/json.hpp>

#include "driver/report/page_data.h"
#include "driver/report/slowest_steps.h"
#include "driver/report/views.h"

namespace tokamak {
namespace {

// Bytes of kernel IR in a page. Chosen: a page of two megabytes still opens at once, and the
// kernels that take most of the time come first.
constexpr size_t kMaxFormBytes = 2 << 20;

}  // namespace

nlohmann::json KernelFormsOf(const CompileReport& report) {
  nlohmann::json forms = nlohmann::json::object();
  std::map<uint64_t, size_t> first;  // step of each code
  size_t bytes = 0;
  for (size_t i : SlowestKernelSteps(report)) {
    const StepReport& step = report.steps[i];
    auto [at, is_new] = first.try_emplace(step.code, i);
    if (!is_new) {
      if (forms.contains(std::to_string(at->second))) forms[std::to_string(i)] = at->second;
      continue;
    }
    std::string text;
    for (size_t kernel : step.kernels) text += KernelFormOf(report, kernel);
    if (bytes + text.size() > kMaxFormBytes) continue;
    bytes += text.size();
    forms[std::to_string(i)] = std::move(text);
  }
  return forms;
}

}  // namespace tokamak
