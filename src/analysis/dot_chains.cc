#include "analysis/dot_chains.h"

#include <algorithm>
#include <unordered_set>

namespace tokamak {
namespace {

// Instructions between two dots at most. Chosen: attention with dropout and a mask has 50; it
// bounds the search.
constexpr size_t kMaxInside = 150;

int64_t SizeAt(const Instr& instr, size_t d) {
  return instr.shape().dim(d);
}

bool IsCopyOrBarrier(Op op) {
  return op == Op::kCopy || op == Op::kOptimizationBarrier;
}

// The values that `last` depends on, operands before users, without what dots depend on. The
// nearest kMaxInside of them: what is further away counts as given.
class BackwardSlice {
 public:
  explicit BackwardSlice(const Instr& last) {
    FindNearest(last);
    Order(last);
  }
  std::vector<const Instr*> instrs, dots;

 private:
  static bool IsEnd(const Instr& instr) {
    return instr.op() == Op::kDot || instr.op() == Op::kParameter;
  }

  void FindNearest(const Instr& last) {
    std::vector<const Instr*> queue = {&last};
    nearest_.insert(&last);
    for (size_t i = 0; i < queue.size(); ++i) {
      if (queue[i]->op() == Op::kDot) dots.push_back(queue[i]);
      if (IsEnd(*queue[i])) continue;
      for (const Instr* operand : queue[i]->operands())
        if (nearest_.size() < kMaxInside && nearest_.insert(operand).second)
          queue.push_back(operand);
    }
  }

  // Without recursion: chains of elementwise ops may be long.
  void Order(const Instr& last) {
    struct Frame {
      const Instr* instr;
      size_t next = 0;
    };
    std::vector<Frame> open = {{&last}};
    std::unordered_set<const Instr*> visited = {&last};
    while (!open.empty()) {
      Frame& frame = open.back();
      if (IsEnd(*frame.instr) || frame.next == frame.instr->operand_count()) {
        instrs.push_back(frame.instr);
        open.pop_back();
        continue;
      }
      const Instr* operand = frame.instr->operand(frame.next++);
      if (nearest_.contains(operand) && visited.insert(operand).second) open.push_back({operand});
    }
  }

  std::unordered_set<const Instr*> nearest_;
};

// The only dimension of `along` among these that has more than one index: nullopt if none has,
// false if several have.
bool OnlyDim(const Dims& along, const Dims& which, std::optional<int64_t>& only) {
  for (int64_t d : which) {
    int64_t dim = along[static_cast<size_t>(d)];
    if (dim == DimsAlong::kUnit) continue;
    if (dim == DimsAlong::kSame || only) return false;
    only = dim;
  }
  return true;
}

Dims FreeDims(const Instr& operand, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < operand.shape().rank(); ++d)
    if (std::ranges::count(batch, d) == 0 && std::ranges::count(contracting, d) == 0)
      free.push_back(d);
  return free;
}

// Finds how the dimensions of the weights, given along the scores, are used by the product. The
// largest of several dimensions of rows has the rows; the others count as batch dimensions.
bool MatchProduct(DotChain& chain, const Dims& along) {
  const DotAttrs& attrs = chain.product->attrs<DotAttrs>();
  bool is_lhs = chain.weights_operand == 0;
  const Dims& contracting = is_lhs ? attrs.lhs_contracting : attrs.rhs_contracting;
  if (!OnlyDim(along, contracting, chain.column)) return false;
  auto size = [&](int64_t dim) { return SizeAt(*chain.scores, static_cast<size_t>(dim)); };
  for (int64_t d :
       FreeDims(chain.weights(), is_lhs ? attrs.lhs_batch : attrs.rhs_batch, contracting)) {
    int64_t dim = along[static_cast<size_t>(d)];
    if (dim == DimsAlong::kSame) return false;
    if (dim >= 0 && (!chain.row || size(dim) > size(*chain.row))) chain.row = dim;
  }
  for (size_t d = 0; d < along.size(); ++d) {
    int64_t dim = along[d];
    if (dim == DimsAlong::kUnit || chain.row == dim || chain.column == dim) continue;
    if (dim == DimsAlong::kSame || std::ranges::count(chain.batch, dim) > 0) return false;
    chain.batch.push_back(dim);
  }
  std::ranges::sort(chain.batch);
  return true;
}

// Finds the operand of the scores that has the rows. Each dimension of the scores has one meaning,
// and the other operand has only columns besides batch dimensions.
bool MatchScores(DotChain& chain) {
  const Instr& scores = *chain.scores;
  const DotAttrs& attrs = scores.attrs<DotAttrs>();
  auto batch = static_cast<int64_t>(attrs.lhs_batch.size());
  int64_t lhs_free =
      batch + static_cast<int64_t>(
                  FreeDims(*scores.operand(0), attrs.lhs_batch, attrs.lhs_contracting).size());
  auto side = [&](int64_t dim) -> size_t { return dim < lhs_free ? 0 : 1; };
  if ((chain.row && *chain.row < batch) || (chain.column && *chain.column < batch)) return false;
  chain.row_operand = chain.row ? side(*chain.row) : chain.column ? 1 - side(*chain.column) : 0;
  if (chain.column && side(*chain.column) == chain.row_operand) return false;
  for (int64_t dim : chain.batch)
    if (dim >= batch && side(dim) != chain.row_operand) return false;
  auto dims =
      static_cast<int64_t>(chain.batch.size()) + (chain.row ? 1 : 0) + (chain.column ? 1 : 0);
  for (size_t d = 0; d < static_cast<size_t>(scores.shape().rank()); ++d)
    dims -= SizeAt(scores, d) == 1 ? 0 : 1;
  return dims == 0;
}

bool HasPlainDims(const Instr& dot) {
  return dot.op() == Op::kDot && dot.shape().IsArray() && dot.attrs<DotAttrs>().lhs_ragged.empty();
}

std::optional<DotChain> ChainFrom(const Instr& product, size_t operand, const BackwardSlice& slice,
                                  const Instr& scores) {
  DotChain chain;
  chain.scores = &scores;
  chain.product = &product;
  chain.weights_operand = operand;
  DimsAlong along(scores);
  for (const Instr* instr : slice.instrs)
    if (!along.Add(*instr)) return std::nullopt;
  const Dims* weights = along.Of(chain.weights());
  if (weights == nullptr || !MatchProduct(chain, *weights) || !MatchScores(chain))
    return std::nullopt;
  for (const Instr* instr : slice.instrs) {
    if (instr->op() != Op::kReduce || along.Of(*instr) == nullptr) continue;
    if (!chain.IsOfRows(*along.Of(*instr))) return std::nullopt;
  }
  return chain;
}

}  // namespace

DimsAlong::DimsAlong(const Instr& from) {
  Dims along;
  for (size_t d = 0; d < static_cast<size_t>(from.shape().rank()); ++d)
    along.push_back(SizeAt(from, d) == 1 ? kUnit : static_cast<int64_t>(d));
  along_.emplace(&from, std::move(along));
}

const Dims* DimsAlong::Of(const Instr& instr) const {
  auto found = along_.find(&instr);
  return found == along_.end() ? nullptr : &found->second;
}

bool DimsAlong::Put(const Instr& instr, Dims along) {
  along_.insert_or_assign(&instr, std::move(along));
  return true;
}

bool DimsAlong::Add(const Instr& instr) {
  if (Of(instr) != nullptr) return true;
  bool depends = std::ranges::any_of(instr.operands(),
                                     [&](const Instr* operand) { return Of(*operand) != nullptr; });
  if (!depends) return true;
  if (!instr.shape().IsArray()) return false;
  const Dims* from = Of(*instr.operand(0));
  if (IsUnpadded(instr)) return Put(instr, *from);
  if (std::ranges::any_of(instr.operands(),
                          [&](const Instr* operand) { return padded_.contains(operand); }))
    return false;
  if (instr.info().Is(kElementwise)) return instr.op() != Op::kMap && AddElementwise(instr);
  if (from == nullptr || instr.operand_count() > 2) return false;
  if (IsCopyOrBarrier(instr.op())) return instr.operand_count() == 1 && Put(instr, *from);
  if (instr.op() == Op::kReshape) return AddReshape(instr, *from);
  if (instr.op() == Op::kPad) return AddPadded(instr, *from);
  if (instr.op() == Op::kTranspose) {
    Dims along;
    for (int64_t d : instr.attrs<DimensionsAttrs>().dimensions)
      along.push_back((*from)[static_cast<size_t>(d)]);
    return Put(instr, std::move(along));
  }
  if (instr.op() == Op::kBroadcast) {
    const Dims& dimensions = instr.attrs<DimensionsAttrs>().dimensions;
    Dims along;
    for (size_t d = 0; d < static_cast<size_t>(instr.shape().rank()); ++d)
      along.push_back(SizeAt(instr, d) == 1 ? kUnit : kSame);
    for (size_t i = 0; i < dimensions.size(); ++i)
      along[static_cast<size_t>(dimensions[i])] = (*from)[i];
    return Put(instr, std::move(along));
  }
  if (instr.op() != Op::kReduce || instr.captures() > 0 || Of(*instr.operand(1)) != nullptr)
    return false;
  const Dims& reduced = instr.attrs<DimensionsAttrs>().dimensions;
  Dims along;
  for (size_t d = 0; d < from->size(); ++d)
    if (std::ranges::count(reduced, static_cast<int64_t>(d)) == 0) along.push_back((*from)[d]);
  return Put(instr, std::move(along));
}

bool DimsAlong::IsUnpadded(const Instr& instr) const {
  if (instr.op() != Op::kSlice || !padded_.contains(instr.operand(0))) return false;
  const auto& attrs = instr.attrs<SliceAttrs>();
  return instr.shape().dims() == instr.operand(0)->operand(0)->shape().dims() &&
         std::ranges::count(attrs.starts, 0) == instr.shape().rank() &&
         std::ranges::count(attrs.strides, 1) == instr.shape().rank();
}

bool DimsAlong::AddPadded(const Instr& instr, const Dims& from) {
  const auto& attrs = instr.attrs<PadAttrs>();
  auto is_zero = [](const Dims& dims) {
    return std::ranges::all_of(dims, [](int64_t x) { return x == 0; });
  };
  bool at_end = is_zero(attrs.low) && is_zero(attrs.interior) &&
                std::ranges::all_of(attrs.high, [](int64_t x) { return x >= 0; });
  if (!at_end || Of(*instr.operand(1)) != nullptr) return false;
  padded_.insert(&instr);
  return Put(instr, from);
}

// Operands agree in each dimension, or are the same at all of its indices.
bool DimsAlong::AddElementwise(const Instr& instr) {
  Dims along(static_cast<size_t>(instr.shape().rank()), kSame);
  for (size_t d = 0; d < along.size(); ++d)
    if (SizeAt(instr, d) == 1) along[d] = kUnit;
  for (const Instr* operand : instr.operands()) {
    const Dims* from = Of(*operand);
    if (from == nullptr || operand->shape().IsScalar()) continue;
    for (size_t d = 0; d < along.size(); ++d) {
      if ((*from)[d] == kSame || (*from)[d] == along[d]) continue;
      if (along[d] != kSame) return false;
      along[d] = (*from)[d];
    }
  }
  return Put(instr, std::move(along));
}

// Reshapes only insert or remove dimensions of size 1.
bool DimsAlong::AddReshape(const Instr& instr, const Dims& from) {
  const Dims &to_sizes = instr.shape().dims(), &from_sizes = instr.operand(0)->shape().dims();
  Dims along(to_sizes.size(), kUnit);
  size_t next = 0;
  for (size_t d = 0; d < to_sizes.size(); ++d) {
    if (to_sizes[d] == 1) continue;
    while (next < from_sizes.size() && from_sizes[next] == 1) ++next;
    if (next == from_sizes.size() || from_sizes[next] != to_sizes[d]) return false;
    along[d] = from[next++];
  }
  return Put(instr, std::move(along));
}

bool DotChain::IsOfRows(const Dims& along) const {
  return !column || std::ranges::count(along, *column) == 0;
}

std::optional<DotChain> DotChainOf(const Instr& product) {
  if (!HasPlainDims(product)) return std::nullopt;
  for (size_t operand : {0, 1}) {
    BackwardSlice slice(*product.operand(operand));
    for (const Instr* scores : slice.dots)
      if (HasPlainDims(*scores))
        if (std::optional<DotChain> chain = ChainFrom(product, operand, slice, *scores))
          return chain;
  }
  return std::nullopt;
}

bool IsInDotChain(const Instr& dot) {
  if (DotChainOf(dot)) return true;
  // The first dot: the chains of the dots that its results reach.
  std::unordered_set<const Instr*> seen = {&dot};
  std::vector<const Instr*> open = {&dot};
  while (!open.empty() && seen.size() <= kMaxInside) {
    const Instr* next = open.back();
    open.pop_back();
    for (const Instr* user : next->users()) {
      if (!seen.insert(user).second) continue;
      if (user->op() != Op::kDot) {
        open.push_back(user);
      } else if (std::optional<DotChain> chain = DotChainOf(*user);
                 chain && chain->scores == &dot) {
        return true;
      }
    }
  }
  return false;
}

std::vector<const Instr*> InsideOf(const DotChain& chain) {
  std::vector<const Instr*> inside = BackwardSlice(chain.weights()).instrs;
  DimsAlong along(*chain.scores);
  for (const Instr* instr : inside) along.Add(*instr);
  std::erase_if(inside, [&](const Instr* instr) { return along.Of(*instr) == nullptr; });
  return inside;
}

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
    Dependence weights = Of(chain_.weights());
    if (!why_.empty()) return why_;
    if (weights == Dependence::kElement) return running_.scaled.empty() ? "" : NoLinear();
    return weights == Dependence::kLinear ? "" : NoLinear();
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
    if (&instr == chain_.scores) return Dependence::kElement;
    if (along_.Of(instr) == nullptr) return Dependence::kNone;
    if (instr.op() == Op::kReduce) return Reduced(instr);
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
      if (IsZero(*instr.operand(3 - i)) && Of(*instr.operand(i)) == Dependence::kLinear)
        return Linear(instr, i);
    return Dependence::kOther;
  }

  static bool IsZero(const Instr& instr) {
    const Instr* value = &instr;
    while (value->op() == Op::kBroadcast || value->op() == Op::kReshape ||
           value->op() == Op::kConvert)
      value = value->operand(0);
    return value->op() == Op::kConstant && value->shape().ElementCount() == 1 &&
           value->attrs<ConstantAttrs>().literal.BitsAt(0) == 0;
  }

  // Without broadcasts along the columns; null if elements are computed after the broadcast.
  const Instr* RowValueOf(const Instr& instr) const {
    const Instr* value = &instr;
    while (value->op() == Op::kBroadcast || value->op() == Op::kReshape ||
           value->op() == Op::kTranspose || IsCopyOrBarrier(value->op()))
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
