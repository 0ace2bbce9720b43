#include "backend/cuda/lost_signs.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tokamak::cuda {
namespace {

// Facts about a value, its own or those of a value that is passed through it (copies, arrays).
using Facts = uint8_t;
constexpr Facts kArithmetic = 1, kLeast = 2, kMost = 4;
constexpr Facts kExtremes = kLeast | kMost;
constexpr int kIndexShift = 2;  // kLeast and kMost for indices, whose min/max are nested clamps
// Constant after all loops of constant extent are unrolled.
constexpr Facts kConstant = 32;

class SignFinder {
 public:
  explicit SignFinder(const Kernel& kernel)
      : kernel_(kernel), of_value_(kernel.nodes.size()), of_array_(kernel.arrays.size()) {}

  std::set<std::pair<ValueId, size_t>> Run() {
    FindFacts();
    // The kinds of min/max that are nested anywhere in the kernel.
    Facts chained = 0;
    ForExtremes([&](ValueId id, Facts own) {
      for (size_t k : MatMulOperandsOf(id)) {
        Facts inner = FactsOf(kernel_.node(id).operands[k]) & ~(kArithmetic | kConstant);
        Facts joined = KindsOf(inner) & KindsOf(own);
        if (joined != 0) chained |= own | (inner & (joined | joined << kIndexShift));
      }
    });
    std::set<std::pair<ValueId, size_t>> found;
    ForExtremes([&](ValueId id, Facts own) {
      for (size_t k : MatMulOperandsOf(id))
        if ((own & chained) != 0 && (FactsOf(kernel_.node(id).operands[k]) & kArithmetic) != 0)
          found.insert({id, k});
    });
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (IsNarrowInteger(kernel_.nodes[i]) && KindOf(kernel_.nodes[i]) != 0)
        for (ValueId id{static_cast<uint32_t>(i)}; size_t k : MatMulOperandsOf(id))
          if (ValueId of = kernel_.node(id).operands[k];
              (FactsOf(of) & kConstant) != 0 && kernel_.node(of).prim != Prim::kConst)
            found.insert({id, k});
    return found;
  }

 private:
  // Merges the facts of numbers and of indices.
  static Facts KindsOf(Facts facts) { return (facts | facts >> kIndexShift) & kExtremes; }
  Facts FactsOf(ValueId id) const { return of_value_[static_cast<size_t>(id)]; }

  static bool IsInteger(ScalarType type) { return !IsFloat(type) && type != ScalarType::kPred; }

  template <typename Function>
  void ForExtremes(Function function) const {
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (Facts own = ExtremesOf(kernel_.nodes[i]); own != 0)
        function(ValueId{static_cast<uint32_t>(i)}, own);
  }

  // 64-bit integers are excluded: ptxas compares them in halves.
  bool IsNarrowInteger(const ScalarNode& node) const {
    if (node.type == ScalarType::kIndex) return kernel_.index_bits == 32;
    return IsInteger(node.type) && BytesOf(node.type) <= 4;
  }

  Facts KindOf(const ScalarNode& node) const {
    return node.prim == Prim::kMin    ? kLeast
           : node.prim == Prim::kMax  ? kMost
           : IsChoiceOfCompared(node) ? kExtremes
                                      : Facts{0};
  }

  // Only signed ones: fusing unsigned min/max loses nothing.
  Facts ExtremesOf(const ScalarNode& node) const {
    if (!IsNarrowInteger(node)) return 0;
    if (node.type == ScalarType::kIndex) return static_cast<Facts>(KindOf(node) << kIndexShift);
    return IsSigned(node.type) ? KindOf(node) : Facts{0};
  }

  // Whether a node is x < y ? x : y or similar.
  bool IsChoiceOfCompared(const ScalarNode& node) const {
    if (node.prim != Prim::kSelect) return false;
    const ScalarNode& by = kernel_.node(node.operands[0]);
    if (by.prim != Prim::kLt && by.prim != Prim::kLe) return false;
    auto is = [&](size_t i, size_t k) { return by.operands[i] == node.operands[k]; };
    return (is(0, 1) && is(1, 2)) || (is(0, 2) && is(1, 1));
  }

  std::array<size_t, 2> MatMulOperandsOf(ValueId id) const {
    if (kernel_.node(id).prim == Prim::kSelect) return {1, 2};
    return {0, 1};
  }

  Facts Found(const ScalarNode& node) const {
    // An operand that is hidden from ptxas is not a constant to it.
    if (IsNarrowInteger(node) && KindOf(node) != 0) return ExtremesOf(node);
    Facts constant = IsConstant(node) ? kConstant : Facts{0};
    switch (node.prim) {
      case Prim::kAdd:
      case Prim::kSub:
      case Prim::kMul:
        return constant | (IsInteger(node.type) ? kArithmetic : Facts{0});
      case Prim::kSelect:
        return FactsOf(node.operands[1]) | FactsOf(node.operands[2]);
      case Prim::kConvert:
      case Prim::kBitcast:
        return FactsOf(node.operands[0]);
      case Prim::kRead:
      case Prim::kLoad:
        return of_array_[static_cast<size_t>(node.array())] & ~(IsConstant(node) ? 0 : kConstant);
      default:
        return constant;
    }
  }

  bool IsConstant(const ScalarNode& node) const {
    auto is_constant = [&](ValueId id) { return (FactsOf(id) & kConstant) != 0; };
    switch (node.prim) {
      case Prim::kConst:
        return true;
      case Prim::kLoop: {
        const Loop& loop = kernel_.loop(node.loop());
        const ScalarNode& extent = kernel_.node(loop.extent);
        bool is_parallel = loop.role == LoopRole::kGrid || loop.role == LoopRole::kThread;
        return extent.prim == Prim::kConst && (!is_parallel || extent.bits == 1);
      }
      case Prim::kRead:
      case Prim::kLoad:
        return kernel_.array(node.array()).space == Space::kRegisters;
      case Prim::kSelect:
        return is_constant(node.operands[1]) || is_constant(node.operands[2]);
      default: {
        auto arity = static_cast<size_t>(node.arity());
        return arity > 0 &&
               std::all_of(node.operands.begin(), node.operands.begin() + arity, is_constant);
      }
    }
  }

  // Fixed point: arrays pass on what is stored to them, also in earlier iterations.
  void FindFacts() {
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (size_t i = 0; i < kernel_.nodes.size(); ++i) of_value_[i] = Found(kernel_.nodes[i]);
      AddStores(kernel_.body, is_new);
    }
  }

  void AddStores(const StmtList& block, bool& is_new) {
    for (const Stmt& stmt : block) {
      if (stmt.kind == StmtKind::kStore) {
        Facts& facts = of_array_[static_cast<size_t>(stmt.array)];
        Facts with = facts | FactsOf(stmt.value);
        is_new = is_new || with != facts;
        facts = with;
      }
      for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        AddStores(*inner, is_new);
    }
  }

  const Kernel& kernel_;
  std::vector<Facts> of_value_, of_array_;
};

}  // namespace

std::set<std::pair<ValueId, size_t>> MayLoseSign(const Kernel& kernel) {
  return SignFinder(kernel).Run();
}

}  // namespace tokamak::cuda
