#include "kernel/sim_copies.h"

#include <algorithm>

#include <fmt/format.h>

namespace tokamak {
namespace {

// The alignment of the destination of a bulk copy in bytes (PTX ISA, cp.async.bulk.tensor).
constexpr int64_t kCopyDestinationAlignment = 128;

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
  TOK_RETURN_IF_ERROR(CheckDestination(*pending.copy, pending.to_index));
  for (uint32_t slot : request.coordinates)
    pending.at.push_back(static_cast<int64_t>(thread.slots[slot]));
  TOK_RETURN_IF_ERROR(CheckStart(*pending.copy, pending.at[0]));
  pending.issued = state_.clocks.OfThread(thread.agent.thread);
  state_.clocks.Tick(thread.agent.thread);
  pending_.push_back(std::move(pending));
  return Ok();
}

Status SimCopies::CheckDestination(const TileCopy& copy, int64_t to_index) const {
  const Array& to = state_.kernel.array(copy.to);
  if (to_index < 0 || to_index + copy.Elements() > to.size)
    return MakeError(ErrorCode::kKernelOutOfBounds,
                     fmt::format("copies to {}[{}] to {}[{}], which has {} elements", to.name,
                                 to_index, to.name, to_index + copy.Elements() - 1, to.size));
  int64_t alignment = copy.swizzled ? MatrixMultiply::kPanelAlignment : kCopyDestinationAlignment;
  if (to_index * BytesOf(to.type) % alignment == 0) return Ok();
  return MakeError(ErrorCode::kKernelAsync,
                   fmt::format("copies to {}[{}], which is not aligned to {} bytes", to.name,
                               to_index, alignment));
}

Status SimCopies::CheckStart(const TileCopy& copy, int64_t at) const {
  const Array& from = state_.kernel.array(copy.from);
  if (at * BytesOf(from.type) % TileCopy::kAlignment == 0) return Ok();
  return MakeError(ErrorCode::kKernelAsync,
                   fmt::format("copies a box of {} that starts at {} along its rows, which is not "
                               "a multiple of {} bytes",
                               from.name, at, TileCopy::kAlignment));
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
  std::vector<int64_t> in_box(copy.dimensions.size());
  for (int64_t element = 0; element < copy.Elements(); ++element) {
    int64_t from = 0;
    bool inside = true;
    for (size_t d = 0; d < in_box.size(); ++d) {
      int64_t at = pending.at[d] + in_box[d];
      inside = inside && at >= 0 && at < copy.dimensions[d].size;
      from += at * copy.dimensions[d].stride;
    }
    Bits value = 0;
    if (inside && !state_.memory->Read(agent, state_.ArrayOf(copy.from), from, value)) return false;
    int64_t to = pending.to_index + element;
    if (copy.swizzled) to = SwizzledByte(to * bytes) / bytes;
    if (!state_.memory->Store(agent, state_.ArrayOf(copy.to), to, value)) return false;
    for (size_t d = 0; d < in_box.size(); ++d) {
      if (++in_box[d] < copy.dimensions[d].box) break;
      in_box[d] = 0;
    }
  }
  return true;
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
