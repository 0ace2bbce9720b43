#include "kernel/pressure.h"

#include <algorithm>
#include <vector>

#include "kernel/variance.h"

namespace tokamak {
namespace {

// Gives each place of the program a time, in the order of the text, and each value the time at
// which it is made and the last one at which it is needed; likewise each array of registers.
class LiveTimes {
 public:
  LiveTimes(const Kernel& kernel, const Placement& placement)
      : kernel_(kernel), placement_(placement), variance_(kernel) {
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
      bool vector = variance_.ByLane(ValueId{static_cast<uint32_t>(i)});
      int64_t words = WordsOf(kernel_.nodes[i].type) * (vector ? times_[i].lanes : 1);
      lives(times_[i], {vector ? 0 : 1, vector ? 1 : 0, words});
    }
    for (size_t i = 0; i < array_times_.size(); ++i)
      if (array_times_[i].made >= 0)
        lives(array_times_[i], OfArray(ArrayId{static_cast<uint32_t>(i)}));
    Change live, most;
    for (const Change& change : changes) {
      live += change;
      most.scalars = std::max(most.scalars, live.scalars);
      most.vectors = std::max(most.vectors, live.vectors);
      most.words = std::max(most.words, live.words);
    }
    return {static_cast<int>(most.scalars), static_cast<int>(most.vectors), most.words};
  }

 private:
  struct Times {
    int64_t made = -1, last = -1;
    int64_t lanes = 1;
  };

  static int64_t WordsOf(ScalarType type) { return InfoOf(type).bits > 32 ? 2 : 1; }

  struct Change {
    int64_t scalars = 0, vectors = 0, words = 0;
    void operator+=(const Change& other) {
      scalars += other.scalars;
      vectors += other.vectors;
      words += other.words;
    }
    void operator-=(const Change& other) {
      *this += {-other.scalars, -other.vectors, -other.words};
    }
  };

  // What an array of registers takes while it lives.
  Change OfArray(ArrayId id) const {
    const Array& array = kernel_.array(id);
    bool per_lane = variance_.PerLane(id);
    int64_t words = array.size * WordsOf(array.type) * (per_lane ? lanes_most_ : 1);
    int64_t size = std::min<int64_t>(array.size, 1 << 20);
    if (per_lane) return {0, size, words};
    if (lanes_most_ > 1 && array.size % lanes_most_ == 0) return {0, size / lanes_most_, words};
    return {size, 0, words};
  }

  // An array is needed from where the loops begin in which it is met first to where those end in
  // which it is met last: what one round leaves in it, the next may read.
  void Touch(ArrayId id) {
    if (kernel_.array(id).space != Space::kRegisters) return;
    Times& times = array_times_[static_cast<size_t>(id)];
    if (times.made < 0) times.made = open_ == 0 ? now_ : outermost_;
    times.last = now_;
    if (open_ > 0) in_rounds_.push_back(id);
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

  void Walk(const Block& block) {
    for (size_t i = 0; i <= block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) Make(id);
      if (i < block.size()) WalkStmt(block[i]);
    }
  }

  // What is used within and was made before lives until the end: it is needed the next time round.
  template <typename Body>
  void Round(Body&& body) {
    size_t outer = outer_.size();
    loop_begins_.push_back(++now_);
    body();
    int64_t begin = loop_begins_.back();
    loop_begins_.pop_back();
    ++now_;
    // Those made before this loop; of them, those made before the loop around stay listed for it.
    size_t kept = outer;
    for (size_t k = outer; k < outer_.size(); ++k) {
      ValueId id = outer_[k];
      if (Of(id).made < begin) Of(id).last = now_;
      if (!loop_begins_.empty() && Of(id).made < loop_begins_.back()) outer_[kept++] = id;
    }
    outer_.resize(kept);
  }

  // A loop whose rounds share arrays of registers.
  template <typename Loop>
  void Repeated(Loop&& loop) {
    ++open_;
    if (open_ == 1) outermost_ = now_ + 1;
    loop();
    if (--open_ > 0) return;
    for (ArrayId id : in_rounds_) array_times_[static_cast<size_t>(id)].last = now_;
    in_rounds_.clear();
  }

  void WalkStmt(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kFor:
        WalkFor(stmt);
        break;
      case StmtKind::kIf:
        Use(stmt.condition);
        Walk(stmt.body);
        if (!stmt.otherwise.empty()) Walk(stmt.otherwise);
        break;
      case StmtKind::kWhile:
        Repeated([&] {
          Round([&] {
            Walk(stmt.head);
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
      case StmtKind::kMultiply:
        ++now_;
        for (ValueId operand : OperandsOf(stmt)) Use(operand);
        for (ArrayId array : {stmt.array, stmt.product.lhs, stmt.product.rhs}) Touch(array);
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
    // Unrolled variables are constants, and lanes are offsets.
    bool counted = variable != kNoValue && !is_vector && loop.role != LoopRole::kUnrolled;
    auto round = [&] {
      Round([&] {
        if (counted) Of(variable).made = ++now_;
        Walk(stmt.body);
        if (counted) Of(variable).last = now_;
      });
    };
    // Each thread has arrays of its own.
    bool apart = loop.role == LoopRole::kGrid || loop.role == LoopRole::kThread;
    if (apart) {
      round();
    } else {
      Repeated(round);
    }
    if (is_vector) lanes_ = 1;
  }

  const Kernel& kernel_;
  const Placement& placement_;
  Variance variance_;
  std::vector<Times> times_, array_times_;
  std::vector<ValueId> loop_values_;
  std::vector<int64_t> loop_begins_;  // of the loops that are open, outermost first
  std::vector<ValueId> outer_;        // used within a loop, made before it
  std::vector<ArrayId> in_rounds_;    // met in loops whose rounds share them, those that are open
  int64_t open_ = 0, outermost_ = 0;  // how many of these there are; when the first began
  int64_t now_ = 0, lanes_ = 1, lanes_most_ = 1;
};

// Of those whose warps match, at every word, one more.
int TeamsWantedBy(const Kernel& kernel, const Block& block) {
  int teams = 1;
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kMultiply && stmt.product.IsTeams()) teams = std::max(teams, 2);
    if (stmt.kind == StmtKind::kShuffle && kernel.node(stmt.value).prim == Prim::kMatch)
      teams = std::max(teams, 3);
    for (const Block* inner : {&stmt.body, &stmt.otherwise})
      teams = std::max(teams, TeamsWantedBy(kernel, *inner));
  }
  return teams;
}

}  // namespace

Pressure PressureOf(const Kernel& kernel, const Placement& placement) {
  return LiveTimes(kernel, placement).Find();
}

Pressure PressureOf(const Kernel& kernel) {
  return PressureOf(kernel, Placement(kernel));
}

int TeamsWanted(const Kernel& kernel) {
  return TeamsWantedBy(kernel, kernel.body);
}

}  // namespace tokamak
