#include "kernel/sim_blocks.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "kernel/sim_multiply.h"

namespace tokamak {

BlockSimulator::BlockSimulator(const Kernel& kernel, const SimOptions& options)
    : kernel_(kernel),
      program_(DecodeKernel(kernel)),
      options_(options),
      draw_(options.seed.value_or(0)),
      decisions_(program_.decisions) {
  uint32_t threads = 1;
  for (const Loop& loop : kernel.loops)
    if (loop.role == LoopRole::kThread)
      threads *= static_cast<uint32_t>(kernel.node(loop.extent).bits);
  threads_.resize(threads);
}

bool BlockSimulator::CountBlocks(std::vector<int64_t> grid) {
  grid_ = std::move(grid);
  blocks_ = 1;
  for (int64_t extent : grid_) {
    auto count = static_cast<uint64_t>(std::max<int64_t>(extent, 0));
    if (count > 0 && blocks_ > kMaxSimulatedBlocks / count) return false;
    blocks_ *= count;
  }
  return true;
}

void BlockSimulator::Begin(SimMemory& memory, std::span<const uint32_t> arrays,
                           uint64_t first_block, std::span<const int64_t> extents) {
  memory_ = &memory;
  arrays_ = arrays;
  first_block_ = first_block;
  if (SimAsync::IsIn(program_))
    async_ = std::make_unique<SimAsync>(kernel_, program_, threads(), options_.seed);
  Prepare(extents);
}

bool BlockSimulator::SimulateBlock(uint64_t number) {
  block_epoch_ = 0;
  warp_epochs_.assign((threads_.size() + kSimWarp - 1) / kSimWarp, 0);
  for (std::vector<uint8_t>& decisions : decisions_) decisions.clear();
  auto block = static_cast<uint32_t>(first_block_ + number) + 1;
  if (async_ != nullptr) async_->Begin(*memory_, arrays_, block);
  memory_->OrderBy(async_ == nullptr ? nullptr : &async_->clocks());
  for (size_t t = 0; t < threads_.size(); ++t) {
    SimThread& thread = threads_[t];
    uint64_t rest = number;
    for (size_t i = grid_.size(); i-- > 0;) {
      auto extent = static_cast<uint64_t>(grid_[i]);
      thread.slots[program_.grid[i].slot] = rest % extent;
      rest /= extent;
    }
    thread.state = ThreadState::kReady;
    thread.pc = 0;
    thread.mask = 1;
    thread.masks.clear();
    thread.decided.assign(program_.decisions, 0);
    auto id = static_cast<uint32_t>(t);
    thread.agent = {.block = block, .thread = id, .warp = id / kSimWarp, .id = id};
    if (async_ != nullptr) thread.agent.clock = &async_->clocks().OfThread(id);
    thread.runs = 0;
    thread.waits = false;
  }
  return threads_.size() == 1 && async_ == nullptr ? RunSingleThread() : RunInterleaved();
}

void BlockSimulator::Prepare(std::span<const int64_t> extents) {
  for (size_t i = 0; i < extents.size(); ++i)
    if (program_.extents[i] != UINT32_MAX)
      program_.slots[program_.extents[i]] = static_cast<Bits>(extents[i]);
  for (size_t t = 0; t < threads_.size(); ++t) {
    SimThread& thread = threads_[t];
    thread.slots = program_.slots;
    thread.decided.resize(program_.decisions);
    auto rest = static_cast<int64_t>(t);
    for (size_t i = program_.thread.size(); i-- > 0;) {
      const SimProgram::Parallel& loop = program_.thread[i];
      int64_t extent = IntOfBits(ScalarType::kIndex, kernel_.node(loop.extent).bits);
      thread.slots[loop.slot] = static_cast<Bits>(rest % extent);
      rest /= extent;
    }
  }
}

// ---- thread blocks

bool BlockSimulator::RunSingleThread() {
  SimThread& thread = threads_[0];
  while (thread.state != ThreadState::kDone) {
    if (!RunThread(thread)) return false;
    if (thread.state != ThreadState::kDone && !SyncBlock()) return false;
  }
  return true;
}

bool BlockSimulator::RunInterleaved() {
  std::vector<uint32_t> ready(threads_.size());
  for (;;) {
    if (async_ != nullptr && !RunAsync()) return false;
    ready.clear();
    for (size_t t = 0; t < threads_.size(); ++t)
      if (threads_[t].state == ThreadState::kReady) ready.push_back(static_cast<uint32_t>(t));
    if (ready.empty()) {
      if (AllDone()) return async_ == nullptr || Succeeded(async_->Finish());
      if (!SyncBlock()) return false;
      continue;
    }
    if (options_.seed) {
      // Run all ready threads in random order, so that a scheduling step is not a scan over all
      // threads.
      for (size_t i = 0; i < ready.size(); ++i) {
        std::swap(ready[i], ready[i + draw_.Next() % (ready.size() - i)]);
        if (!RunThread(threads_[ready[i]])) return false;
      }
    } else {
      for (uint32_t t : ready)
        if (!RunThread(threads_[t])) return false;
    }
  }
}

bool BlockSimulator::AllDone() const {
  for (const SimThread& thread : threads_)
    if (thread.state != ThreadState::kDone) return false;
  return true;
}

// ---- threads

bool BlockSimulator::RunThread(SimThread& thread) {
  const SimOp* ops = program_.ops.data();
  Bits* slots = thread.slots.data();
  for (;;) {
    const SimOp& op = ops[thread.pc];
    if (++steps_ > options_.max_steps)
      return FailAt(thread, ErrorCode::kKernelSteps,
                    fmt::format("runs for more than {} steps", options_.max_steps));
    switch (op.kind) {
      case SimKind::kCompute:
        op.compute(op, slots);
        break;
      case SimKind::kChecked:
        if (!Checked(thread, op)) return false;
        break;
      case SimKind::kLoad:
      case SimKind::kRead:
        if (!ReadElements(thread, op)) return false;
        break;
      case SimKind::kStore:
        if (!StoreElements(thread, op)) return false;
        break;
      case SimKind::kMultiply:
        if (!Multiply(thread, op)) return false;
        break;
      case SimKind::kLoop:
        slots[op.to] = 0;
        if (static_cast<int64_t>(slots[op.a.at]) > 0) break;
        thread.pc = op.target;
        continue;
      case SimKind::kNext:
        if (++slots[op.to] >= slots[op.a.at]) break;
        thread.pc = op.target;
        continue;
      case SimKind::kJump:
        thread.pc = op.target;
        continue;
      case SimKind::kBarrier:
        thread.state =
            op.scope == BarrierScope::kBlock ? ThreadState::kAtBlock : ThreadState::kAtWarp;
        return true;
      case SimKind::kEnd:
        thread.state = ThreadState::kDone;
        return true;
      case SimKind::kAsync:
        if (!ExecuteAsync(thread, op)) return false;
        if (thread.state != ThreadState::kReady) return true;
        break;
      case SimKind::kAsyncMultiply:
        thread.state = ThreadState::kAtWarpgroup;
        return true;
      case SimKind::kShuffle:
        if (op.under_vector) {
          if (!ShuffleLanes(thread, op)) return false;
          break;
        }
        thread.state = ThreadState::kAtWarp;
        return true;
      default:
        if (!Branch(thread, op)) return false;
        continue;
    }
    ++thread.pc;
    if (threads_.size() > 1 && MayYield(op)) return true;
  }
}

bool BlockSimulator::MayYield(const SimOp& op) {
  if (op.kind != SimKind::kRead && op.kind != SimKind::kStore && op.kind != SimKind::kAsync)
    return false;
  bool is_seen = op.kind == SimKind::kAsync || memory_->IsShared(arrays_[op.array]);
  return is_seen && (!options_.seed || draw_.Next() % 4 == 0);
}

bool BlockSimulator::Branch(SimThread& thread, const SimOp& op) {
  uint32_t next = thread.pc + 1;
  switch (op.kind) {
    case SimKind::kVector:
      thread.mask = op.lanes == 64 ? ~uint64_t{0} : (uint64_t{1} << op.lanes) - 1;
      thread.agent.run = ++thread.runs;
      break;
    case SimKind::kVectorEnd:
      thread.mask = 1;
      thread.agent.run = 0;
      break;
    case SimKind::kUnless: {
      bool holds = thread.slots[op.a.at] != 0;
      if (op.uniform && !CheckUniform(thread, op, holds)) return false;
      if (!holds) next = op.target;
      break;
    }
    case SimKind::kMaskIf:
      thread.masks.push_back(thread.mask);
      thread.mask &= MaskOf(thread, op.a, op.lanes);
      if (thread.mask == 0) next = op.target;
      break;
    case SimKind::kMaskElse:
      thread.mask = thread.masks.back() & ~MaskOf(thread, op.a, op.lanes);
      if (thread.mask == 0) next = op.target;
      break;
    case SimKind::kMaskBegin:
      thread.masks.push_back(thread.mask);
      break;
    case SimKind::kMaskWhile:
      thread.mask &= MaskOf(thread, op.a, op.lanes);
      if (thread.mask == 0) next = op.target;
      break;
    default:  // kMaskEnd
      thread.mask = thread.masks.back();
      thread.masks.pop_back();
  }
  thread.pc = next;
  return true;
}

uint64_t BlockSimulator::MaskOf(const SimThread& thread, SimOperand condition, uint32_t lanes) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < lanes; ++i)
    if (thread.slots[condition.at + i * condition.step] != 0) mask |= uint64_t{1} << i;
  return mask;
}

bool BlockSimulator::CheckUniform(SimThread& thread, const SimOp& op, bool holds) {
  if (threads_.size() == 1) return true;
  std::vector<uint8_t>& decisions = decisions_[op.decision];
  uint32_t time = thread.decided[op.decision]++;
  if (time >= decisions.size()) {
    decisions.push_back(holds ? 1 : 0);
    return true;
  }
  if ((decisions[time] != 0) == holds) return true;
  return FailAt(
      thread, ErrorCode::kKernelDivergence,
      "takes another branch than other threads where the kernel states a uniform condition");
}

template <typename Body>
bool BlockSimulator::EachLane(const SimThread& thread, const SimOp& op, Body&& body) {
  if (op.lanes == 1) return body(0);
  for (uint64_t left = thread.mask; left != 0; left &= left - 1)
    if (!body(static_cast<uint32_t>(std::countr_zero(left)))) return false;
  return true;
}

bool BlockSimulator::Checked(SimThread& thread, const SimOp& op) {
  bool divides = op.prim == Prim::kDiv || op.prim == Prim::kRem;
  return EachLane(thread, op, [&](uint32_t lane) {
    Bits* slots = thread.slots.data();
    Bits operands[] = {slots[op.a.at + lane * op.a.step], slots[op.b.at + lane * op.b.step],
                       slots[op.c.at + lane * op.c.step]};
    std::optional<Bits> result = EvaluatePrim(op.prim, op.type, op.from, operands);
    if (!result && divides)
      return FailAt(thread, ErrorCode::kKernelOpenResult,
                    fmt::format("divides {} by {}", IntOfBits(op.type, operands[0]),
                                IntOfBits(op.type, operands[1])));
    Bits bits = result.value_or(0);
    auto value = static_cast<int64_t>(bits);
    slots[op.to + lane] = bits;
    if (op.type == ScalarType::kIndex && kernel_.index_bits == 32 &&
        value != static_cast<int32_t>(value))
      return FailAt(thread, ErrorCode::kKernelOpenResult,
                    fmt::format("an index is {}, which does not fit 32 bits", value));
    return true;
  });
}

bool BlockSimulator::ReadElements(SimThread& thread, const SimOp& op) {
  bool for_all = op.under_vector && op.lanes == 1;
  return EachLane(thread, op, [&](uint32_t lane) {
    thread.agent.lane = for_all ? kAllLanes : static_cast<uint16_t>(lane);
    auto index = static_cast<int64_t>(thread.slots[op.a.at + lane * op.a.step]);
    if (memory_->Read(thread.agent, arrays_[op.array], index, thread.slots[op.to + lane]))
      return true;
    return FailAt(thread, memory_->error_code(), memory_->error_text());
  });
}

bool BlockSimulator::StoreElements(SimThread& thread, const SimOp& op) {
  uint32_t copies = op.under_vector ? 1 : program_.copies[op.array];
  uint32_t run = thread.agent.run;
  if (op.lanes == 1) thread.agent.run = 0;
  bool ok = EachLane(thread, op, [&](uint32_t lane) {
    auto index = static_cast<int64_t>(thread.slots[op.a.at + lane * op.a.step]);
    Bits value = thread.slots[op.b.at + lane * op.b.step];
    for (uint32_t copy = 0; copy < copies; ++copy) {
      thread.agent.lane = static_cast<uint16_t>(lane + copy);
      if (!memory_->Store(thread.agent, arrays_[op.array], index, value))
        return FailAt(thread, memory_->error_code(), memory_->error_text());
    }
    return true;
  });
  thread.agent.run = run;
  return ok;
}

bool BlockSimulator::Multiply(SimThread& thread, const SimOp& op) {
  steps_ += MultiplicationsOf(op, thread.slots);
  return MultiplyMatrices(kernel_, op, thread.agent, thread.slots, arrays_, *memory_) ||
         FailAt(thread, memory_->error_code(), memory_->error_text());
}

bool BlockSimulator::ShuffleLanes(SimThread& thread, const SimOp& op) {
  if (op.lanes == 1) {  // uniform across lanes
    thread.slots[op.to] = thread.slots[op.a.at];
    return true;
  }
  return EachLane(thread, op, [&](uint32_t lane) {
    uint64_t from = lane ^ thread.slots[op.b.at + lane * op.b.step];
    if (from >= op.lanes || (thread.mask >> from & 1) == 0)
      return FailAt(thread, ErrorCode::kKernelOutOfBounds,
                    fmt::format("shuffles from lane {}, which does not exist", from));
    thread.slots[op.to + lane] = thread.slots[op.a.at + from * op.a.step];
    return true;
  });
}

// ---- errors

bool BlockSimulator::FailAt(SimPosition at, ErrorCode code, const std::string& what) {
  if (code == ErrorCode::kKernelUninitialized && async_ != nullptr && async_->ReadTooSoon())
    return FailAt(at, ErrorCode::kKernelRace,
                  what + " because a copy to it has not happened, without a wait for it");
  const SimThread& thread = threads_[at.thread];
  std::string who = fmt::format("block {}", thread.agent.block - 1);
  if (threads_.size() > 1) who += fmt::format(", thread {}", thread.agent.thread);
  if (thread.agent.run != 0 && thread.agent.lane != kAllLanes)
    who += fmt::format(", lane {}", thread.agent.lane);
  error_ = MakeError(code, fmt::format("kernel {}: {} {}", kernel_.name, who, what));
  const SimOp& op = program_.ops[at.pc];
  KernelLocations written;
  std::string text = WriteKernel(kernel_, &written);
  auto position = [&](const KernelLocations& locations) {
    return op.value != kNoValue ? locations.OfValue(op.value) : locations.OfStmt(op.stmt);
  };
  error_.where = position(options_.locations != nullptr ? *options_.locations : written);
  size_t begin = 0;
  for (int line = position(written).line; line > 1; --line) begin = text.find('\n', begin) + 1;
  begin = text.find_first_not_of(' ', begin);
  if (position(written).line > 0)
    error_.notes.push_back("in " + text.substr(begin, text.find('\n', begin) - begin));
  return false;
}

}  // namespace tokamak
