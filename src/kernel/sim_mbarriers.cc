#include "kernel/sim_mbarriers.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

// The transaction count of an mbarrier phase lies in -kMaxMbarrierBytes .. kMaxMbarrierBytes (PTX
// ISA, mbarrier).
constexpr int64_t kMaxMbarrierBytes = (int64_t{1} << 20) - 1;

}  // namespace

SimMbarriers::SimMbarriers(const Kernel& kernel) : kernel_(kernel) {
  for (size_t array = 0; array < kernel.arrays.size(); ++array) {
    first_.push_back(count());
    if (kernel.arrays[array].space != Space::kMbarrier) continue;
    for (int64_t i = 0; i < kernel.arrays[array].size; ++i) {
      Mbarrier& mbarrier = mbarriers_.emplace_back();
      mbarrier.array = static_cast<uint32_t>(array);
      mbarrier.index = i;
      mbarrier.arrivals = kernel.arrays[array].arrivals;
    }
  }
}

void SimMbarriers::Begin(size_t agents) {
  for (Mbarrier& mbarrier : mbarriers_) {
    mbarrier.phase = 0;
    mbarrier.missing = mbarrier.arrivals;
    mbarrier.bytes = mbarrier.waiting = mbarrier.resuming = 0;
    mbarrier.completed.Reset(agents);
    mbarrier.current.Reset(agents);
  }
}

Result<uint32_t> SimMbarriers::Find(uint32_t array, int64_t index) const {
  if (index >= 0 && index < kernel_.arrays[array].size)
    return first_[array] + static_cast<uint32_t>(index);
  return MakeError(ErrorCode::kKernelOutOfBounds,
                   fmt::format("uses {}[{}], which has {} elements", kernel_.arrays[array].name,
                               index, kernel_.arrays[array].size));
}

std::string SimMbarriers::NameOf(uint32_t mbarrier) const {
  const Mbarrier& state = mbarriers_[mbarrier];
  return fmt::format("{}[{}]", kernel_.arrays[state.array].name, state.index);
}

Status SimMbarriers::Arrive(uint32_t mbarrier, const VectorClock& clock, int64_t bytes) {
  Mbarrier& state = mbarriers_[mbarrier];
  if (state.missing == 0)
    return MakeError(ErrorCode::kKernelAsync,
                     fmt::format("arrives at {}, whose phase {} has all its {} arrivals",
                                 NameOf(mbarrier), state.phase, state.arrivals));
  TOK_RETURN_IF_ERROR(ExpectBytes(mbarrier, bytes));
  state.current.Join(clock);
  --state.missing;
  return CompleteIfDone(mbarrier);
}

Status SimMbarriers::Bring(uint32_t mbarrier, int64_t bytes, uint32_t copies, uint32_t time) {
  TOK_RETURN_IF_ERROR(ExpectBytes(mbarrier, -bytes));
  mbarriers_[mbarrier].current.seen[copies] = time;
  return CompleteIfDone(mbarrier);
}

Status SimMbarriers::ExpectBytes(uint32_t mbarrier, int64_t bytes) {
  int64_t& expected = mbarriers_[mbarrier].bytes;
  expected += bytes;
  if (expected <= kMaxMbarrierBytes && expected >= -kMaxMbarrierBytes) return Ok();
  return MakeError(ErrorCode::kKernelAsync,
                   fmt::format("makes {} expect {} bytes, more than an mbarrier can count",
                               NameOf(mbarrier), expected));
}

Status SimMbarriers::CompleteIfDone(uint32_t mbarrier) {
  Mbarrier& state = mbarriers_[mbarrier];
  if (state.missing > 0 || state.bytes != 0) return Ok();
  // A thread that polls sees only the parity of the current phase.
  if (state.resuming > 0)
    return MakeError(ErrorCode::kKernelAsync,
                     fmt::format("completes phase {} of {} although {} threads still wait for "
                                 "phase {}, which they can miss",
                                 state.phase, NameOf(mbarrier), state.resuming, state.phase - 1));
  state.completed.Join(state.current);
  ++state.phase;
  state.missing = state.arrivals;
  state.resuming = state.waiting;
  state.waiting = 0;
  return Ok();
}

std::string SimMbarriers::Incomplete(uint32_t mbarrier) const {
  const Mbarrier& state = mbarriers_[mbarrier];
  std::string lacks = fmt::format("{} of {} arrivals", state.missing, state.arrivals);
  if (state.bytes > 0) lacks += fmt::format(" and {} bytes", state.bytes);
  if (state.bytes < 0)
    lacks += fmt::format(", and has {} bytes that are not expected", -state.bytes);
  return fmt::format("phase {} of {}, which lacks {}", state.phase, NameOf(mbarrier), lacks);
}

}  // namespace tokamak
