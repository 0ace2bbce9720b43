#include "kernel/simulate.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "kernel/sim_memory.h"
#include "kernel/sim_multiply.h"
#include "kernel/sim_program.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

constexpr uint32_t kMaxTeams = UINT32_MAX - 2;

enum class ThreadState : uint8_t { kReady, kAtBlock, kAtWarp, kDone };

struct SimThread {
  ThreadState state = ThreadState::kReady;
  uint32_t pc = 0;
  std::vector<Bits> slots;
  uint64_t mask = 1;            // lanes that are live
  std::vector<uint64_t> masks;  // of the blocks around
  SimAgent agent;
  uint32_t runs = 0;              // of vector loops, so far
  std::vector<uint32_t> decided;  // per uniform decision, how often
};

// The arrays of all kernels of a launch, arguments first.
struct LaunchArrays {
  Kernel kernel;  // has nothing but arrays
  std::vector<SimArgument> arguments;
  std::vector<uint32_t> copies;
  std::vector<std::vector<uint32_t>> numbers;  // by part: where its arrays are among them
};

// Runs the teams of one kernel.
class Simulator {
 public:
  Simulator(const Kernel& kernel, const SimOptions& options)
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

  const SimProgram& program() const { return program_; }
  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()); }
  uint64_t teams() const { return teams_; }
  int64_t steps() const { return steps_; }

  // How many teams it has. False when they are too many.
  bool CountTeams(std::vector<int64_t> grid) {
    grid_ = std::move(grid);
    teams_ = 1;
    for (int64_t extent : grid_) {
      auto count = static_cast<uint64_t>(std::max<int64_t>(extent, 0));
      if (count > 0 && teams_ > kMaxTeams / count) return false;
      teams_ *= count;
    }
    return true;
  }

  // `arrays`: where its arrays are in the memory. `first_team`: its number in the launch.
  void Begin(SimMemory& memory, std::span<const uint32_t> arrays, uint64_t first_team,
             std::span<const int64_t> extents) {
    memory_ = &memory;
    arrays_ = arrays;
    first_team_ = first_team;
    Prepare(extents);
  }

  // False after a fault.
  bool RunTeam(uint64_t number) {
    block_epoch_ = 0;
    warp_epochs_.assign((threads_.size() + kSimWarp - 1) / kSimWarp, 0);
    for (std::vector<uint8_t>& decisions : decisions_) decisions.clear();
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
      thread.agent = {.team = static_cast<uint32_t>(first_team_ + number) + 1,
                      .thread = static_cast<uint32_t>(t),
                      .warp = static_cast<uint32_t>(t) / kSimWarp};
      thread.runs = 0;
    }
    return threads_.size() == 1 ? RunAlone() : RunTogether();
  }

  Error Fault() { return std::move(error_); }

 private:
  void Prepare(std::span<const int64_t> extents) {
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

  // ---- teams

  bool RunAlone() {
    SimThread& thread = threads_[0];
    while (thread.state != ThreadState::kDone) {
      if (!RunThread(thread)) return false;
      if (thread.state != ThreadState::kDone && !Meet()) return false;
    }
    return true;
  }

  bool RunTogether() {
    std::vector<uint32_t> ready(threads_.size());
    for (;;) {
      ready.clear();
      for (size_t t = 0; t < threads_.size(); ++t)
        if (threads_[t].state == ThreadState::kReady) ready.push_back(static_cast<uint32_t>(t));
      if (ready.empty()) {
        if (AllDone()) return true;
        if (!Meet()) return false;
        continue;
      }
      if (options_.seed) {
        // Some at a time, so that each turn is not a walk over all.
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

  bool AllDone() const {
    for (const SimThread& thread : threads_)
      if (thread.state != ThreadState::kDone) return false;
    return true;
  }

  // Every thread waits or is done: lets those go on that have all come.
  bool Meet() {
    bool any = false, all = true;
    for (const SimThread& thread : threads_)
      all = all && thread.state == ThreadState::kAtBlock && thread.pc == threads_[0].pc;
    if (all) {
      ++block_epoch_;
      for (uint32_t& epoch : warp_epochs_) ++epoch;
      for (SimThread& thread : threads_) Release(thread);
      return true;
    }
    for (size_t warp = 0; warp < warp_epochs_.size(); ++warp) {
      std::span<SimThread> lanes = Warp(warp);
      bool met = true;
      for (const SimThread& thread : lanes)
        met = met && thread.state == ThreadState::kAtWarp && thread.pc == lanes[0].pc;
      if (!met) continue;
      any = true;
      if (!MeetWarp(warp, lanes)) return false;
    }
    return any || Diverged();
  }

  std::span<SimThread> Warp(size_t number) {
    size_t begin = number * kSimWarp;
    return std::span(threads_).subspan(begin, std::min<size_t>(kSimWarp, threads_.size() - begin));
  }

  void Release(SimThread& thread) {
    thread.state = ThreadState::kReady;
    thread.agent.block_epoch = block_epoch_;
    thread.agent.warp_epoch = warp_epochs_[thread.agent.warp];
    ++thread.pc;
  }

  bool MeetWarp(size_t warp, std::span<SimThread> lanes) {
    const SimOp& op = program_.ops[lanes[0].pc];
    if (op.kind == SimKind::kBarrier) {
      ++warp_epochs_[warp];
    } else if (op.prim == Prim::kMatch) {
      Bits mask = (Bits{1} << lanes[0].slots[op.b.at]) - 1;
      for (SimThread& thread : lanes) {
        Bits alike = 0;
        for (size_t i = 0; i < lanes.size(); ++i)
          if (((lanes[i].slots[op.a.at] ^ thread.slots[op.a.at]) & mask) == 0)
            alike |= Bits{1} << i;
        thread.slots[op.to] = alike;
      }
    } else {
      std::vector<Bits> values;
      for (const SimThread& thread : lanes) values.push_back(thread.slots[op.a.at]);
      for (size_t i = 0; i < lanes.size(); ++i) {
        uint64_t from = i ^ lanes[i].slots[op.b.at];
        if (from >= values.size())
          return FaultAt(lanes[i], ErrorCode::kKernelOutOfBounds,
                         fmt::format("shuffles from lane {} of a warp of {}", from, values.size()));
        lanes[i].slots[op.to] = values[from];
      }
    }
    for (SimThread& thread : lanes) Release(thread);
    return true;
  }

  bool Diverged() {
    const SimThread* waits = nullptr;
    for (const SimThread& thread : threads_)
      if (thread.state != ThreadState::kDone && waits == nullptr) waits = &thread;
    bool block = waits->state == ThreadState::kAtBlock;
    size_t missing = 0, others = 0;
    for (const SimThread& thread : threads_) {
      if (!block && thread.agent.warp != waits->agent.warp) continue;
      if (thread.pc != waits->pc || thread.state != waits->state) missing = thread.agent.thread;
      others += thread.pc != waits->pc || thread.state != waits->state ? 1 : 0;
    }
    return FaultAt(*waits, ErrorCode::kKernelDivergence,
                   fmt::format("waits for {} threads of its {} that do not come, thread {} among "
                               "them",
                               others, block ? "block" : "warp", missing));
  }

  // ---- threads

  // Runs until it ends, waits or makes way.
  bool RunThread(SimThread& thread) {
    const SimOp* ops = program_.ops.data();
    Bits* slots = thread.slots.data();
    for (;;) {
      const SimOp& op = ops[thread.pc];
      if (++steps_ > options_.max_steps)
        return FaultAt(thread, ErrorCode::kKernelSteps,
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
          thread.state = op.scope == Scope::kBlock ? ThreadState::kAtBlock : ThreadState::kAtWarp;
          return true;
        case SimKind::kEnd:
          thread.state = ThreadState::kDone;
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
      if (threads_.size() > 1 && MakesWay(op)) return true;
    }
  }

  bool MakesWay(const SimOp& op) {
    if (op.kind != SimKind::kRead && op.kind != SimKind::kStore) return false;
    return memory_->IsShared(arrays_[op.array]) && (!options_.seed || draw_.Next() % 4 == 0);
  }

  // The operations that decide where to go on, and for which lanes.
  bool Branch(SimThread& thread, const SimOp& op) {
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
        if (op.uniform && !Agree(thread, op, holds)) return false;
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

  static uint64_t MaskOf(const SimThread& thread, SimOperand condition, uint32_t lanes) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < lanes; ++i)
      if (thread.slots[condition.at + i * condition.step] != 0) mask |= uint64_t{1} << i;
    return mask;
  }

  // The n-th time that a thread comes to a uniform decision, it decides as the others did.
  bool Agree(SimThread& thread, const SimOp& op, bool holds) {
    if (threads_.size() == 1) return true;
    std::vector<uint8_t>& decisions = decisions_[op.decision];
    uint32_t time = thread.decided[op.decision]++;
    if (time >= decisions.size()) {
      decisions.push_back(holds ? 1 : 0);
      return true;
    }
    if ((decisions[time] != 0) == holds) return true;
    return FaultAt(thread, ErrorCode::kKernelDivergence,
                   "decides otherwise than other threads where the kernel says uniform");
  }

  template <typename Body>
  static bool EachLane(const SimThread& thread, const SimOp& op, Body&& body) {
    if (op.lanes == 1) return body(0);
    for (uint64_t left = thread.mask; left != 0; left &= left - 1)
      if (!body(static_cast<uint32_t>(std::countr_zero(left)))) return false;
    return true;
  }

  bool Checked(SimThread& thread, const SimOp& op) {
    bool divides = op.prim == Prim::kDiv || op.prim == Prim::kRem;
    return EachLane(thread, op, [&](uint32_t lane) {
      Bits* slots = thread.slots.data();
      Bits operands[] = {slots[op.a.at + lane * op.a.step], slots[op.b.at + lane * op.b.step],
                         slots[op.c.at + lane * op.c.step]};
      std::optional<Bits> result = EvaluatePrim(op.prim, op.type, op.from, operands);
      if (!result && divides)
        return FaultAt(thread, ErrorCode::kKernelOpenResult,
                       fmt::format("divides {} by {}", IntOfBits(op.type, operands[0]),
                                   IntOfBits(op.type, operands[1])));
      Bits bits = result.value_or(0);
      auto value = static_cast<int64_t>(bits);
      slots[op.to + lane] = bits;
      if (op.type == ScalarType::kIndex && kernel_.index_bits == 32 &&
          value != static_cast<int32_t>(value))
        return FaultAt(thread, ErrorCode::kKernelOpenResult,
                       fmt::format("an index is {}, which 32 bits do not hold", value));
      return true;
    });
  }

  bool ReadElements(SimThread& thread, const SimOp& op) {
    bool for_all = op.under_vector && op.lanes == 1;
    return EachLane(thread, op, [&](uint32_t lane) {
      thread.agent.lane = for_all ? kAllLanes : static_cast<uint16_t>(lane);
      auto index = static_cast<int64_t>(thread.slots[op.a.at + lane * op.a.step]);
      if (memory_->Read(thread.agent, arrays_[op.array], index, thread.slots[op.to + lane]))
        return true;
      return FaultAt(thread, memory_->fault(), memory_->fault_text());
    });
  }

  bool StoreElements(SimThread& thread, const SimOp& op) {
    uint32_t copies = op.under_vector ? 1 : program_.copies[op.array];
    uint32_t run = thread.agent.run;
    if (op.lanes == 1) thread.agent.run = 0;
    bool ok = EachLane(thread, op, [&](uint32_t lane) {
      auto index = static_cast<int64_t>(thread.slots[op.a.at + lane * op.a.step]);
      Bits value = thread.slots[op.b.at + lane * op.b.step];
      for (uint32_t copy = 0; copy < copies; ++copy) {
        thread.agent.lane = static_cast<uint16_t>(lane + copy);
        if (!memory_->Store(thread.agent, arrays_[op.array], index, value))
          return FaultAt(thread, memory_->fault(), memory_->fault_text());
      }
      return true;
    });
    thread.agent.run = run;
    return ok;
  }

  bool Multiply(SimThread& thread, const SimOp& op) {
    steps_ += MultiplicationsOf(op, thread.slots);
    return MultiplyMatrices(kernel_, op, thread.agent, thread.slots, arrays_, *memory_) ||
           FaultAt(thread, memory_->fault(), memory_->fault_text());
  }

  bool ShuffleLanes(SimThread& thread, const SimOp& op) {
    if (op.lanes == 1) {  // the same for all lanes
      thread.slots[op.to] = thread.slots[op.a.at];
      return true;
    }
    return EachLane(thread, op, [&](uint32_t lane) {
      uint64_t from = lane ^ thread.slots[op.b.at + lane * op.b.step];
      if (from >= op.lanes || (thread.mask >> from & 1) == 0)
        return FaultAt(thread, ErrorCode::kKernelOutOfBounds,
                       fmt::format("shuffles from lane {}, which is not there", from));
      thread.slots[op.to + lane] = thread.slots[op.a.at + from * op.a.step];
      return true;
    });
  }

  // ---- faults

  bool FaultAt(const SimThread& thread, ErrorCode code, const std::string& what) {
    std::string who = fmt::format("team {}", thread.agent.team - 1);
    if (threads_.size() > 1) who += fmt::format(", thread {}", thread.agent.thread);
    if (thread.agent.run != 0 && thread.agent.lane != kAllLanes)
      who += fmt::format(", lane {}", thread.agent.lane);
    error_ = MakeError(code, fmt::format("kernel {}: {} {}", kernel_.name, who, what));
    const SimOp& op = program_.ops[thread.pc];
    KernelPlaces written;
    std::string text = WriteKernel(kernel_, &written);
    auto place = [&](const KernelPlaces& places) {
      return op.value != kNoValue ? places.OfValue(op.value) : places.OfStmt(op.stmt);
    };
    error_.where = place(options_.places != nullptr ? *options_.places : written);
    size_t begin = 0;
    for (int line = place(written).line; line > 1; --line) begin = text.find('\n', begin) + 1;
    begin = text.find_first_not_of(' ', begin);
    if (place(written).line > 0)
      error_.notes.push_back("in " + text.substr(begin, text.find('\n', begin) - begin));
    return false;
  }
  const Kernel& kernel_;
  SimProgram program_;
  SimMemory* memory_ = nullptr;
  std::span<const uint32_t> arrays_;
  SimOptions options_;
  std::vector<int64_t> grid_;
  uint64_t teams_ = 1, first_team_ = 0;
  SplitMix64 draw_;
  std::vector<SimThread> threads_;
  std::vector<std::vector<uint8_t>> decisions_;
  uint32_t block_epoch_ = 0;
  std::vector<uint32_t> warp_epochs_;
  int64_t steps_ = 0;
  Error error_;
};

LaunchArrays ArraysOf(std::span<const SimPart> parts, std::span<const Simulator> simulators) {
  LaunchArrays all;
  all.numbers.resize(parts.size());
  for (bool arguments : {true, false}) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const Kernel& kernel = *parts[p].kernel;
      for (size_t i = 0; i < kernel.arrays.size(); ++i) {
        if ((i < kernel.ArgumentCount()) != arguments) continue;
        all.numbers[p].push_back(static_cast<uint32_t>(all.kernel.arrays.size()));
        all.kernel.arrays.push_back(kernel.arrays[i]);
        all.copies.push_back(simulators[p].program().copies[i]);
        if (arguments) all.arguments.push_back(parts[p].arguments[i]);
      }
    }
  }
  return all;
}

// In which order the teams of a launch run. A random one is made without a list of it: by steps
// that share no factor with their number.
class TeamOrder {
 public:
  TeamOrder(uint64_t teams, const SimOptions& options) : teams_(teams) {
    if (!options.seed || teams == 0) return;
    SplitMix64 draw(*options.seed);
    at_ = draw.Next() % teams;
    do step_ = draw.Next() % teams + 1;
    while (std::gcd(step_, teams) != 1);
  }
  bool IsDone() const { return done_ == teams_; }
  uint64_t team() const { return at_; }
  void Advance() {
    ++done_;
    at_ = (at_ + step_) % teams_;
  }

 private:
  uint64_t teams_, step_ = 1, at_ = 0, done_ = 0;
};

Error LaunchError(const Kernel& kernel, const std::string& what) {
  return MakeError(ErrorCode::kKernelLaunch, fmt::format("kernel {}: {}", kernel.name, what));
}

Status CheckLaunch(const Kernel& kernel, std::span<const SimArgument> arguments,
                   std::span<const int64_t> extents) {
  if (arguments.size() != kernel.ArgumentCount())
    return LaunchError(
        kernel, fmt::format("{} arguments, it takes {}", arguments.size(), kernel.ArgumentCount()));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].elements < kernel.arrays[i].size)
      return LaunchError(
          kernel, fmt::format("argument {} has {} elements, it needs {}", kernel.arrays[i].name,
                              arguments[i].elements, kernel.arrays[i].size));
  if (extents.size() != kernel.extents.size())
    return LaunchError(
        kernel, fmt::format("{} extents, it takes {}", extents.size(), kernel.extents.size()));
  for (size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = kernel.extents[i];
    if (extents[i] < extent.minimum || extents[i] > extent.maximum ||
        extents[i] % extent.multiple_of != 0)
      return LaunchError(kernel, fmt::format("extent {} is {}, it was built for {}..{}, multiples "
                                             "of {}",
                                             extent.name, extents[i], extent.minimum,
                                             extent.maximum, extent.multiple_of));
  }
  return Ok();
}

// What the launch alone decides: values of constants and extents.
std::vector<Bits> LaunchValues(const Kernel& kernel, std::span<const int64_t> extents) {
  std::vector<Bits> values(kernel.nodes.size());
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.prim == Prim::kConst) values[i] = node.bits;
    if (node.prim == Prim::kExtent) values[i] = static_cast<Bits>(extents[node.bits]);
    if (node.arity() == 0) continue;
    Bits operands[3] = {};
    for (size_t k = 0; k < static_cast<size_t>(node.arity()); ++k)
      operands[k] = values[static_cast<size_t>(node.operands[k])];
    ScalarType from = kernel.node(node.operands[0]).type;
    values[i] = EvaluatePrim(node.prim, node.type, from, operands).value_or(0);
  }
  return values;
}

}  // namespace

Result<SimReport> SimulateKernel(const Kernel& kernel, std::span<const SimArgument> arguments,
                                 std::span<const int64_t> extents, SimOptions options) {
  SimPart part{&kernel, arguments, extents};
  return SimulatePack({&part, 1}, options);
}

Result<SimReport> SimulatePack(std::span<const SimPart> parts, SimOptions options) {
  for (const SimPart& part : parts)
    TOK_RETURN_IF_ERROR(CheckLaunch(*part.kernel, part.arguments, part.extents));
  std::vector<Simulator> simulators;
  simulators.reserve(parts.size());
  uint64_t teams = 0;
  uint32_t threads = 1;
  for (const SimPart& part : parts) {
    Simulator& simulator = simulators.emplace_back(*part.kernel, options);
    std::vector<Bits> values = LaunchValues(*part.kernel, part.extents);
    std::vector<int64_t> grid;
    for (const SimProgram::Parallel& loop : simulator.program().grid)
      grid.push_back(static_cast<int64_t>(values[static_cast<size_t>(loop.extent)]));
    if (!simulator.CountTeams(std::move(grid)) || simulator.teams() > kMaxTeams - teams)
      return MakeError(ErrorCode::kKernelSteps,
                       fmt::format("kernel {}: more than {} teams", part.kernel->name, kMaxTeams));
    teams += simulator.teams();
    threads = std::max(threads, simulator.threads());
  }
  LaunchArrays arrays = ArraysOf(parts, simulators);
  SimMemory memory(arrays.kernel, arrays.arguments, arrays.copies, threads);
  std::vector<uint64_t> ends;  // of the teams of each part
  for (size_t i = 0; i < parts.size(); ++i) {
    uint64_t first = ends.empty() ? 0 : ends.back();
    simulators[i].Begin(memory, arrays.numbers[i], first, parts[i].extents);
    ends.push_back(first + simulators[i].teams());
  }
  for (TeamOrder order(teams, options); !order.IsDone(); order.Advance()) {
    auto at = static_cast<size_t>(std::ranges::upper_bound(ends, order.team()) - ends.begin());
    uint64_t first = at == 0 ? 0 : ends[at - 1];
    if (!simulators[at].RunTeam(order.team() - first)) return simulators[at].Fault();
  }
  SimReport report;
  for (const Simulator& simulator : simulators) report.steps += simulator.steps();
  for (size_t i = 0; i < arrays.arguments.size(); ++i)
    report.unwritten.push_back(memory.Unwritten(static_cast<uint32_t>(i)));
  return report;
}

}  // namespace tokamak
