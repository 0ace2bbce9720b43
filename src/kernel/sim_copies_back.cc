#include "kernel/sim_copies_back.h"

#include <fmt/format.h>

#include "kernel/sim_tiles.h"

namespace tokamak {

SimCopiesBack::SimCopiesBack(SimAsyncState& state)
    : state_(state), warps_((state.clocks.threads() + kSimWarp - 1) / kSimWarp) {}

void SimCopiesBack::Begin() {
  for (Warp& warp : warps_) warp = {};
}

Status SimCopiesBack::Issue(const SimThread& thread, const SimOp& op,
                            std::span<const uint32_t> coordinates, uint32_t iterations) {
  uint32_t number = thread.agent.thread;
  Warp& warp = warps_[number / kSimWarp];
  if (warp.issued > 0 && warp.thread != number)
    return MakeError(ErrorCode::kKernelAsync,
                     fmt::format("starts a copy from shared memory, as thread {} of its warp does",
                                 warp.thread));
  Pending pending;
  pending.copy = &op.async->copy;
  pending.position = {number, thread.pc};
  pending.iterations = iterations;
  pending.from_index = static_cast<int64_t>(thread.slots[op.b.at]);
  for (uint32_t slot : coordinates) pending.at.push_back(static_cast<int64_t>(thread.slots[slot]));
  const TileCopy& copy = *pending.copy;
  TOK_RETURN_IF_ERROR(CheckTile(state_.kernel, copy, copy.from, pending.from_index));
  TOK_RETURN_IF_ERROR(CheckBoxStart(state_.kernel.array(copy.to), pending.at[0]));
  pending.issued = state_.clocks.OfThread(number);
  state_.clocks.Tick(number);
  warp.thread = number;
  pending.time = ++warp.issued;
  warp.pending.push_back(std::move(pending));
  return Ok();
}

Status SimCopiesBack::RunDue() {
  for (Warp& warp : warps_)
    for (Pending& pending : warp.pending) {
      if (pending.done || pending.iterations == SimAsyncState::kLatest) continue;
      if (pending.iterations > 0) {
        --pending.iterations;
      } else {
        TOK_RETURN_IF_ERROR(Run(pending));
      }
    }
  return Ok();
}

Status SimCopiesBack::Run(Pending& pending) {
  pending.done = true;
  state_.position = pending.position;
  const TileCopy& copy = *pending.copy;
  uint32_t thread = pending.position.thread;
  SimAgent reads{.block = state_.block,
                 .thread = thread,
                 .id = state_.clocks.CopiesBackOf(thread / kSimWarp),
                 .clock = &pending.issued,
                 .time = pending.time,
                 .work = "copy"};
  SimAgent stores = reads;
  stores.id = state_.clocks.StoresBackOf(thread / kSimWarp);
  state_.steps += copy.Elements();
  bool ok = ForBox(copy, pending.at, [&](int64_t element, bool inside, int64_t to) {
    if (!inside) return true;
    Bits value = 0;
    int64_t from = TileElement(copy, BytesOf(state_.kernel.array(copy.from).type),
                               pending.from_index, element);
    return state_.memory->Read(reads, state_.ArrayOf(copy.from), from, value) &&
           state_.memory->Store(stores, state_.ArrayOf(copy.to), to, value);
  });
  return ok ? Ok() : Status(state_.MemoryError());
}

Status SimCopiesBack::Await(const SimThread& thread, int64_t left) {
  uint32_t number = thread.agent.thread;
  Warp& warp = warps_[number / kSimWarp];
  if (warp.thread != number) return Ok();
  while (static_cast<int64_t>(warp.pending.size()) > left) {
    Pending& first = warp.pending.front();
    if (!first.done) TOK_RETURN_IF_ERROR(Run(first));
    state_.clocks.OfThread(number).seen[state_.clocks.CopiesBackOf(number / kSimWarp)] = first.time;
    warp.pending.pop_front();
  }
  return Ok();
}

Status SimCopiesBack::CheckAllAwaited() {
  for (const Warp& warp : warps_) {
    if (warp.pending.empty()) continue;
    state_.position = warp.pending.front().position;
    return MakeError(ErrorCode::kKernelAsync,
                     "starts a copy from shared memory for which it does not wait");
  }
  return Ok();
}

}  // namespace tokamak
