#include "kernel/sim_async.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tokamak {
namespace {

// Iterations of the scheduler until random asynchronous work happens, if it does not wait until no
// thread can run. Chosen: with more, most copies of a small kernel would happen at the latest time.
constexpr uint64_t kMostIterations = 16;
// One in so many copies and multiplies happens at the latest time (chosen).
constexpr uint64_t kLatestShare = 4;

}  // namespace

SimAsync::SimAsync(const Kernel& kernel, const SimProgram& program, uint32_t threads,
                   std::optional<uint64_t> seed)
    : program_(program),
      state_(kernel, threads),
      copies_(state_),
      copies_back_(state_),
      multiplies_(state_),
      is_random_(seed.has_value()),
      draw_(seed.value_or(0)) {}

bool SimAsync::IsIn(const SimProgram& program) {
  return std::ranges::any_of(program.ops, [](const SimOp& op) {
    return op.kind == SimKind::kAsync || op.kind == SimKind::kAsyncMultiply;
  });
}

void SimAsync::Begin(SimMemory& memory, std::span<const uint32_t> arrays, uint32_t block) {
  state_.memory = &memory;
  state_.arrays = arrays;
  state_.block = block;
  state_.clocks.Begin();
  state_.mbarriers.Begin(state_.clocks.agents());
  copies_.Begin();
  copies_back_.Begin();
  multiplies_.Begin();
}

int64_t SimAsync::TakeSteps() {
  return std::exchange(state_.steps, 0);
}

uint32_t SimAsync::DrawIterations() {
  if (!is_random_ || draw_.Next() % kLatestShare == 0) return SimAsyncState::kLatest;
  return static_cast<uint32_t>(draw_.Next() % kMostIterations);
}

Status SimAsync::Execute(SimThread& thread, const SimOp& op) {
  uint32_t number = thread.agent.thread;
  state_.position = {number, thread.pc};
  uint32_t mbarrier = 0;
  AsyncKind kind = op.async->kind;
  if (HasMbarrier(kind)) {
    auto index = static_cast<int64_t>(thread.slots[op.a.at]);
    TOK_TRY(mbarrier, state_.mbarriers.Find(op.array, index));
  }
  switch (kind) {
    case AsyncKind::kArrive:
      TOK_RETURN_IF_ERROR(
          state_.mbarriers.Arrive(mbarrier, state_.clocks.OfThread(number), op.async->number));
      state_.clocks.Tick(number);
      break;
    case AsyncKind::kWait:
      return Wait(thread, op, mbarrier);
    case AsyncKind::kCopy: {
      std::span<const uint32_t> coordinates(program_.coordinates);
      return copies_.Issue(thread, op,
                           {mbarrier, DrawIterations(),
                            coordinates.subspan(op.c.at, op.async->copy.dimensions.size())});
    }
    case AsyncKind::kCopyBack: {
      std::span<const uint32_t> coordinates(program_.coordinates);
      return copies_back_.Issue(thread, op,
                                coordinates.subspan(op.c.at, op.async->copy.dimensions.size()),
                                DrawIterations());
    }
    case AsyncKind::kWaitCopies:
      return copies_back_.Await(thread, op.async->number);
    case AsyncKind::kWaitMultiplies:
      thread.state = ThreadState::kAtWarp;
      break;
    case AsyncKind::kFence:
      state_.clocks.Fence(number);
      break;
    case AsyncKind::kRegisters:
      break;
  }
  return Ok();
}

Status SimAsync::Wait(SimThread& thread, const SimOp& op, uint32_t mbarrier) {
  Bits parity = thread.slots[op.b.at];
  if (parity > 1)
    return MakeError(ErrorCode::kKernelAsync,
                     fmt::format("waits for a phase of {} with parity {}",
                                 state_.mbarriers.NameOf(mbarrier), static_cast<int64_t>(parity)));
  if (!state_.mbarriers.IsComplete(mbarrier, parity)) {
    thread.state = ThreadState::kAtMbarrier;
    thread.waits = true;
    thread.mbarrier = mbarrier;
    thread.phase = state_.mbarriers.PhaseOf(mbarrier);
    state_.mbarriers.BeginWait(mbarrier);
    return Ok();
  }
  if (thread.waits) state_.mbarriers.EndWait(mbarrier);
  thread.waits = false;
  state_.clocks.OfThread(thread.agent.thread).Join(state_.mbarriers.Completed(mbarrier));
  return Ok();
}

Status SimAsync::Await(std::span<const SimThread> warp, const SimOp& op) {
  state_.position = {warp[0].agent.thread, warp[0].pc};
  return multiplies_.Await(warp, op);
}

Status SimAsync::Multiply(std::span<const SimThread> warpgroup, const SimOp& op) {
  return multiplies_.Issue(warpgroup, op, DrawIterations());
}

Status SimAsync::RunDue() {
  if (!is_random_) return Ok();
  copies_.CountIteration();
  for (size_t due = copies_.FindDue(); due < copies_.pending(); due = copies_.FindDue())
    TOK_RETURN_IF_ERROR(copies_.Run(due));
  TOK_RETURN_IF_ERROR(copies_back_.RunDue());
  return multiplies_.RunDue();
}

Status SimAsync::RunCopy() {
  return copies_.Run(is_random_ ? draw_.Next() % copies_.pending() : 0);
}

std::string SimAsync::WaitOf(const SimThread& thread) const {
  return "waits for " + state_.mbarriers.Incomplete(thread.mbarrier);
}

Status SimAsync::Finish() {
  while (copies_.IsPending()) TOK_RETURN_IF_ERROR(RunCopy());
  TOK_RETURN_IF_ERROR(copies_.CheckAllAwaited());
  TOK_RETURN_IF_ERROR(copies_back_.CheckAllAwaited());
  return multiplies_.CheckAllAwaited();
}

}  // namespace tokamak
