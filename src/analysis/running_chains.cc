#include <algorithm>

#include "analysis/dot_chains.h"

namespace tokamak {
namespace {

// How a value depends on the elements of a row, in the order in which columns come.
enum class Dependence : uint8_t {
  kNone,     // not on the scores
  kElement,  // on its own element
  kRow,      // on reductions of rows, the same in all columns
  kShifted,  // own element minus a value of the row
  kLinear,   // linear in the exponential
  kOther,
};

class RunningAnalysis {
 public:
  RunningAnalysis(const DotChain& chain, const DimsAlong& along, RunningChain& running)
      : chain_(chain), along_(along), running_(running) {}

  std::string Run(const std::vector<const Instr*>& instrs) {
    for (const Instr* instr : instrs) {
      Dependence dependence = DependenceOf(*instr);
      if (dependence != Dependence::kNone) dependences_[instr] = dependence;
    }
    if (!why_.empty()) return why_;
    if (running_.exponential != nullptr && chain_.seconds.size() > 1)
      return "it rescales the results of several dots";
    for (const DotChain::Second& second : chain_.seconds) {
      Dependence weights = Of(second.weights());
      bool is_plain = weights == Dependence::kElement && running_.scaled.empty();
      if (!is_plain && weights != Dependence::kLinear) return NoLinear();
    }
    return "";
  }

 private:
  static std::string NoLinear() {
    return "the weights are not linear in exponentials of shifted scores";
  }

  Dependence Of(const Instr& instr) const {
    auto found = dependences_.find(&instr);
    return found == dependences_.end() ? Dependence::kNone : found->second;
  }
  bool IsScaledRow(const Instr& instr) const { return scaled_rows_.contains(&instr); }

  Dependence DependenceOf(const Instr& instr) {
    if (chain_.IsFirst(instr)) return Dependence::kElement;
    if (along_.Of(instr) == nullptr) return Dependence::kNone;
    if (IsChainReduction(instr)) return Reduced(instr);
    for (const Instr* operand : instr.operands())
      if (IsScaledRow(*operand)) scaled_rows_.insert(&instr);
    if (!instr.info().Is(kElementwise)) return Of(*instr.operand(0));
    Dependence most = Dependence::kNone;
    bool has_rows = false, has_elements = false, has_others = false;
    for (const Instr* operand : instr.operands()) {
      Dependence of = Of(*operand);
      most = std::max(most, of);
      has_rows = has_rows || of == Dependence::kRow;
      has_elements = has_elements || of == Dependence::kElement;
      has_others = has_others || of > Dependence::kRow;
    }
    if (!has_others && !(has_rows && has_elements)) return most;
    return Combined(instr);
  }

  Dependence Reduced(const Instr& reduce) {
    Dependence of = Of(*reduce.operand(0));
    bool has_factor = factored_.contains(reduce.operand(0));
    if (of == Dependence::kElement) {
      running_.plain.push_back(&reduce);
    } else if (of == Dependence::kLinear && !has_factor && IsSum(reduce)) {
      running_.scaled.push_back(&reduce);
      scaled_rows_.insert(&reduce);
    } else {
      why_ = "a reduction depends on another one in a way that is not an online softmax";
      return Dependence::kOther;
    }
    return Dependence::kRow;
  }

  static bool IsSum(const Instr& reduce) {
    const Instr* root = reduce.called(0)->root();
    return root->op() == Op::kAdd && root->operand(0)->op() == Op::kParameter &&
           root->operand(1)->op() == Op::kParameter && root->operand(0) != root->operand(1);
  }

  Dependence Combined(const Instr& instr) {
    auto is = [&](size_t i, Dependence dependence) {
      return i < instr.operand_count() && Of(*instr.operand(i)) == dependence;
    };
    switch (instr.op()) {
      case Op::kSubtract:
        return is(0, Dependence::kElement) && is(1, Dependence::kRow) &&
                       !IsScaledRow(*instr.operand(1))
                   ? Dependence::kShifted
                   : Dependence::kOther;
      case Op::kExp:
        return is(0, Dependence::kShifted) ? Exponential(instr) : Dependence::kOther;
      case Op::kConvert:
      case Op::kNegate:
        return Linear(instr, 0);
      case Op::kMultiply:
        return is(0, Dependence::kLinear) ? Product(instr, 0) : Product(instr, 1);
      case Op::kDivide:
        return Product(instr, 0);
      case Op::kSelect:
        return Selected(instr);
      default:
        return Dependence::kOther;
    }
  }

  Dependence Exponential(const Instr& instr) {
    const Instr& difference = *instr.operand(0);
    const Instr* shift = RowValueOf(*difference.operand(1));
    if (running_.exponential != nullptr || shift == nullptr) return Dependence::kOther;
    running_.exponential = &instr;
    running_.x = difference.operand(0);
    running_.shift = shift;
    return Dependence::kLinear;
  }

  Dependence Linear(const Instr& instr, size_t element) {
    if (Of(*instr.operand(element)) != Dependence::kLinear) return Dependence::kOther;
    if (factored_.contains(instr.operand(element))) factored_.insert(&instr);
    return Dependence::kLinear;
  }

  Dependence Product(const Instr& instr, size_t element) {
    const Instr& other = *instr.operand(1 - element);
    if (Linear(instr, element) != Dependence::kLinear) return Dependence::kOther;
    if (Of(other) == Dependence::kNone) return Dependence::kLinear;
    const Instr* row = Of(other) == Dependence::kRow ? RowValueOf(other) : nullptr;
    if (row == nullptr) return Dependence::kOther;
    running_.factors.push_back({&instr, element, row});
    factored_.insert(&instr);
    return Dependence::kLinear;
  }

  // One of the values is linear, the other one zero.
  Dependence Selected(const Instr& instr) {
    if (Of(*instr.operand(0)) != Dependence::kNone) return Dependence::kOther;
    for (size_t i : {1, 2})
      if (IsConstantZero(*instr.operand(3 - i)) && Of(*instr.operand(i)) == Dependence::kLinear)
        return Linear(instr, i);
    return Dependence::kOther;
  }

  // Without broadcasts along the columns; null if elements are computed after the broadcast.
  const Instr* RowValueOf(const Instr& instr) const {
    const Instr* value = &instr;
    while (value->op() == Op::kBroadcast || value->op() == Op::kReshape ||
           value->op() == Op::kTranspose || value->op() == Op::kCopy ||
           value->op() == Op::kOptimizationBarrier)
      value = value->operand(0);
    const Dims* along = along_.Of(*value);
    bool is_row = along != nullptr && chain_.IsOfRows(*along) &&
                  std::ranges::count(*along, DimsAlong::kSame) == 0;
    return is_row ? value : nullptr;
  }

  const DotChain& chain_;
  const DimsAlong& along_;
  RunningChain& running_;
  std::unordered_map<const Instr*, Dependence> dependences_;
  std::unordered_set<const Instr*> scaled_rows_;  // values that depend on RunningChain::scaled
  std::unordered_set<const Instr*> factored_;     // linear values with row factors
  std::string why_;
};

}  // namespace

std::string AnalyzeRunningChain(const DotChain& chain, const std::vector<const Instr*>& instrs,
                                const DimsAlong& along, RunningChain& running) {
  return RunningAnalysis(chain, along, running).Run(instrs);
}

}  // namespace tokamak
