#include "backend/cpu/launch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "backend/cpu/lanes.h"
#include "cost/numbers.h"
#include "kernel/placement.h"
#include "runtime/thread_pool.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tokamak::cpu {
namespace {

// Evaluates values of a kernel that depend on its extents alone.
class Numbers {
 public:
  Numbers(const Kernel& kernel, std::span<const int64_t> extents)
      : kernel_(kernel), extents_(extents) {}

  std::optional<int64_t> Of(ValueId id, int depth = 0) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kConst) return IntOfBits(node.type, node.bits);
    if (node.prim == Prim::kExtent) {
      auto at = static_cast<size_t>(node.extent());
      return at < extents_.size() ? std::optional(extents_[at]) : std::nullopt;
    }
    if (node.arity() == 0 || node.prim == Prim::kLoad || node.prim == Prim::kRead || depth > 32)
      return std::nullopt;
    Bits operands[3] = {};
    size_t i = 0;
    for (ValueId operand : kernel_.operands(id)) {
      std::optional<int64_t> value = Of(operand, depth + 1);
      if (!value) return std::nullopt;
      operands[i++] = BitsOfInt(kernel_.node(operand).type, *value);
    }
    std::optional<Bits> bits =
        EvaluatePrim(node.prim, node.type, kernel_.node(node.operands[0]).type, operands);
    return bits ? std::optional(IntOfBits(node.type, *bits)) : std::nullopt;
  }

 private:
  const Kernel& kernel_;
  std::span<const int64_t> extents_;
};

double WeightOf(const ScalarNode& node) {
  switch (node.prim) {
    case Prim::kLoad:
    case Prim::kRead:
      return 2;
    case Prim::kDiv:
    case Prim::kRem:
    case Prim::kSqrt:
      return 8;
    default:
      return 1;
  }
}

class Estimate {
 public:
  Estimate(const Kernel& kernel, std::span<const int64_t> extents)
      : kernel_(kernel), numbers_(kernel, extents), placement_(kernel) {}

  double Of(const StmtList& block) const {
    double sum = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      for (ValueId id : placement_.Before(block, i)) sum += WeightOf(kernel_.node(id));
      sum += Of(block[i]);
    }
    return sum;
  }

 private:
  double Of(const Stmt& stmt) const {
    switch (stmt.kind) {
      case StmtKind::kFor: {
        const Loop& loop = kernel_.loop(stmt.loop);
        if (loop.role == LoopRole::kVector) return Of(stmt.body);
        std::optional<int64_t> trips = numbers_.Of(loop.extent);
        return (trips ? static_cast<double>(*trips) : kUnknownTripCount) * (Of(stmt.body) + 1);
      }
      case StmtKind::kWhile:
        return kUnknownTripCount * (Of(stmt.condition_stmts) + Of(stmt.body));
      case StmtKind::kIf:
        return Of(stmt.body) + Of(stmt.else_body) + 1;
      case StmtKind::kMatMul: {
        constexpr double kAtOnce = 16;  // multiplications per vector instruction
        double depth = static_cast<double>(numbers_.Of(stmt.matmul.depth).value_or(256));
        return static_cast<double>(stmt.matmul.rows * stmt.matmul.columns) * depth / kAtOnce;
      }
      default:
        return 2;
    }
  }

  const Kernel& kernel_;
  Numbers numbers_;
  Placement placement_;
};

// Sets the thread's floating-point control register as generated code requires.
class PlainFloats {
 public:
#if defined(__x86_64__)
  PlainFloats() : before_(_mm_getcsr()) {
    if ((before_ & ~kFlags) != kPlain) _mm_setcsr(kPlain);
  }
  ~PlainFloats() {
    if ((before_ & ~kFlags) != kPlain) _mm_setcsr(before_);
  }

 private:
  // MXCSR: exception flags; all exceptions masked, round to nearest, subnormals enabled.
  static constexpr unsigned kFlags = 0x3f, kPlain = 0x1f80;
  unsigned before_;
#elif defined(__aarch64__)
  PlainFloats() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (before_ != 0) asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~PlainFloats() {
    if (before_ != 0) asm volatile("msr fpcr, %0" : : "r"(before_));
  }

 private:
  uint64_t before_ = 0;
#endif
 public:
  PlainFloats(const PlainFloats&) = delete;
  PlainFloats& operator=(const PlainFloats&) = delete;
};

}  // namespace

double EstimateIteration(const Kernel& kernel, std::span<const int64_t> extents) {
  constexpr double kNsEach = 0.3;  // ns per operation: two per cycle at about 2 GHz
  const StmtList& block = GridOf(kernel) == nullptr ? kernel.body : kernel.body[0].body;
  return std::max(Estimate(kernel, extents).Of(block) * kNsEach, 1.0);
}

Launch PlanLaunch(const Kernel& kernel, KernelFn function, std::span<const int64_t> extents) {
  Launch launch{.function = function};
  const Loop* grid = GridOf(kernel);
  if (grid == nullptr) return launch;
  launch.grid = std::max<int64_t>(Numbers(kernel, extents).Of(grid->extent).value_or(0), 0);
  double worth = std::ceil(kMinChunkNs / EstimateIteration(kernel, extents));
  launch.min_chunk = std::max<int64_t>(static_cast<int64_t>(worth), 1);
  return launch;
}

void RunLaunch(const Launch& launch, void* const* arguments, const int64_t* extents,
               ThreadPool* pool) {
  auto range = [&](int64_t begin, int64_t end) {
    PlainFloats plain;
    launch.function(arguments, extents, begin, end);
  };
  if (pool == nullptr) return range(0, launch.grid);
  pool->For(launch.grid, launch.min_chunk, range);
}

}  // namespace tokamak::cpu
