#include "kernel/pressure.h"

#include <algorithm>
#include <vector>

#include "kernel/divergence.h"

namespace tokamak {
namespace {

// Live ranges. Numbers the points of the program in text order, and records for each value and
// register array the points of its definition and last use.
class LiveTimes {
 public:
  LiveTimes(const Kernel& kernel, const Placement& placement)
      : kernel_(kernel), placement_(placement), divergence_(kernel) {
    times_.resize(kernel.nodes.size());
    array_times_.resize(kernel.arrays.size());
    loop_values_.assign(kernel.loops.size(), kNoValue);
    for (size_t i = 0; i < kernel.nodes.size(); ++i)
      if (kernel.nodes[i].prim == Prim::kLoop)
        loop_values_[kernel.nodes[i].bits] = ValueId{static_cast<uint32_t>(i)};
  }

  Pressure Find() {
    Walk(kernel_.body);
    std::vector<Change> changes(static_cast<size_t>(now_) + 2);
    auto lives = [&](const Times& times, const Change& change) {
      changes[static_cast<size_t>(times.made)] += change;
      changes[static_cast<size_t>(std::max(times.last, times.made)) + 1] -= change;
    };
    for (size_t i = 0; i < times_.size(); ++i) {
      if (times_[i].made < 0) continue;
      bool vector = divergence_.ByLane(ValueId{static_cast<uint32_t>(i)});
      int64_t thread_registers =
          RegistersFor(kernel_.nodes[i].type) * (vector ? times_[i].lanes : 1);
      lives(times_[i], {vector ? 0 : 1, vector ? 1 : 0, thread_registers});
    }
    for (size_t i = 0; i < array_times_.size(); ++i)
      if (array_times_[i].made >= 0)
        lives(array_times_[i], OfArray(ArrayId{static_cast<uint32_t>(i)}));
    Change live, most;
    for (const Change& change : changes) {
      live += change;
      most.scalars = std::max(most.scalars, live.scalars);
      most.vectors = std::max(most.vectors, live.vectors);
      most.thread_registers = std::max(most.thread_registers, live.thread_registers);
    }
    return {static_cast<int>(most.scalars), static_cast<int>(most.vectors), most.thread_registers};
  }

 private:
  struct Times {
    int64_t made = -1, last = -1;
    int64_t lanes = 1;
  };

  static int64_t RegistersFor(ScalarType type) { return InfoOf(type).bits > 32 ? 2 : 1; }

  struct Change {
    int64_t scalars = 0, vectors = 0, thread_registers = 0;
    void operator+=(const Change& other) {
      scalars += other.scalars;
      vectors += other.vectors;
      thread_registers += other.thread_registers;
    }
    void operator-=(const Change& other) {
      *this += {-other.scalars, -other.vectors, -other.thread_registers};
    }
  };

  // Registers of an array while it is live.
  Change OfArray(ArrayId id) const {
    const Array& array = kernel_.array(id);
    bool per_lane = divergence_.PerLane(id);
    int64_t thread_registers = array.size * RegistersFor(array.type) * (per_lane ? lanes_most_ : 1);
    int64_t size = std::min<int64_t>(array.size, 1 << 20);
    if (per_lane) return {0, size, thread_registers};
    if (lanes_most_ > 1 && array.size % lanes_most_ == 0)
      return {0, size / lanes_most_, thread_registers};
    return {size, 0, thread_registers};
  }

  // An array is live from the start of the outermost loop that contains its first access to the end
  // of the one that contains its last: an iteration may read what the previous one left in it.
  void Touch(ArrayId id) {
    if (kernel_.array(id).space != Space::kRegisters) return;
    Times& times = array_times_[static_cast<size_t>(id)];
    if (times.made < 0) times.made = open_ == 0 ? now_ : outermost_;
    times.last = now_;
    if (open_ > 0) in_loops_.push_back(id);
  }

  Times& Of(ValueId id) { return times_[static_cast<size_t>(id)]; }

  void Make(ValueId id) {
    for (ValueId operand : kernel_.operands(id)) Use(operand);
    Of(id).made = ++now_;
    Of(id).lanes = lanes_;
    Of(id).last = now_;
  }
  void Use(ValueId id) {
    Times& times = Of(id);
    times.last = now_;
    if (times.made >= 0 && !loop_begins_.empty() && times.made < loop_begins_.back())
      outer_.push_back(id);
  }

  void Walk(const StmtList& block) {
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) Make(id);
      if (i < block.size()) WalkStmt(block[i]);
    }
  }

  // A value defined before a loop and used in it is live until the loop ends, because the next
  // iteration needs it.
  template <typename Body>
  void ForIteration(Body&& body) {
    size_t outer = outer_.size();
    loop_begins_.push_back(++now_);
    body();
    int64_t begin = loop_begins_.back();
    loop_begins_.pop_back();
    ++now_;
    // Extend values defined before this loop. Keep those defined before the enclosing loop for it.
    size_t kept = outer;
    for (size_t k = outer; k < outer_.size(); ++k) {
      ValueId id = outer_[k];
      if (Of(id).made < begin) Of(id).last = now_;
      if (!loop_begins_.empty() && Of(id).made < loop_begins_.back()) outer_[kept++] = id;
    }
    outer_.resize(kept);
  }

  // A loop whose iterations share register arrays.
  template <typename Loop>
  void Repeated(Loop&& loop) {
    ++open_;
    if (open_ == 1) outermost_ = now_ + 1;
    loop();
    if (--open_ > 0) return;
    for (ArrayId id : in_loops_) array_times_[static_cast<size_t>(id)].last = now_;
    in_loops_.clear();
  }

  void WalkStmt(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        WalkFor(stmt);
        break;
      case StmtKind::kIf:
        Use(stmt.condition);
        Walk(stmt.body);
        if (!stmt.else_body.empty()) Walk(stmt.else_body);
        break;
      case StmtKind::kWhile:
        Repeated([&] {
          ForIteration([&] {
            Walk(stmt.condition_stmts);
            Use(stmt.condition);
            Walk(stmt.body);
          });
        });
        break;
      case StmtKind::kStore:
        ++now_;
        Use(stmt.index);
        Use(stmt.value);
        Touch(stmt.array);
        break;
      case StmtKind::kRead:
        Make(stmt.value);
        Touch(kernel_.node(stmt.value).array());
        break;
      case StmtKind::kShuffle:
        Make(stmt.value);
        break;
      case StmtKind::kMatMul:
        ++now_;
        for (ValueId operand : MatMulOperandsOf(stmt)) Use(operand);
        for (ArrayId array : {stmt.array, stmt.matmul.lhs, stmt.matmul.rhs}) Touch(array);
        break;
      case StmtKind::kAsync:
        ++now_;
        for (ValueId operand : AsyncOperandsOf(stmt)) Use(operand);
        if (stmt.async->kind == AsyncKind::kWaitMultiplies) Touch(stmt.array);
        break;
      case StmtKind::kBarrier:
        break;
    }
  }

  void WalkFor(const Stmt& stmt) {
    const Loop& loop = kernel_.loop(stmt.loop);
    bool is_vector = loop.role == LoopRole::kVector;
    Use(loop.extent);
    if (is_vector) {
      lanes_ = IntOfBits(ScalarType::kIndex, kernel_.node(loop.extent).bits);
      lanes_most_ = std::max(lanes_most_, lanes_);
    }
    ValueId variable = loop_values_[static_cast<size_t>(stmt.loop)];
    // Variables of unrolled loops are constants, and lane numbers are address offsets.
    bool counted = variable != kNoValue && !is_vector && loop.role != LoopRole::kUnrolled;
    auto iteration = [&] {
      ForIteration([&] {
        if (counted) Of(variable).made = ++now_;
        Walk(stmt.body);
        if (counted) Of(variable).last = now_;
      });
    };
    // Register arrays are private to a thread.
    bool parallel = loop.role == LoopRole::kGrid || loop.role == LoopRole::kThread;
    if (parallel) {
      iteration();
    } else {
      Repeated(iteration);
    }
    if (is_vector) lanes_ = 1;
  }

  const Kernel& kernel_;
  const Placement& placement_;
  Divergence divergence_;
  std::vector<Times> times_, array_times_;
  std::vector<ValueId> loop_values_;
  std::vector<int64_t> loop_begins_;  // start points of the open loops, outermost first
  std::vector<ValueId> outer_;        // values used in a loop and defined before it
  std::vector<ArrayId> in_loops_;     // arrays accessed in the open loops that share them
  int64_t open_ = 0, outermost_ = 0;  // number of such open loops; start of the outermost
  int64_t now_ = 0, lanes_ = 1, lanes_most_ = 1;
};

// Two blocks for block-wide multiplies, three for kernels with warp match, which waits at each
// word. Chosen.
int MinBlocksPerSmOf(const Kernel& kernel, const StmtList& block) {
  int blocks_per_sm = 1;
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kMatMul && stmt.matmul.IsBlockWide())
      blocks_per_sm = std::max(blocks_per_sm, 2);
    if (stmt.kind == StmtKind::kShuffle && kernel.node(stmt.value).prim == Prim::kMatch)
      blocks_per_sm = std::max(blocks_per_sm, 3);
    for (const StmtList* inner : {&stmt.body, &stmt.else_body})
      blocks_per_sm = std::max(blocks_per_sm, MinBlocksPerSmOf(kernel, *inner));
  }
  return blocks_per_sm;
}

}  // namespace

Pressure PressureOf(const Kernel& kernel, const Placement& placement) {
  return LiveTimes(kernel, placement).Find();
}

Pressure PressureOf(const Kernel& kernel) {
  return PressureOf(kernel, Placement(kernel));
}

int MinBlocksPerSm(const Kernel& kernel) {
  return MinBlocksPerSmOf(kernel, kernel.body);
}

}  // namespace tokamak
