#include "gen/gpu/warp_roles.h"

#include <algorithm>

namespace tokamak::gpu {
namespace {

// Registers of an SM, the granularity in which warpgroups give and take them, and the maximum of a
// thread that is a multiple of it (CUDA programming guide, compute capability 9.0).
constexpr int64_t kRegistersOfSm = 65536, kRegisterUnit = 8, kMaxThreadRegisters = 248;

}  // namespace

int64_t ConsumerRegisters(int64_t consumers, int64_t producer_registers) {
  int64_t left = kRegistersOfSm - producer_registers * kWarpgroupThreads;
  return std::min(left / consumers / kRegisterUnit * kRegisterUnit, kMaxThreadRegisters);
}

}  // namespace tokamak::gpu
