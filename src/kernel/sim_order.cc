#include "kernel/sim_order.h"

#include <fmt/format.h>

namespace tokamak {

std::string ThreadNameOf(const AccessCell& cell) {
  std::string name = fmt::format("thread {}", cell.thread);
  if (cell.run != 0 && cell.lane != kAllLanes) name += fmt::format(", lane {}", cell.lane);
  return name;
}

std::string EpochOrder::NameOf(const AccessCell& cell) {
  if (cell.thread == kSeveral || (cell.thread & kOfWarp) != 0) return "other threads";
  return fmt::format("block {}, {}", cell.block - 1, ThreadNameOf(cell));
}

}  // namespace tokamak
