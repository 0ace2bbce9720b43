#include "kernel/sim_copies.h"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/sim_tiles.h"

namespace tokamak {
namespace {

// An f32 rounded to the nearest TF32, ties to even.
Bits RoundedToTf32(Bits bits) {
  constexpr Bits kDropped = ~MatrixMultiply::kTf32Mask & 0xffffffff, kMagnitude = 0x7fffffff,
                 kInfinity = 0x7f800000, kQuietNan = 0x7fc00000;
  if ((bits & kMagnitude) > kInfinity) return kQuietNan;
  Bits is_odd = (bits & (kDropped + 1)) != 0 ? 1 : 0;
  return (bits + kDropped / 2 + is_odd) & MatrixMultiply::kTf32Mask;
}

}  // namespace

void SimCopies::Begin() {
  pending_.clear();
  times_.assign(state_.mbarriers.count(), 0);
  positions_.assign(state_.mbarriers.count(), {});
}

Status SimCopies::Issue(const SimThread& thread, const SimOp& op, const Request& request) {
  Pending pending;
  pending.copy = &op.async->copy;
  pending.position = {thread.agent.thread, thread.pc};
  pending.mbarrier = request.mbarrier;
  pending.iterations = request.iterations;
  pending.to_index = static_cast<int64_t>(thread.slots[op.b.at]);
  const TileCopy& copy = *pending.copy;
  TOK_RETURN_IF_ERROR(CheckTile(state_.kernel, copy, copy.to, pending.to_index));
  for (uint32_t slot : request.coordinates)
    pending.at.push_back(static_cast<int64_t>(thread.slots[slot]));
  TOK_RETURN_IF_ERROR(CheckBoxStart(state_.kernel.array(copy.from), pending.at[0]));
  pending.issued = state_.clocks.OfThread(thread.agent.thread);
  state_.clocks.Tick(thread.agent.thread);
  pending_.push_back(std::move(pending));
  return Ok();
}

void SimCopies::CountIteration() {
  for (Pending& pending : pending_)
    if (pending.iterations != SimAsyncState::kLatest && pending.iterations > 0)
      --pending.iterations;
}

size_t SimCopies::FindDue() const {
  return static_cast<size_t>(std::ranges::find(pending_, uint32_t{0}, &Pending::iterations) -
                             pending_.begin());
}

Status SimCopies::Run(size_t number) {
  Pending pending = std::move(pending_[number]);
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(number));
  state_.position = positions_[pending.mbarrier] = pending.position;
  uint32_t time = ++times_[pending.mbarrier];
  uint32_t id = state_.clocks.CopiesTo(pending.mbarrier);
  SimAgent agent{.block = state_.block,
                 .thread = pending.position.thread,
                 .id = id,
                 .clock = &pending.issued,
                 .time = time,
                 .work = "copy"};
  state_.steps += pending.copy->Elements();
  if (!CopyElements(pending, agent)) return state_.MemoryError();
  int64_t bytes = pending.copy->Elements() * BytesOf(state_.kernel.array(pending.copy->to).type);
  return state_.mbarriers.Bring(pending.mbarrier, bytes, id, time);
}

bool SimCopies::CopyElements(const Pending& pending, const SimAgent& agent) {
  const TileCopy& copy = *pending.copy;
  int64_t bytes = BytesOf(state_.kernel.array(copy.to).type);
  return ForBox(copy, pending.at, [&](int64_t element, bool inside, int64_t from) {
    Bits value = 0;
    int64_t to = TileElement(copy, bytes, pending.to_index, element);
    if (inside && !state_.memory->Read(agent, state_.ArrayOf(copy.from), from, value)) return false;
    if (copy.tf32) value = RoundedToTf32(value);
    return state_.memory->Store(agent, state_.ArrayOf(copy.to), to, value);
  });
}

bool SimCopies::WillStore(uint32_t array, int64_t index) const {
  return std::ranges::any_of(pending_, [&](const Pending& pending) {
    return state_.ArrayOf(pending.copy->to) == array && index >= pending.to_index &&
           index < pending.to_index + pending.copy->Elements();
  });
}

Status SimCopies::CheckAllAwaited() {
  for (uint32_t m = 0; m < times_.size(); ++m) {
    uint32_t id = state_.clocks.CopiesTo(m), seen = 0;
    for (uint32_t t = 0; t < state_.clocks.threads(); ++t)
      seen = std::max(seen, state_.clocks.OfThread(t).seen[id]);
    if (seen >= times_[m]) continue;
    state_.position = positions_[m];
    return MakeError(
        ErrorCode::kKernelAsync,
        fmt::format("starts a copy to {} for which no thread waits", state_.mbarriers.NameOf(m)));
  }
  return Ok();
}

}  // namespace tokamak
