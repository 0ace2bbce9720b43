#include "analysis/live_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tokamak {
namespace {

// Masked scores are at most this. Chosen: sums of products of bf16 are far above it, unless they
// are about to overflow; JAX masks with -2.4e38.
constexpr double kMaskedScore = -1e30;

// row * row index + column * column index + constant.
struct AffineIndex {
  int64_t row = 0, column = 0, constant = 0;
};

class MaskReader {
 public:
  explicit MaskReader(const DotChain& chain) : chain_(chain) {}

  // Restricts `live` to the elements at which a pred, with dimensions `along` the scores, is
  // `value`. Sets `is_complete` to false if it depends on anything else.
  void Restrict(const Instr& pred, const Dims& along, bool value, LiveColumns& live,
                bool& is_complete) const {
    if (std::optional<std::pair<const Instr*, Dims>> moved = Moved(pred, along))
      return Restrict(*moved->first, moved->second, value, live, is_complete);
    if (pred.op() == Op::kNot) return Restrict(*pred.operand(0), along, !value, live, is_complete);
    if (pred.op() == (value ? Op::kAnd : Op::kOr)) {
      for (const Instr* operand : pred.operands())
        Restrict(*operand, along, value, live, is_complete);
      return;
    }
    if (!RestrictByComparison(pred, along, value, live)) is_complete = false;
  }

 private:
  // The operand of an op that moves elements, and its dimensions.
  std::optional<std::pair<const Instr*, Dims>> Moved(const Instr& instr, const Dims& along) const {
    if (instr.op() == Op::kBroadcast) {
      Dims from;
      for (int64_t d : instr.attrs<DimensionsAttrs>().dimensions)
        from.push_back(along[static_cast<size_t>(d)]);
      return std::pair(instr.operand(0), std::move(from));
    }
    if (instr.op() == Op::kReshape) {
      Dims rest, from;
      for (size_t d = 0; d < along.size(); ++d)
        if (instr.shape().dim(d) != 1) rest.push_back(along[d]);
      size_t next = 0;
      for (int64_t size : instr.operand(0)->shape().dims()) {
        if (size != 1 && next == rest.size()) return std::nullopt;
        from.push_back(size == 1 ? DimsAlong::kUnit : rest[next++]);
      }
      if (next != rest.size()) return std::nullopt;
      return std::pair(instr.operand(0), std::move(from));
    }
    if (instr.op() == Op::kCopy) return std::pair(instr.operand(0), along);
    return std::nullopt;
  }

  // A signed integer that is affine in the indices; nullopt if it is anything else.
  std::optional<AffineIndex> IndexOf(const Instr& instr, const Dims& along) const {
    if (instr.shape().type() != ElementType::kS32 && instr.shape().type() != ElementType::kS64)
      return std::nullopt;
    if (auto moved = Moved(instr, along)) return IndexOf(*moved->first, moved->second);
    switch (instr.op()) {
      case Op::kConstant:
        if (instr.shape().ElementCount() != 1) return std::nullopt;
        return Bounded({.constant = instr.attrs<ConstantAttrs>().literal.IntAt(0)});
      case Op::kIota: {
        int64_t dim = along[static_cast<size_t>(instr.attrs<IotaAttrs>().dimension)];
        if (dim == DimsAlong::kUnit) return AffineIndex{};
        if (chain_.row == dim) return AffineIndex{.row = 1};
        if (chain_.column == dim) return AffineIndex{.column = 1};
        return std::nullopt;
      }
      case Op::kConvert:
        return IndexOf(*instr.operand(0), along);
      case Op::kAdd:
      case Op::kSubtract: {
        std::optional<AffineIndex> x = IndexOf(*instr.operand(0), along),
                                   y = IndexOf(*instr.operand(1), along);
        if (!x || !y) return std::nullopt;
        int64_t sign = instr.op() == Op::kAdd ? 1 : -1;
        return Bounded({x->row + sign * y->row, x->column + sign * y->column,
                        x->constant + sign * y->constant});
      }
      default:
        return std::nullopt;
    }
  }

  // Small numbers do not wrap.
  static std::optional<AffineIndex> Bounded(AffineIndex index) {
    constexpr int64_t kSmall = 1 << 28;
    bool is_small = std::abs(index.constant) < kSmall && std::abs(index.row) <= 1 &&
                    std::abs(index.column) <= 1;
    return is_small ? std::optional(index) : std::nullopt;
  }

  bool RestrictByComparison(const Instr& pred, const Dims& along, bool value,
                            LiveColumns& live) const {
    if (pred.op() != Op::kCompare) return false;
    std::optional<AffineIndex> x = IndexOf(*pred.operand(0), along),
                               y = IndexOf(*pred.operand(1), along);
    if (!x || !y) return false;
    CompareDirection direction = pred.attrs<CompareAttrs>().direction;
    bool greater = direction == CompareDirection::kGe || direction == CompareDirection::kGt;
    bool less = direction == CompareDirection::kLe || direction == CompareDirection::kLt;
    if (!greater && !less) return false;
    bool strict = direction == CompareDirection::kGt || direction == CompareDirection::kLt;
    // As difference >= 0, where the difference is x - y or y - x.
    if (greater != value) std::swap(x, y);
    strict = strict == value;
    AffineIndex difference{x->row - y->row, x->column - y->column,
                           x->constant - y->constant - (strict ? 1 : 0)};
    if (difference.row == 1 && difference.column == -1) {
      live.last = std::min(live.last.value_or(difference.constant), difference.constant);
    } else if (difference.row == -1 && difference.column == 1) {
      live.first = std::max(live.first.value_or(-difference.constant), -difference.constant);
    } else {
      return false;
    }
    return true;
  }

  const DotChain& chain_;
};

// The number of all elements of an array; nullopt if they differ.
std::optional<double> SplatOf(const Instr& instr) {
  const Instr* value = &instr;
  while (value->op() == Op::kBroadcast || value->op() == Op::kReshape ||
         value->op() == Op::kConvert)
    value = value->operand(0);
  if (value->op() != Op::kConstant || value->shape().ElementCount() != 1 ||
      !IsReal(value->shape().type()))
    return std::nullopt;
  return value->attrs<ConstantAttrs>().literal.DoubleAt(0);
}

bool ReducesByMaximum(const Instr& reduce) {
  const Instr* root = reduce.called(0)->root();
  return root->op() == Op::kMaximum && root->operand(0) != root->operand(1);
}

}  // namespace

LiveColumns LiveColumnsOf(const DotChain& chain, const RunningChain& running,
                          const DimsAlong& along) {
  bool is_exponential = running.exponential != nullptr;
  const Instr* value = is_exponential ? running.x : &chain.weights();
  for (const Instr* reduce : running.plain)
    if (!is_exponential || reduce->operand(0) != value || !ReducesByMaximum(*reduce)) return {};
  while (value->op() == Op::kConvert || value->op() == Op::kReshape || value->op() == Op::kCopy)
    value = value->operand(0);
  if (value->op() != Op::kSelect || !chain.row || !chain.column || along.Of(*value) == nullptr)
    return {};
  for (size_t masked : {1, 2}) {
    std::optional<double> splat = SplatOf(*value->operand(masked));
    if (!splat || (is_exponential ? !(*splat <= kMaskedScore) : *splat != 0)) continue;
    LiveColumns live;
    bool is_complete = true;
    MaskReader(chain).Restrict(*value->operand(0), *along.Of(*value), masked == 2, live,
                               is_complete);
    // In rows without live columns, weights are the same in all columns, unless they are NaN.
    bool is_infinite = is_exponential && std::isinf(*splat);
    int64_t rows = chain.row_count(), columns = chain.column_count();
    bool all_rows = (!live.last || *live.last >= 0) &&
                    (!live.first || rows + *live.first <= columns) &&
                    (!live.first || !live.last || *live.first <= *live.last);
    if (!all_rows || !(is_complete || is_infinite || !is_exponential)) continue;
    if (is_complete) live.select = value;
    live.live_operand = 3 - masked;
    return live;
  }
  return {};
}

}  // namespace tokamak
