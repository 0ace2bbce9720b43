#include "driver/report/slowest_steps.h"

#include <algorithm>
#include <unordered_map>

namespace tokamak {

std::vector<size_t> SlowestKernelSteps(const CompileReport& report) {
  std::unordered_map<uint64_t, double> us;
  std::unordered_map<uint64_t, size_t> first;  // keeps equal steps together
  std::vector<size_t> order;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const StepReport& step = report.steps[i];
    if (step.kernels.empty()) continue;
    us[step.code] += step.us();
    first.try_emplace(step.code, i);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    uint64_t of_x = report.steps[x].code, of_y = report.steps[y].code;
    if (us[of_x] != us[of_y]) return us[of_x] > us[of_y];
    return first[of_x] < first[of_y];
  });
  return order;
}

}  // namespace tokamak
