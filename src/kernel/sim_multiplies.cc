#include "kernel/sim_multiplies.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "kernel/sim_multiply.h"

namespace tokamak {
namespace {

bool Overlap(int64_t x, int64_t x_size, int64_t y, int64_t y_size) {
  return x < y + y_size && y < x + x_size;
}

}  // namespace

SimMultiplies::SimMultiplies(SimAsyncState& state)
    : state_(state), warpgroups_((state.clocks.threads() + kSimWarpgroup - 1) / kSimWarpgroup) {}

void SimMultiplies::Begin() {
  for (Warpgroup& warpgroup : warpgroups_) warpgroup = {};
}

Status SimMultiplies::Issue(std::span<const SimThread> threads, const SimOp& op,
                            uint32_t iterations) {
  const std::vector<Bits>& slots = threads[0].slots;
  uint32_t first = threads[0].agent.thread;
  Warpgroup& warpgroup = warpgroups_[first / kSimWarpgroup];
  state_.position = {first, threads[0].pc};
  TOK_RETURN_IF_ERROR(CheckOperands(threads, op));
  Pending pending;
  pending.op = &op;
  pending.position = state_.position;
  pending.time = warpgroup.issued + 1;
  pending.iterations = iterations;
  pending.to_at = static_cast<int64_t>(slots[op.a.at]);
  pending.lhs_at = static_cast<int64_t>(slots[op.b.at]);
  pending.rhs_at = static_cast<int64_t>(slots[op.c.at]);
  pending.depth = static_cast<int64_t>(slots[op.to]);
  TOK_RETURN_IF_ERROR(CheckAlignment(pending));
  TOK_RETURN_IF_ERROR(CheckRegisters(warpgroup, pending));
  pending.issued = state_.clocks.OfThread(first);
  for (uint32_t t = first + 1; t < first + kSimWarpgroup; ++t)
    pending.issued.Meet(state_.clocks.OfThread(t));
  pending.issued_by_thread = pending.issued;
  for (uint32_t t = first; t < first + kSimWarpgroup; ++t) {
    uint32_t time = state_.clocks.TimeOf(t);
    pending.issued_by_thread.seen[t] = pending.issued_by_thread.fenced[t] = time;
    state_.clocks.Tick(t);
  }
  ++warpgroup.issued;
  warpgroup.pending.push_back(std::move(pending));
  return Ok();
}

Status SimMultiplies::CheckOperands(std::span<const SimThread> threads, const SimOp& op) const {
  for (const SimThread& thread : threads)
    for (uint32_t slot : {op.a.at, op.b.at, op.c.at, op.to})
      if (thread.slots[slot] != threads[0].slots[slot])
        return MakeError(ErrorCode::kKernelDivergence,
                         fmt::format("multiplies other matrices than thread {} of its warpgroup",
                                     thread.agent.thread));
  return Ok();
}

Status SimMultiplies::CheckAlignment(const Pending& pending) const {
  const MatrixMultiply& product = *pending.op->product;
  std::pair<ArrayId, int64_t> operands[] = {{product.lhs, pending.lhs_at},
                                            {product.rhs, pending.rhs_at}};
  for (auto [id, index] : operands) {
    const Array& array = state_.kernel.array(id);
    if (array.space == Space::kRegisters ||
        index * BytesOf(array.type) % MatrixMultiply::kPanelAlignment == 0)
      continue;
    return MakeError(ErrorCode::kKernelAsync,
                     fmt::format("multiplies {}[{}], which is not aligned to {} bytes", array.name,
                                 index, MatrixMultiply::kPanelAlignment));
  }
  return Ok();
}

// Multiplies that accumulate in the same registers follow each other without an await. Another use
// of registers of an unfinished multiply is an error.
Status SimMultiplies::CheckRegisters(const Warpgroup& warpgroup, const Pending& pending) const {
  const MatrixMultiply& product = *pending.op->product;
  int64_t sums = AccumulatorsOfWarpgroupThread(product);
  uint32_t awaited = *std::ranges::min_element(warpgroup.awaited);
  for (const Pending& other : warpgroup.pending) {
    if (other.time <= awaited) continue;
    int64_t other_sums = AccumulatorsOfWarpgroupThread(*other.op->product);
    bool same_array = other.op->array == pending.op->array,
         same = same_array && other.to_at == pending.to_at && other_sums == sums;
    bool overlaps = !same && same_array && Overlap(other.to_at, other_sums, pending.to_at, sums);
    bool reads = static_cast<uint32_t>(product.lhs) == other.op->array &&
                 Overlap(other.to_at, other_sums, pending.lhs_at, pending.depth / 2);
    if (overlaps || reads)
      return MakeError(ErrorCode::kKernelRace,
                       fmt::format("multiplies with registers {} of an unfinished multiply",
                                   state_.kernel.arrays[other.op->array].name));
  }
  return Ok();
}

Status SimMultiplies::RunDue() {
  for (uint32_t number = 0; number < warpgroups_.size(); ++number) {
    std::deque<Pending>& pending = warpgroups_[number].pending;
    auto next = std::ranges::find(pending, false, &Pending::done);
    if (next == pending.end() || next->iterations == SimAsyncState::kLatest) continue;
    if (next->iterations > 0) {
      --next->iterations;
    } else {
      TOK_RETURN_IF_ERROR(Run(number, *next));
    }
  }
  return Ok();
}

Status SimMultiplies::RunUpTo(uint32_t number, uint32_t time) {
  for (Pending& pending : warpgroups_[number].pending)
    if (!pending.done && pending.time <= time) TOK_RETURN_IF_ERROR(Run(number, pending));
  return Ok();
}

Status SimMultiplies::Run(uint32_t number, Pending& pending) {
  pending.done = true;
  state_.position = pending.position;
  WarpgroupMultiply multiply;
  multiply.product = pending.op->product;
  multiply.to = ArrayId{pending.op->array};
  multiply.to_at = pending.to_at;
  multiply.lhs_at = pending.lhs_at;
  multiply.rhs_at = pending.rhs_at;
  multiply.depth = pending.depth;
  multiply.of_operands = {.block = state_.block,
                          .thread = number * kSimWarpgroup,
                          .id = state_.clocks.MultipliesOfWarpgroup(number),
                          .clock = &pending.issued,
                          .time = pending.time,
                          .work = "multiply"};
  for (uint32_t t = 0; t < kSimWarpgroup; ++t) {
    SimAgent& agent = multiply.of_threads[t];
    agent = multiply.of_operands;
    agent.thread += t;
    agent.id = state_.clocks.MultipliesOfWarp(agent.thread / kSimWarp);
    agent.clock = &pending.issued_by_thread;
  }
  const MatrixMultiply& product = *multiply.product;
  state_.steps += product.rows * product.columns * multiply.depth;
  bool ok = MultiplyOfWarpgroup(state_.kernel, multiply, state_.arrays, *state_.memory);
  return ok ? Ok() : Status(state_.MemoryError());
}

Status SimMultiplies::Await(std::span<const SimThread> warp, const SimOp& op) {
  uint32_t first = warp[0].agent.thread, number = first / kSimWarpgroup;
  Warpgroup& warpgroup = warpgroups_[number];
  uint32_t& awaited = warpgroup.awaited[first / kSimWarp % kSimWarpgroupWarps];
  // From the last one: leaves `number` multiplies into the array.
  int64_t left = op.async->number;
  auto last = std::ranges::find_if(
      warpgroup.pending.rbegin(), warpgroup.pending.rend(),
      [&](const Pending& pending) { return pending.op->array == op.array && left-- == 0; });
  if (last == warpgroup.pending.rend() || last->time <= awaited) return Ok();
  awaited = last->time;
  TOK_RETURN_IF_ERROR(RunUpTo(number, awaited));
  uint32_t id = state_.clocks.MultipliesOfWarp(first / kSimWarp);
  for (const SimThread& thread : warp)
    state_.clocks.OfThread(thread.agent.thread).seen[id] = awaited;
  uint32_t by_all = *std::ranges::min_element(warpgroup.awaited);
  while (!warpgroup.pending.empty() && warpgroup.pending.front().time <= by_all)
    warpgroup.pending.pop_front();
  return Ok();
}

Status SimMultiplies::CheckAllAwaited() {
  for (const Warpgroup& warpgroup : warpgroups_) {
    if (warpgroup.pending.empty()) continue;
    state_.position = warpgroup.pending.front().position;
    return MakeError(ErrorCode::kKernelAsync,
                     "starts a multiply that not all warps of the warpgroup await");
  }
  return Ok();
}

}  // namespace tokamak
