// Finite masks of attention scores become -infinity where that changes nothing:
//
//   x = select(mask, scores / 8, -1e9)            x = select(mask, scores / 8, low)
//   exp(x - max(x))                          ->   low = select(|scores / 8| < 1e9 - 200, -inf,
//   -1e9)
//
// If every row has a live column and all scores are that much larger, the exponentials of masked
// columns are zeros either way. The bound of the scores is computed from the largest elements of
// the dot's operands, at run time. A kernel of the chain then reads `low`, and computes live
// columns only (analysis/live_columns.h): about half of those of a causal mask.

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/dot_chains.h"
#include "analysis/live_columns.h"
#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "ir/builder.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Masks to look at. Chosen: scores are rarely bounded by less.
constexpr double kMostMask = -1e3;
// Ratio of exponentials beyond which they are zero, as a logarithm. Chosen: exp(-104) is below
// 2^-150, half of the smallest f32.
constexpr double kVanishes = 200;
// By what rounding of the scores may exceed their bound, as a factor. Chosen: beyond the roundings
// of a few 16-bit results and of the sum of a dot.
constexpr double kRounding = 1.25;
// Columns from which live ones are worth finding. Chosen: two tiles of a kernel.
constexpr int64_t kManyMaskedColumns = 256;
// Ops between the dot and the mask. Chosen: more than attention has.
constexpr int kMaxOps = 16;
// Ops of a mask, and values that follow from it before the dots. Chosen: more than attention has.
constexpr int kMaxMaskOps = 32, kMaxFollowing = 64;

bool OnlyMoves(const Instr& instr) {
  return instr.op() == Op::kConvert || instr.op() == Op::kReshape || instr.op() == Op::kCopy ||
         instr.op() == Op::kBroadcast;
}

bool IsMaximum(const Instr& instr) {
  if (instr.op() != Op::kReduce || instr.operand_count() != 2) return false;
  const Instr* root = instr.called(0)->root();
  return root->op() == Op::kMaximum && root->operand(0) != root->operand(1);
}

const Instr& Unmoved(const Instr& instr) {
  const Instr* at = &instr;
  while (OnlyMoves(*at)) at = at->operand(0);
  return *at;
}

// Whether a shift is not below the maximum of the row.
bool IsRowMaximum(const Instr& shift, const Instr& masked) {
  const Instr& value = Unmoved(shift);
  if (value.op() == Op::kMaximum)
    return IsRowMaximum(*value.operand(0), masked) || IsRowMaximum(*value.operand(1), masked);
  return IsMaximum(value) && &Unmoved(*value.operand(0)) == &masked;
}

// Whether the masked scores have no other use than max(x) and exp(x - shift).
bool OnlyFeedsExponentials(const Instr& value, const Instr& masked) {
  for (const Instr* user : value.users()) {
    if (IsMaximum(*user)) continue;
    if (OnlyMoves(*user) && user->op() != Op::kBroadcast) {
      if (!OnlyFeedsExponentials(*user, masked)) return false;
      continue;
    }
    if (user->op() != Op::kSubtract || user->operand(0) != &value ||
        !IsRowMaximum(*user->operand(1), masked))
      return false;
    for (const Instr* power : user->users())
      if (power->op() != Op::kExp) return false;
  }
  return value.parent()->root() != &value;
}

// The number of all elements, if it masks.
std::optional<double> FiniteMaskOf(const Instr& instr) {
  const Instr& constant = Unmoved(instr);
  if (constant.op() != Op::kConstant || !constant.shape().IsArray() ||
      constant.shape().ElementCount() != 1)
    return std::nullopt;
  double number = constant.attrs<ConstantAttrs>().literal.DoubleAt(0);
  return number > kMaskedScore && number <= kMostMask ? std::optional(number) : std::nullopt;
}

// Whether a pred compares indices.
bool ComparesIndices(const Instr& instr, int& steps) {
  if (--steps < 0) return false;
  if (instr.op() == Op::kIota) return true;
  bool passes = OnlyMoves(instr) || instr.info().Is(kElementwise);
  return passes && std::ranges::any_of(instr.operands(), [&](const Instr* operand) {
           return ComparesIndices(*operand, steps);
         });
}

bool IsFiniteMask(const Instr& select) {
  if (select.op() != Op::kSelect || !select.shape().IsArray() || !IsReal(select.shape().type()) ||
      BytesOf(select.shape().type()) > 4 ||
      (!FiniteMaskOf(*select.operand(1)) && !FiniteMaskOf(*select.operand(2))))
    return false;
  int steps = kMaxMaskOps;
  return ComparesIndices(*select.operand(0), steps);
}

// The dots that multiply what follows from a mask.
std::vector<const Instr*> DotsOf(const Instr& select) {
  std::vector<const Instr*> dots, open = {&select};
  std::unordered_set<const Instr*> seen;
  while (!open.empty() && std::ssize(seen) < kMaxFollowing) {
    const Instr* at = open.back();
    open.pop_back();
    for (const Instr* user : at->users()) {
      if (!seen.insert(user).second) continue;
      (user->op() == Op::kDot ? dots : open).push_back(user);
    }
  }
  return dots;
}

class MaskSharpener {
 public:
  MaskSharpener(Computation& computation, PassContext& context)
      : computation_(computation), context_(context) {}

  bool Run() {
    std::vector<const Instr*> selects;
    for (const Instr* instr : computation_.Instrs())
      if (IsFiniteMask(*instr)) selects.push_back(instr);
    bool changed = false;
    for (const Instr* select : selects)
      for (const Instr* dot : DotsOf(*select))
        if (TrySharpen(*dot, *select)) {
          changed = true;
          break;
        }
    return changed;
  }

 private:
  bool TrySharpen(const Instr& product, const Instr& mask) {
    std::optional<ChainSlice> slice = ChainSliceOf(product, ChainReductions::kInside);
    if (!slice) return false;
    DotChain chain;
    std::optional<DimsAlong> along;
    RunningChain running;
    if (!FindDotChain(slice->instrs, chain, along).empty() ||
        !AnalyzeRunningChain(chain, slice->instrs, *along, running).empty() ||
        running.exponential == nullptr || chain.column_count() < kManyMaskedColumns)
      return false;
    LiveColumns live = LiveColumnsOf(chain, running, *along, kMostMask);
    if (live.select != &mask || live.masked != nullptr || (!live.first && !live.last)) return false;
    auto* select = const_cast<Instr*>(live.select);
    size_t masked = live.live_operand == 1 ? 2 : 1;
    std::optional<double> number = FiniteMaskOf(*select->operand(masked));
    if (!number) return false;
    if (!OnlyFeedsExponentials(*select, *select)) {
      context_.Rejected("contraction.sharpen-mask", *select, nullptr,
                        "the masked scores have other uses than exponentials of differences to "
                        "the row's maximum");
      return false;
    }
    Editor make = Editor::Beside(*select);
    Instr* bound = BoundOf(make, *select->operand(live.live_operand), kMaxOps);
    if (bound == nullptr) {
      make.Discard();
      largest_.clear();
      context_.Rejected("contraction.sharpen-mask", *select, nullptr,
                        "the scores follow from more than a dot and its scaling");
      return false;
    }
    ElementType type = select->shape().type();
    Instr* most = Number(make, (-*number - kVanishes) / kRounding);
    Instr* is_low = make.Make(Op::kCompare, Shape::Scalar(ElementType::kPred), {bound, most},
                              CompareAttrs{CompareDirection::kLt, CompareType::kNone});
    Instr* infinity = make.Constant(Literal::Scalar(type, -HUGE_VAL));
    Instr* finite = make.Constant(Literal::Scalar(type, *number));
    Instr* low = make.Make(Op::kSelect, Shape::Scalar(type), {is_low, infinity, finite});
    select->set_operand(masked, make.Broadcast(low, select->shape()));
    context_.Accepted("contraction.sharpen-mask", *select);
    return true;
  }

  static Instr* Number(Editor& make, double number) {
    return make.Constant(Literal::Scalar(ElementType::kF32, number));
  }
  static Instr* Both(Editor& make, Op op, Instr* x, Instr* y) {
    if (x == nullptr || y == nullptr) return nullptr;
    return make.Make(op, Shape::Scalar(ElementType::kF32), {x, y});
  }

  // A bound of the magnitudes of all elements, NaN or infinite if there is none; null if it would
  // take too long to compute. `ops`: of the program that may be looked at.
  Instr* BoundOf(Editor& make, Instr& x, int ops) {
    if (ops == 0) return nullptr;
    auto bound = [&](size_t i) { return BoundOf(make, *x.operand(i), ops - 1); };
    switch (x.op()) {
      case Op::kConstant:
        if (x.shape().ElementCount() != 1) return nullptr;
        return Number(make, std::abs(x.attrs<ConstantAttrs>().literal.DoubleAt(0)));
      case Op::kConvert:
        return IsReal(x.operand(0)->shape().type()) ? bound(0) : nullptr;
      case Op::kReshape:
      case Op::kCopy:
      case Op::kBroadcast:
      case Op::kTranspose:
      case Op::kNegate:
        return bound(0);
      case Op::kAdd:
      case Op::kSubtract:
        return Both(make, Op::kAdd, bound(0), bound(1));
      case Op::kMultiply:
        return Both(make, Op::kMultiply, bound(0), bound(1));
      case Op::kDivide: {
        const Instr& by = Unmoved(*x.operand(1));
        if (by.op() != Op::kConstant) return nullptr;
        return Both(make, Op::kDivide, bound(0), BoundOf(make, *x.operand(1), ops - 1));
      }
      case Op::kDot: {
        Instr* factors = Both(make, Op::kMultiply, LargestOf(make, *x.operand(0)),
                              LargestOf(make, *x.operand(1)));
        auto terms = static_cast<double>(DotDimensions(x).k);
        return Both(make, Op::kMultiply, factors, Number(make, terms));
      }
      default:
        return nullptr;
    }
  }

  // The largest magnitude of an array's elements; NaN with a NaN.
  Instr* LargestOf(Editor& make, Instr& array) {
    if (!IsReal(array.shape().type()) || BytesOf(array.shape().type()) > 4) return nullptr;
    Instr*& largest = largest_[&array];
    if (largest != nullptr) return largest;
    const Shape f32 = Shape::Array(ElementType::kF32, array.shape().dims());
    Instr* wide = make.Converted(&array, ElementType::kF32);
    Instr* size = make.Make(Op::kAbs, f32, {wide});
    Builder b(array, array.name() + "_maximum");
    Instr* x = b.Parameter(Shape::Scalar(ElementType::kF32));
    Instr* y = b.Parameter(Shape::Scalar(ElementType::kF32));
    Computation* maximum = b.FinishValid(b.Maximum(x, y));
    DimensionsAttrs all;
    for (int64_t d = 0; d < f32.rank(); ++d) all.dimensions.push_back(d);
    largest = make.Make(Op::kReduce, Shape::Scalar(ElementType::kF32), {size, Number(make, 0)},
                        std::move(all), maximum);
    return largest;
  }

  Computation& computation_;
  PassContext& context_;
  std::unordered_map<const Instr*, Instr*> largest_;  // that the last mask or the ones before use
};

}  // namespace

// Record contraction.sharpen-mask.
Result<Changed> SharpenMasks(Module& module, PassContext& context) {
  if (!context.machine().async_multiply) return Changed::kNo;
  return EditComputations(
      module, [&](Computation& computation) { return MaskSharpener(computation, context).Run(); });
}

}  // namespace tokamak
