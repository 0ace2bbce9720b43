#include "fusion/region_limits.h"

#include <fmt/format.h>

namespace tokamak {

std::string WhyTooLarge(const FusedRegion& region) {
  auto over = [](const char* what, int64_t is, int64_t most) {
    return fmt::format("{}: {}, {} at most", what, is, most);
  };
  if (region.instrs.size() > kMaxInstrs)
    return over("the region has too many instructions", static_cast<int64_t>(region.instrs.size()),
                static_cast<int64_t>(kMaxInstrs));
  if (region.inputs.size() > kMaxInputs)
    return over("the region reads too many arrays", static_cast<int64_t>(region.inputs.size()),
                static_cast<int64_t>(kMaxInputs));
  int64_t flops = 0;
  for (const Instr* instr : region.instrs) flops += instr->info().flops_per_element;
  return flops > kMaxOpsPerElement
             ? over("the region has too many operations per element", flops, kMaxOpsPerElement)
             : "";
}

}  // namespace tokamak
