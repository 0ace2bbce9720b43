#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "cost/numbers.h"
#include "cost/pipes.h"
#include "cost/rates.h"
#include "cost/reuse.h"
#include "cost/spread.h"
#include "cost/work.h"
#include "kernel/choice.h"
#include "kernel/clamped.h"
#include "kernel/cluster.h"
#include "kernel/linear.h"
#include "kernel/placement.h"
#include "kernel/pressure.h"
#include "kernel/rare.h"
#include "kernel/variance.h"

// WorkOf: a walk over the statements of a kernel, each with the number of times that it runs.

namespace tokamak {
namespace {

// Rounds of a while: data decides.
constexpr double kRoundsUnknown = 16;

class Counter {
 public:
  Counter(const Kernel& kernel, int64_t grid, const Machine& machine)
      : kernel_(kernel),
        machine_(machine),
        facts_(kernel, grid),
        placement_(kernel),
        rare_(kernel),
        variance_(kernel) {
    if (machine.has_extremes) skipped_ = InsideExtremes(kernel);
  }

  Work Count() {
    Walk(kernel_.body, 1);
    AddTraffic(work_, kernel_, accesses_, machine_);
    Pressure pressure = PressureOf(kernel_, placement_);
    work_.registers = pressure.vectors;
    work_.words = static_cast<double>(pressure.words);
    if (int teams = TeamsWanted(kernel_); machine_.is_gpu() && teams > 1)
      work_.words =
          std::min(work_.words, std::floor(RatesOf(machine_).registers / (teams * work_.threads)));
    for (const Array& array : kernel_.arrays)
      if (array.space == Space::kTeam)
        work_.team_bytes += static_cast<double>(array.size * BytesOf(array.type));
    if (work_.tasks > 0) work_.barriers /= work_.tasks * work_.threads;
    if (int64_t blocks = ClusterOf(kernel_); blocks > 1) AsBlocks(static_cast<double>(blocks));
    return work_;
  }

 private:
  // A team of several blocks: they are what the machine runs, and their meetings take longer.
  void AsBlocks(double blocks) {
    const Rates& rates = RatesOf(machine_);
    work_.tasks *= blocks;
    work_.threads /= blocks;
    if (rates.barrier_us > 0) work_.barriers *= rates.cluster_us / rates.barrier_us;
  }

  // Operations that wait for one another: sums of reals, and others.
  struct Chain {
    double sums = 0, others = -1;
    double all() const { return sums + others; }
  };
  enum class Pattern : uint8_t { kOne, kNeighbours, kApart, kAnywhere };
  // Lanes so few elements apart are vectors that are shuffled (backend/cpu/emit_memory.cc).
  static constexpr int64_t kMaxStep = 4;
  // Places that are gone through side by side: each is still in the first cache at its next turn.
  static constexpr double kStreams = 8;
  // What a GPU's memory gives at a time, and what a thread asks for at most.
  static constexpr double kSectorBytes = 32, kVectorBytes = 16;

  void Walk(const Block& block, double times) {
    for (size_t i = 0; i <= block.size(); ++i) {
      // What stands behind a branch for rare numbers is not computed.
      rare_.Walk(
          placement_.Before(block, i),
          [&](const RareArms::Arm&) { return lanes_ > 1 || machine_.is_gpu(); },
          [&](ValueId id) { AddValue(id, times); },
          [&](const RareArms::Arm& arm) {
            for (ValueId id : arm.selects) AddValue(id, times);
          });
      if (i < block.size()) WalkStmt(block[i], times);
    }
  }

  void WalkStmt(const Stmt& stmt, double times) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        return WalkFor(stmt, times);
      case StmtKind::kIf: {
        // Where lanes decide each for itself, all of it runs.
        bool masked = lanes_ > 1 && variance_.ByLane(stmt.condition);
        double share = masked ? 1 : facts_.Share(stmt.condition);
        work_[Pipe::kTurn] += times;
        Walk(stmt.body, times * share);
        if (!stmt.otherwise.empty()) Walk(stmt.otherwise, times * (masked ? 1 : 1 - share));
        return;
      }
      case StmtKind::kWhile:
        work_[Pipe::kTurn] += times * kRoundsUnknown;
        Walk(stmt.head, times * kRoundsUnknown);
        return Walk(stmt.body, times * kRoundsUnknown);
      case StmtKind::kStore:
        AddAccess(stmt.array, stmt.index, true, times);
        return AddChain(stmt, times);
      case StmtKind::kRead:
        return AddAccess(kernel_.node(stmt.value).array(), kernel_.node(stmt.value).operands[0],
                         false, times);
      case StmtKind::kShuffle:
        work_[Pipe::kConvert] += times;
        return;
      case StmtKind::kBarrier:
        work_.barriers += times;
        return;
      case StmtKind::kMultiply:
        return AddProduct(stmt, times);
    }
  }

  void WalkFor(const Stmt& stmt, double times) {
    const Loop& loop = kernel_.loop(stmt.loop);
    double trips = facts_.TripsOf(stmt.loop), outer_lanes = lanes_;
    loops_.push_back({stmt.loop, trips, false});
    if (loop.role == LoopRole::kVector) {
      lanes_ = trips;
    } else {
      if (loop.role == LoopRole::kGrid) work_.tasks *= trips;
      if (loop.role == LoopRole::kThread && !InThread(stmt.loop)) work_.threads *= trips;
      if (loop.role == LoopRole::kSerial) work_[Pipe::kTurn] += times * trips;
      times *= trips;
    }
    Walk(stmt.body, times);
    lanes_ = outer_lanes;
    loops_.pop_back();
    auto chain = chains_.find(static_cast<uint32_t>(stmt.loop));
    if (chain == chains_.end()) return;
    work_.chain += chain->second.others;
    work_.sums += chain->second.sums;
  }

  // Threads of a team are counted at the first loop of each depth.
  bool InThread(LoopId) {
    size_t depth = 0;
    for (const ArrayAccess::Around& around : loops_)
      depth += kernel_.loop(around.loop).role == LoopRole::kThread ? 1 : 0;
    if (depth <= thread_depths_) return true;
    thread_depths_ = depth;
    return false;
  }

  bool IsLane(LoopId loop) const { return kernel_.loop(loop).role == LoopRole::kVector; }

  // How the elements of the lanes lie to each other; of GPUs also those of the threads.
  Pattern PatternOf(ValueId index) const {
    bool by_lane = lanes_ > 1 && variance_.ByLane(index);
    bool by_thread = machine_.is_gpu() && variance_.ByThread(index);
    if (!by_lane && !by_thread) return Pattern::kOne;
    std::optional<LinearIndex> linear = LinearOf(kernel_, index);
    if (!linear) return Pattern::kAnywhere;
    int64_t step = 1;
    for (const auto& [value, factor] : linear->terms) {
      const ScalarNode& node = kernel_.node(value);
      if (node.prim != Prim::kLoop) {
        if (variance_.ByLane(value)) return Pattern::kAnywhere;
      } else if (IsLane(node.loop()) && factor != 1) {
        step = factor;
      }
    }
    if (step == 1) return Pattern::kNeighbours;
    bool few = !machine_.is_gpu() && step >= 2 && step <= kMaxStep;
    return few ? Pattern::kApart : Pattern::kAnywhere;
  }
  // Lanes side by side up to an end, where they stay: CPUs read those under a mask.
  // How many ends there may be; 0: lanes lie otherwise.
  int EndsWithin(ValueId index, double bytes) const {
    if (machine_.is_gpu() || bytes < kLeastMasked) return 0;
    std::optional<ClampedIndex> clamped =
        ClampedOf(kernel_, index, [&](ValueId id) { return variance_.ByLane(id); });
    if (!clamped || PatternOf(clamped->inner) != Pattern::kNeighbours) return 0;
    return (clamped->low ? 1 : 0) + (clamped->high ? 1 : 0);
  }
  // For each end the element there and how many lanes there are, in all lanes; a comparison, and a
  // choice.
  void AddEnds(int ends, double vectors, double times) {
    work_[Pipe::kLoad] += times * ends;
    work_[Pipe::kIndex] += times * ends * 4;
    work_[Pipe::kSimple] += times * ends * (2 + 2 * vectors);
  }
  // By how many elements the places of neighbouring lanes differ.
  double StepOf(ValueId index) const {
    double step = 0;
    if (std::optional<LinearIndex> linear = LinearOf(kernel_, index))
      for (const auto& [value, factor] : linear->terms)
        if (kernel_.node(value).prim == Prim::kLoop && IsLane(kernel_.node(value).loop()))
          step += static_cast<double>(factor);
    return step;
  }

  // Elements from here on that the innermost loops meet in order.
  double RunOf(ValueId index) const {
    std::optional<LinearIndex> linear = LinearOf(kernel_, index);
    if (!linear) return 1;
    double run = 1, streams = 1;
    // Lanes go together, wherever their loop stands.
    for (bool lanes : {true, false}) {
      for (size_t i = loops_.size(); i-- > 0;) {
        if (IsLane(loops_[i].loop) != lanes) continue;
        double factor = 0;
        for (const auto& [value, times] : linear->terms)
          factor += static_cast<double>(times) * FactorIn(value, loops_[i].loop);
        double trips = std::max(loops_[i].trips, 1.0);
        if (factor != 0 && factor != run && (lanes || factor < 0 || streams * trips > kStreams))
          return run;
        (factor == run ? run : streams) *= factor == 0 ? 1 : trips;
      }
    }
    return run;
  }
  // By how much a value grows from round to round of a loop; what is cut off at the end does not
  // count. -1: in another way.
  double FactorIn(ValueId value, LoopId loop) const {
    const ScalarNode& node = kernel_.node(value);
    if (node.prim == Prim::kLoop) return node.loop() == loop ? 1 : 0;
    if (!facts_.DependsOn(value, loop)) return 0;
    if (node.prim != Prim::kMin && node.prim != Prim::kMax) return -1;
    size_t moving = kernel_.IsConstant(node.operands[0]) ? 1 : 0;
    if (!kernel_.IsConstant(node.operands[1 - moving])) return -1;
    std::optional<LinearIndex> linear = LinearOf(kernel_, node.operands[moving]);
    double factor = 0;
    if (linear)
      for (const auto& [inner, times] : linear->terms)
        factor += static_cast<double>(times) * std::max(FactorIn(inner, loop), 0.0);
    return factor == 0 ? -1 : factor;
  }

  // An array of registers that is in registers indeed: places are known when it is compiled.
  bool IsInRegisters(ArrayId array, ValueId index) const {
    const Array& a = kernel_.array(array);
    if (a.space != Space::kRegisters) return false;
    std::optional<LinearIndex> linear = LinearOf(kernel_, index);
    if (!linear) return false;
    return std::all_of(linear->terms.begin(), linear->terms.end(), [&](const auto& term) {
      const ScalarNode& node = kernel_.node(term.first);
      if (node.prim != Prim::kLoop) return false;
      LoopRole role = kernel_.loop(node.loop()).role;
      return role == LoopRole::kVector || role == LoopRole::kUnrolled;
    });
  }

  void AddValue(ValueId id, double times) {
    if (!skipped_.empty() && skipped_[static_cast<size_t>(id)]) return;
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kLoad) return AddAccess(node.array(), node.operands[0], false, times);
    bool by_lane = lanes_ > 1 && variance_.ByLane(id);
    if (node.type == ScalarType::kIndex) {
      // Part of an address, whatever the lane.
      if (by_lane && PatternOf(id) == Pattern::kNeighbours) return;
      bool free = !by_lane && (node.prim == Prim::kAdd || node.prim == Prim::kMul);
      if (free) {
        work_[Pipe::kIndex] += times;
        return;
      }
    }
    double lanes = by_lane ? lanes_ : 1;
    // A vector is whole registers.
    if (by_lane && !machine_.is_gpu())
      lanes = std::max(
          lanes, static_cast<double>(machine_.vector_bits) / std::max(InfoOf(node.type).bits, 32));
    AddPrim(work_, kernel_, id, times, lanes, machine_);
  }

  void AddAccess(ArrayId array, ValueId index, bool is_store, double times) {
    const Array& a = kernel_.array(array);
    if (IsInRegisters(array, index)) return;
    Pattern pattern = PatternOf(index);
    Spread spread;
    if (machine_.is_gpu() && a.space == Space::kArgument)
      spread = SpreadOf(kernel_, index, loops_, variance_);
    auto bytes = static_cast<double>(BytesOf(a.type));
    if (spread.step * bytes >= kSectorBytes && lanes_ * bytes < kVectorBytes)
      pattern = Pattern::kAnywhere;
    bool per_lane = variance_.PerLane(array) && lanes_ > 1;
    bool reads_anywhere = pattern == Pattern::kAnywhere && !is_store && !per_lane;
    int ends = reads_anywhere ? EndsWithin(index, bytes) : 0;
    if (ends > 0) pattern = Pattern::kNeighbours;
    if (pattern == Pattern::kAnywhere) {
      work_[is_store ? Pipe::kScatter : Pipe::kGather] += times * lanes_;
    } else {
      bool vector = pattern != Pattern::kOne || per_lane;
      double vectors =
          vector ? std::ceil(lanes_ * bytes * 8 / static_cast<double>(machine_.vector_bits)) : 1;
      AddEnds(ends, vectors, times);
      bool apart = pattern == Pattern::kApart && !per_lane;
      // Of what lies between, all is loaded, and none is stored: others store that.
      if (apart) work_[Pipe::kSimple] += times * vectors * (is_store ? 1 : StepOf(index) - 1);
      if (apart && !is_store) vectors *= StepOf(index);
      work_[is_store ? Pipe::kStore : Pipe::kLoad] += times * vectors;
    }
    ArrayAccess access{
        .array = array, .is_store = is_store, .block = 1, .run = RunOf(index), .loops = loops_};
    if (spread.run > 0) access.sector_share = std::min(1.0, spread.run * bytes / kSectorBytes);
    for (ArrayAccess::Around& around : access.loops)
      around.moves = facts_.DependsOn(index, around.loop);
    accesses_.push_back(std::move(access));
  }

  // A thread's share of a team's product: its sums are in registers, and what a warp takes of both
  // matrices comes from team memory, 16 bytes a thread at a time.
  void AddTeamProduct(const Stmt& stmt, double times) {
    // What tensor cores multiply of tf32, a time, is half of what they multiply of bf16; that is
    // how they are made, it was not measured.
    constexpr double kTf32 = 2;
    const Multiplication& product = stmt.product;
    ScalarType type = kernel_.array(product.lhs).type;
    double depth = facts_.Mean(product.depth);
    double multiplied = times * static_cast<double>(product.SumsOfThread()) * depth;
    if (BytesOf(type) < 4 || product.tf32) {
      work_[Pipe::kMultiply16] += multiplied * (product.tf32 ? kTf32 : 1);
    } else {
      work_[BytesOf(type) > 4 ? Pipe::kMultiply64 : Pipe::kMultiply] += multiplied;
    }
    double bytes = static_cast<double>(product.warp_rows + product.warp_columns) * depth *
                   static_cast<double>(BytesOf(type));
    work_[Pipe::kLoad] += times * bytes / Multiplication::kLanesOfWarp /
                          (static_cast<double>(machine_.vector_bits) / 8);
  }

  void AddProduct(const Stmt& stmt, double times) {
    if (stmt.product.IsTeams()) return AddTeamProduct(stmt, times);
    const Multiplication& product = stmt.product;
    ScalarType type = kernel_.array(product.lhs).type;
    double depth = facts_.Mean(product.depth);
    double rows = static_cast<double>(product.rows), columns = static_cast<double>(product.columns);
    Pipe pipe = BytesOf(type) < 4   ? Pipe::kMultiply16
                : BytesOf(type) > 4 ? Pipe::kMultiply64
                                    : Pipe::kMultiply;
    work_[pipe] += times * rows * columns * depth;
    // Sums come from memory and go there.
    double sums = times * rows * VectorsOf(columns, pipe == Pipe::kMultiply64 ? 64 : 32, machine_);
    if (!product.fresh) work_[Pipe::kLoad] += sums;
    work_[Pipe::kStore] += sums;
    work_[Pipe::kTurn] += times;
    auto add = [&](ArrayId array, ValueId index, double block, bool is_store) {
      ArrayAccess access{
          .array = array, .is_store = is_store, .block = block, .run = block, .loops = loops_};
      for (ArrayAccess::Around& around : access.loops)
        around.moves = facts_.DependsOn(index, around.loop);
      accesses_.push_back(std::move(access));
    };
    add(product.lhs, product.lhs_at, rows * depth, false);
    add(product.rhs, product.rhs_at, depth * columns, false);
    add(stmt.array, stmt.index, rows * columns, true);
  }

  // A store to registers of what was computed from their old value: the next round waits for it.
  void AddChain(const Stmt& stmt, double times) {
    const Array& array = kernel_.array(stmt.array);
    if (array.space != Space::kRegisters || machine_.is_gpu()) return;
    ++chain_walk_;
    known_chains_.resize(kernel_.nodes.size());
    Chain found = ChainFrom(stmt.value, stmt.array);
    if (found.others < 0) return;
    if (!IsInRegisters(stmt.array, stmt.index)) found.others += 1;  // through memory
    double apart = 1;
    const ArrayAccess::Around* inner = nullptr;
    for (const ArrayAccess::Around& around : loops_) {
      LoopRole role = kernel_.loop(around.loop).role;
      if (role == LoopRole::kVector) continue;
      if (role != LoopRole::kGrid && facts_.DependsOn(stmt.index, around.loop))
        apart *= std::max(around.trips, 1.0);
      if (role == LoopRole::kSerial) inner = &around;
    }
    if (inner == nullptr || found.all() == 0) return;
    Chain& chain =
        chains_.try_emplace(static_cast<uint32_t>(inner->loop), Chain{0, 0}).first->second;
    if (times / apart * found.all() > chain.all())
      chain = {times / apart * found.sums, times / apart * found.others};
  }

  // Operations between a read of the array and the value; others less than 0: there is none.
  Chain ChainFrom(ValueId id, ArrayId array, int depth = 0) {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kRead) return node.array() == array ? Chain{0, 0} : Chain{};
    if (node.arity() == 0 || node.prim == Prim::kLoad || depth > 200) return {};
    KnownChain& known = known_chains_[static_cast<size_t>(id)];
    if (known.walk == chain_walk_) return known.chain;
    Chain most;
    for (ValueId operand : kernel_.operands(id)) {
      Chain chain = ChainFrom(operand, array, depth + 1);
      if (chain.all() > most.all()) most = chain;
    }
    if (most.others >= 0 && node.prim != Prim::kBitcast) {
      bool sum = IsFloat(node.type) && (node.prim == Prim::kAdd || node.prim == Prim::kSub);
      (sum ? most.sums : most.others) += 1;
    }
    known = {most, chain_walk_};
    return most;
  }

  const Kernel& kernel_;
  const Machine& machine_;
  IndexFacts facts_;
  Placement placement_;
  RareArms rare_;
  Variance variance_;
  std::vector<bool> skipped_;  // nobody computes them; empty: there are none
  Work work_;
  std::vector<ArrayAccess> accesses_;
  std::vector<ArrayAccess::Around> loops_;  // those that are open
  std::unordered_map<uint32_t, Chain> chains_;
  struct KnownChain {
    Chain chain;
    uint32_t walk = 0;  // that it was found in
  };
  std::vector<KnownChain> known_chains_;  // by value
  uint32_t chain_walk_ = 0;
  double lanes_ = 1;
  size_t thread_depths_ = 0;
};

}  // namespace

Work WorkOf(const Kernel& kernel, int64_t grid, const Machine& machine) {
  return Counter(kernel, grid, machine).Count();
}

}  // namespace tokamak
