#include "kernel/sqrt_comparisons.h"

#include <cmath>
#include <limits>
#include <vector>

namespace tokamak {
namespace {

// Recursion depth of the pattern matchers. Chosen: bounds compile time.
constexpr int kMaxSqrtDepth = 8;

// Conservative: recognizes sums of squares and similar patterns.
bool IsNotNegative(const Kernel& kernel, ValueId id, int depth = kMaxSqrtDepth) {
  const ScalarNode& node = kernel.node(id);
  if (depth == 0 || !IsFloat(node.type)) return false;
  auto of = [&](size_t i) { return IsNotNegative(kernel, node.operands[i], depth - 1); };
  bool is_square = node.arity() > 1 && node.operands[0] == node.operands[1];
  switch (node.prim) {
    case Prim::kConst:
      return DoubleOfBits(node.type, node.bits) >= 0;
    case Prim::kAbs:
      return true;
    case Prim::kMul:
      return is_square || (of(0) && of(1));
    case Prim::kFma:
      return (is_square || (of(0) && of(1))) && of(2);
    case Prim::kAdd:
      return of(0) && of(1);
    case Prim::kSqrt:
    case Prim::kConvert:
      return of(0);
    default:
      return false;
  }
}

// A chain of square roots and conversions, outermost first, and its argument.
struct Chain {
  std::vector<ValueId> steps;
  ValueId number{};
};

std::optional<Chain> ChainOf(const Kernel& kernel, ValueId id) {
  Chain chain;
  bool has_root = false;
  for (;; id = kernel.node(id).operands[0]) {
    const ScalarNode& node = kernel.node(id);
    bool converts = node.prim == Prim::kConvert && IsFloat(node.type) &&
                    IsFloat(kernel.node(node.operands[0]).type);
    if (node.prim != Prim::kSqrt && !converts) break;
    has_root = has_root || node.prim == Prim::kSqrt;
    chain.steps.push_back(id);
  }
  chain.number = id;
  if (!has_root || !IsNotNegative(kernel, id)) return std::nullopt;
  return chain;
}

class Comparison {
 public:
  Comparison(const Kernel& kernel, const ScalarNode& compare, const Chain& chain, bool is_left)
      : kernel_(kernel), compare_(compare), chain_(chain), is_left_(is_left) {}

  // Evaluates the comparison for a value of the argument.
  std::optional<bool> Holds(Bits bits) const {
    ScalarType type = kernel_.node(chain_.number).type;
    for (size_t i = chain_.steps.size(); i-- > 0;) {
      const ScalarNode& step = kernel_.node(chain_.steps[i]);
      std::optional<Bits> next = EvaluatePrim(step.prim, step.type, type, &bits);
      if (!next) return std::nullopt;
      bits = *next;
      type = step.type;
    }
    Bits values[2] = {bits, kernel_.node(compare_.operands[is_left_ ? 1 : 0]).bits};
    if (!is_left_) std::swap(values[0], values[1]);
    std::optional<Bits> holds = EvaluatePrim(compare_.prim, compare_.type, type, values);
    if (!holds) return std::nullopt;
    return *holds != 0;
  }

  // The smallest argument for which the comparison differs from that for 0, by bisection: the bit
  // patterns of non-negative floats are ordered. nullopt if there is none.
  std::optional<Bits> SquaredBound() const {
    ScalarType type = kernel_.node(chain_.number).type;
    Bits low = 0, high = BitsOfDouble(type, std::numeric_limits<double>::infinity());
    std::optional<bool> first = Holds(low), last = Holds(high);
    if (!first || !last || *first == *last) return std::nullopt;
    while (high - low > 1) {
      Bits middle = low + (high - low) / 2;
      std::optional<bool> holds = Holds(middle);
      if (!holds) return std::nullopt;
      (*holds == *first ? low : high) = middle;
    }
    return high;
  }

 private:
  const Kernel& kernel_;
  const ScalarNode& compare_;
  const Chain& chain_;
  bool is_left_;
};

bool AddTested(const Kernel& kernel, ValueId test, std::vector<ValueId>& tested) {
  const ScalarNode& node = kernel.node(test);
  if (node.prim == Prim::kOr)
    return AddTested(kernel, node.operands[0], tested) &&
           AddTested(kernel, node.operands[1], tested);
  if (node.prim != Prim::kNe || node.operands[0] != node.operands[1]) return false;
  tested.push_back(node.operands[0]);
  return true;
}

// Whether `value` is NaN whenever `nan` is.
bool Follows(const Kernel& kernel, ValueId value, ValueId nan, int depth = kMaxSqrtDepth) {
  if (value == nan) return true;
  const ScalarNode& node = kernel.node(value);
  if (depth == 0 || !IsFloat(node.type)) return false;
  switch (node.prim) {
    case Prim::kAdd:
    case Prim::kSub:
    case Prim::kMul:
    case Prim::kDiv:
    case Prim::kFma:
    case Prim::kSqrt:
    case Prim::kNeg:
    case Prim::kAbs:
    case Prim::kConvert:
      break;
    default:
      return false;
  }
  for (ValueId operand : kernel.operands(value))
    if (Follows(kernel, operand, nan, depth - 1)) return true;
  return false;
}

}  // namespace

std::optional<Scalar> CompareSquare(KernelBuilder& b, const ScalarNode& compare) {
  const Kernel& kernel = b.kernel();
  for (bool is_left : {true, false}) {
    ValueId root = compare.operands[is_left ? 0 : 1];
    if (!kernel.IsConstant(compare.operands[is_left ? 1 : 0])) continue;
    std::optional<Chain> chain = ChainOf(kernel, root);
    if (!chain) continue;
    std::optional<Bits> bound = Comparison(kernel, compare, *chain, is_left).SquaredBound();
    if (!bound) continue;
    Scalar number(&b, chain->number), limit = b.ConstantBits(number.type(), *bound);
    // True below the bound, or from the bound on.
    return is_left ? number < limit : limit <= number;
  }
  return std::nullopt;
}

bool IsRedundantNanSelect(const Kernel& kernel, const ScalarNode& select) {
  // If the value is only converted, the sign of its NaN is observable.
  if (kernel.node(select.operands[2]).prim != Prim::kSqrt) return false;
  const ScalarNode& nan = kernel.node(select.operands[1]);
  if (nan.prim != Prim::kConst || !IsFloat(nan.type) ||
      !std::isnan(DoubleOfBits(nan.type, nan.bits)))
    return false;
  std::vector<ValueId> tested;
  if (!AddTested(kernel, select.operands[0], tested)) return false;
  for (ValueId id : tested)
    if (!Follows(kernel, select.operands[2], id)) return false;
  return true;
}

}  // namespace tokamak
