#include "backend/cuda/guarded_inverses.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/scalar.h"

namespace tokamak::cuda {
namespace {

// Divisors between 2^-100 and 2^100 have normal reciprocals. Chosen: far from the limits of f32.
constexpr double kLeastDivisor = 0x1p-100, kMostDivisor = 0x1p100;
// Guards of a value that are kept. Chosen: nests of selects are not as deep.
constexpr size_t kMaxGuards = 8;

// A condition, and whether it holds.
using Guard = std::pair<ValueId, bool>;
using Guards = std::vector<Guard>;

// sign * |base| ^ power.
struct Magnitude {
  ValueId base{};
  int power = 1;
  double sign = 1;
};

class ValueGuards {
 public:
  explicit ValueGuards(const Kernel& kernel) : kernel_(kernel), guards_(kernel.nodes.size()) {
    FindUsed(kernel.body);
    for (const Loop& loop : kernel.loops) Use(loop.extent);
    for (size_t i = kernel.nodes.size(); i-- > 0;) Visit(i);
  }

  // Whether a magnitude is ordinary wherever the value matters.
  bool IsOrdinary(ValueId value, const Magnitude& magnitude) const {
    const std::optional<Guards>& guards = guards_[static_cast<size_t>(value)];
    if (!guards) return false;
    double low = 0, high = std::numeric_limits<double>::infinity();
    for (const Guard& guard : *guards) Bound(guard, magnitude.base, low, high);
    return std::pow(low, magnitude.power) >= kLeastDivisor &&
           std::pow(high, magnitude.power) <= kMostDivisor;
  }

  Magnitude MagnitudeOf(ValueId value) const {
    Magnitude found = SignedMagnitudeOf(value).value_or(Magnitude{value});
    return found;
  }

 private:
  void Use(ValueId value) {
    if (value != kNoValue) guards_[static_cast<size_t>(value)] = Guards{};
  }

  // Values that statements use matter always.
  void FindUsed(const StmtList& block) {
    for (const Stmt& stmt : block) {
      if (stmt.kind == StmtKind::kIf || stmt.kind == StmtKind::kWhile) Use(stmt.condition);
      if (stmt.kind == StmtKind::kStore) Use(stmt.index), Use(stmt.value);
      if (stmt.kind == StmtKind::kMatMul)
        for (ValueId operand : MatMulOperandsOf(stmt)) Use(operand);
      if (stmt.kind == StmtKind::kAsync)
        for (ValueId operand : AsyncOperandsOf(stmt)) Use(operand);
      for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        FindUsed(*inner);
    }
  }

  // Operands precede users: all users of a value were visited before it.
  void Visit(size_t number) {
    const ScalarNode& node = kernel_.nodes[number];
    std::optional<Guards>& own = guards_[number];
    if (!own || IsOrdered(node.prim)) own = Guards{};
    for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i) {
      Guards added = *own;
      if (node.prim == Prim::kSelect && i > 0 && added.size() < kMaxGuards)
        added.emplace_back(node.operands[0], i == 1);
      std::optional<Guards>& of = guards_[static_cast<size_t>(node.operands[i])];
      if (!of) {
        of = std::move(added);
      } else {
        std::erase_if(*of, [&](const Guard& guard) { return !std::ranges::count(added, guard); });
      }
    }
  }

  std::optional<Magnitude> SignedMagnitudeOf(ValueId value) const {
    Magnitude found;
    found.base = value;
    while (kernel_.node(found.base).prim == Prim::kNeg) {
      found.base = kernel_.node(found.base).operands[0];
      found.sign = -found.sign;
    }
    const ScalarNode& node = kernel_.node(found.base);
    bool squares = node.prim == Prim::kMul && node.operands[0] == node.operands[1];
    if (!squares && node.prim != Prim::kAbs) return std::nullopt;
    found.power = squares ? 2 : 1;
    found.base = node.operands[0];
    for (Prim prim = kernel_.node(found.base).prim; prim == Prim::kNeg || prim == Prim::kAbs;
         prim = kernel_.node(found.base).prim)
      found.base = kernel_.node(found.base).operands[0];
    return found;
  }

  // Applies the bound of |base| that a guard gives; it does not hold for NaN.
  void Bound(const Guard& guard, ValueId base, double& low, double& high) const {
    const ScalarNode& compare = kernel_.node(guard.first);
    if (compare.prim != Prim::kLt && compare.prim != Prim::kLe) return;
    bool is_first = kernel_.IsConstant(compare.operands[1]);
    const ScalarNode& constant = kernel_.node(compare.operands[is_first ? 1 : 0]);
    if (constant.prim != Prim::kConst || !IsFloat(constant.type)) return;
    std::optional<Magnitude> magnitude = SignedMagnitudeOf(compare.operands[is_first ? 0 : 1]);
    if (!magnitude || magnitude->base != base) return;
    // The magnitude is below (above) the bound.
    double bound = DoubleOfBits(constant.type, constant.bits) * magnitude->sign;
    bool below = (is_first == guard.second) == (magnitude->sign > 0);
    bound = std::pow(std::max(bound, 0.0), 1.0 / magnitude->power);
    below ? high = std::min(high, bound) : low = std::max(low, bound);
  }

  const Kernel& kernel_;
  std::vector<std::optional<Guards>> guards_;
};

}  // namespace

std::set<ValueId> GuardedInverses(const Kernel& kernel) {
  std::vector<ValueId> inverses;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.prim != Prim::kDiv || node.type != ScalarType::kF32) continue;
    const ScalarNode& dividend = kernel.node(node.operands[0]);
    if (dividend.prim == Prim::kConst && DoubleOfBits(dividend.type, dividend.bits) == 1)
      inverses.push_back(ValueId{static_cast<uint32_t>(i)});
  }
  std::set<ValueId> guarded;
  if (inverses.empty()) return guarded;
  ValueGuards values(kernel);
  for (ValueId inverse : inverses) {
    ValueId divisor = kernel.node(inverse).operands[1];
    if (values.IsOrdinary(inverse, values.MagnitudeOf(divisor))) guarded.insert(inverse);
  }
  return guarded;
}

}  // namespace tokamak::cuda
