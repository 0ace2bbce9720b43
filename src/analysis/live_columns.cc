#include "analysis/live_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tokamak {
namespace {

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

// The number of all elements of an array; nullopt if they differ. Of select(p, -infinity, x), which
// is one number as well, sets `scalar` and returns -infinity.
std::optional<double> SplatOf(const Instr& instr, const Instr** scalar = nullptr) {
  const Instr* value = &instr;
  while (value->op() == Op::kBroadcast || value->op() == Op::kReshape ||
         value->op() == Op::kConvert)
    value = value->operand(0);
  if (!value->shape().IsArray() || value->shape().ElementCount() != 1 ||
      !IsReal(value->shape().type()))
    return std::nullopt;
  if (value->op() == Op::kSelect && scalar != nullptr) {
    std::optional<double> low = SplatOf(*value->operand(1));
    if (!low || !std::isinf(*low) || *low > 0) return std::nullopt;
    *scalar = value;
    return low;
  }
  if (value->op() != Op::kConstant) return std::nullopt;
  return value->attrs<ConstantAttrs>().literal.DoubleAt(0);
}

bool ReducesBy(Op op, const Instr& reduce) {
  const Instr* root = reduce.called(0)->root();
  return root->op() == op && root->operand(0) != root->operand(1);
}

bool OnlyChangesForm(const Instr& instr) {
  return instr.op() == Op::kConvert || instr.op() == Op::kReshape || instr.op() == Op::kCopy;
}

// The columns at which values of a chain may differ from zero.
class ZeroColumns {
 public:
  ZeroColumns(const DotChain& chain, const DimsAlong& along) : chain_(chain), along_(along) {}

  LiveColumns Of(const Instr& value) const {
    if (along_.Of(value) == nullptr || steps_-- <= 0) return {};
    if (along_.IsUnpadded(value)) return Of(*value.operand(0)->operand(0));
    if (OnlyChangesForm(value) || value.op() == Op::kTranspose || value.op() == Op::kNegate ||
        value.op() == Op::kDivide)
      return Of(*value.operand(0));
    LiveColumns live;
    if (value.op() == Op::kMultiply)
      for (const Instr* operand : value.operands()) Narrow(live, Of(*operand));
    if (value.op() == Op::kSelect) return OfSelect(value);
    if (value.op() == Op::kExp && value.operand(0)->op() == Op::kSubtract)
      return OfExponential(*value.operand(0));
    return live;
  }

  // The columns with a masked value of at most `most`.
  LiveColumns OfMask(const Instr& select, double most, bool& is_sure) const {
    for (size_t masked : {1, 2}) {
      const Instr* scalar = nullptr;
      std::optional<double> splat = SplatOf(*select.operand(masked), &scalar);
      if (!splat || !(*splat <= most) || (most == 0 && *splat != 0)) continue;
      LiveColumns live;
      bool is_complete = true;
      MaskReader(chain_).Restrict(*select.operand(0), *along_.Of(select), masked == 2, live,
                                  is_complete);
      live.live_operand = 3 - masked;
      live.masked = scalar;
      if (is_complete) live.select = &select;
      is_sure = is_complete || std::isinf(*splat);
      return live;
    }
    return {};
  }

  // Whether each row has a live column.
  bool HasAllRows(const LiveColumns& live) const {
    return (!live.last || *live.last >= 0) &&
           (!live.first || chain_.row_count() + *live.first <= chain_.column_count()) &&
           (!live.first || !live.last || *live.first <= *live.last);
  }

 private:
  // Limits that depend on one scalar at most.
  static void Narrow(LiveColumns& live, const LiveColumns& by) {
    if (live.masked != nullptr && by.masked != nullptr && live.masked != by.masked) return;
    if (by.masked != nullptr) live.masked = by.masked;
    if (by.first) live.first = std::max(live.first.value_or(*by.first), *by.first);
    if (by.last) live.last = std::min(live.last.value_or(*by.last), *by.last);
  }

  LiveColumns OfSelect(const Instr& select) const {
    bool is_sure = false;
    LiveColumns live = OfMask(select, 0, is_sure);
    if (live.live_operand == 0) return {};
    Narrow(live, Of(*select.operand(live.live_operand)));
    return live;
  }

  // exp(x - shift): the shift is not as low as masked values, because it follows from a row
  // (column) that has others.
  LiveColumns OfExponential(const Instr& difference) const {
    const Instr* x = difference.operand(0);
    while (OnlyChangesForm(*x)) x = x->operand(0);
    if (x->op() != Op::kSelect || along_.Of(*x) == nullptr || !chain_.row || !chain_.column)
      return {};
    bool is_sure = false;
    LiveColumns live = OfMask(*x, kMaskedScore, is_sure);
    if (!is_sure) return {};
    const Instr* shift = difference.operand(1);
    if (shift->op() != Op::kBroadcast) return {};
    const Dims &along = *along_.Of(difference), &dims = shift->attrs<DimensionsAttrs>().dimensions;
    auto varies = [&](int64_t dim) {
      return std::ranges::any_of(dims,
                                 [&](int64_t d) { return along[static_cast<size_t>(d)] == dim; });
    };
    bool fits =
        !varies(*chain_.column) ? HasAllRows(live) : !varies(*chain_.row) && HasAllColumns(live);
    return fits ? live : LiveColumns{};
  }

  bool HasAllColumns(const LiveColumns& live) const {
    return (!live.first || *live.first <= 0) &&
           (!live.last || chain_.column_count() - *live.last <= chain_.row_count()) &&
           (!live.first || !live.last || *live.first <= *live.last);
  }

  // Values to look at. Chosen: more than attention has; it bounds the search of shared operands.
  static constexpr int kMaxSteps = 1000;
  const DotChain& chain_;
  const DimsAlong& along_;
  mutable int steps_ = kMaxSteps;
};

// Of a chain with an exponential, all of whose values of rows follow from live columns.
LiveColumns LiveColumnsOfExponential(const DotChain& chain, const RunningChain& running,
                                     const DimsAlong& along, double most) {
  for (const Instr* reduce : running.plain)
    if (reduce->operand(0) != running.x || !ReducesBy(Op::kMaximum, *reduce)) return {};
  const Instr* value = running.x;
  while (OnlyChangesForm(*value)) value = value->operand(0);
  if (value->op() != Op::kSelect || along.Of(*value) == nullptr) return {};
  // In rows without live columns, weights are the same in all columns, unless they are NaN.
  bool is_sure = false;
  ZeroColumns columns(chain, along);
  LiveColumns live = columns.OfMask(*value, most, is_sure);
  return is_sure && columns.HasAllRows(live) ? live : LiveColumns{};
}

}  // namespace

LiveColumns LiveColumnsOf(const DotChain& chain, const RunningChain& running,
                          const DimsAlong& along, double most) {
  if (!chain.row || !chain.column) return {};
  if (running.exponential != nullptr) return LiveColumnsOfExponential(chain, running, along, most);
  // All columns that a sum needs.
  LiveColumns live;
  bool is_first = true;
  auto add = [&](LiveColumns columns) {
    if (is_first) live = columns;
    if (live.masked != nullptr && columns.masked != nullptr && live.masked != columns.masked)
      columns = {};
    if (columns.masked != nullptr) live.masked = columns.masked;
    live.first = live.first && columns.first ? std::optional(std::min(*live.first, *columns.first))
                                             : std::nullopt;
    live.last = live.last && columns.last ? std::optional(std::max(*live.last, *columns.last))
                                          : std::nullopt;
    is_first = false;
  };
  ZeroColumns columns(chain, along);
  for (const DotChain::Second& second : chain.seconds) add(columns.Of(second.weights()));
  for (const Instr* reduce : running.plain)
    add(ReducesBy(Op::kAdd, *reduce) ? columns.Of(*reduce->operand(0)) : LiveColumns{});
  return live;
}

}  // namespace tokamak
