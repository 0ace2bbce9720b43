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
  BackwardSlice(const Instr& last, ChainReductions reductions) : reductions_(reductions) {
    FindNearest(last);
    Order(last);
  }
  std::vector<const Instr*> instrs, dots, given;

 private:
  bool IsGiven(const Instr& instr) const {
    return reductions_ == ChainReductions::kGiven && IsChainReduction(instr);
  }
  bool IsEnd(const Instr& instr) const {
    return instr.op() == Op::kDot || instr.op() == Op::kParameter || IsGiven(instr);
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
        (IsGiven(*frame.instr) ? given : instrs).push_back(frame.instr);
        open.pop_back();
        continue;
      }
      const Instr* operand = frame.instr->operand(frame.next++);
      if (nearest_.contains(operand) && visited.insert(operand).second) open.push_back({operand});
    }
  }

  ChainReductions reductions_;
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

bool HasPlainDims(const Instr& dot) {
  return dot.op() == Op::kDot && dot.shape().IsArray() && dot.attrs<DotAttrs>().lhs_ragged.empty();
}

// The dimensions of a value of the chain that are not its rows or columns are batch dimensions.
// False if a dimension has no meaning.
bool SetBatch(DotChain& chain, const Dims& along) {
  for (size_t d = 0; d < along.size(); ++d) {
    int64_t dim = along[d];
    if (dim == DimsAlong::kUnit || chain.row == dim || chain.IsOfColumns(dim)) continue;
    if (dim == DimsAlong::kSame || std::ranges::count(chain.batch, dim) > 0) return false;
    chain.batch.push_back(dim);
  }
  std::ranges::sort(chain.batch);
  return true;
}

// The largest of several dimensions of rows has the rows; the others count as batch dimensions.
void MaySetRow(DotChain& chain, int64_t dim) {
  auto size = [&](int64_t d) { return SizeAt(chain.scores(), static_cast<size_t>(d)); };
  if (dim >= 0 && (!chain.row || size(dim) > size(*chain.row))) chain.row = dim;
}

// The largest of several contracted dimensions has the columns.
bool SetColumns(DotChain& chain, const Dims& along, const Dims& contracting) {
  auto size = [&](int64_t d) { return SizeAt(chain.scores(), static_cast<size_t>(d)); };
  for (int64_t d : contracting) {
    int64_t dim = along[static_cast<size_t>(d)];
    if (dim == DimsAlong::kUnit) continue;
    if (dim == DimsAlong::kSame || chain.IsOfColumns(dim)) return false;
    if (chain.column && size(dim) <= size(*chain.column)) {
      chain.outer_columns.push_back(dim);
      continue;
    }
    if (chain.column) chain.outer_columns.push_back(*chain.column);
    chain.column = dim;
  }
  std::ranges::sort(chain.outer_columns);
  return true;
}

// Finds how the dimensions of the weights, given along the scores, are used by a second dot. The
// first one decides which are rows and columns.
bool MatchSecond(DotChain& chain, const DotChain::Second& second, const Dims& along) {
  const DotAttrs& attrs = second.dot->attrs<DotAttrs>();
  bool is_lhs = second.weights_operand == 0;
  const Dims& contracting = is_lhs ? attrs.lhs_contracting : attrs.rhs_contracting;
  DotChain found;
  found.firsts = {chain.firsts[0]};
  if (!SetColumns(found, along, contracting)) return false;
  bool has_row = false;
  for (int64_t d :
       FreeDims(second.weights(), is_lhs ? attrs.lhs_batch : attrs.rhs_batch, contracting)) {
    int64_t dim = along[static_cast<size_t>(d)];
    if (dim == DimsAlong::kSame) return false;
    MaySetRow(found, dim);
    has_row = has_row || chain.row == dim;
  }
  if (!chain.seconds.empty() &&
      (found.column != chain.column || found.outer_columns != chain.outer_columns ||
       has_row != chain.row.has_value()))
    return false;
  if (!chain.seconds.empty()) found.row = chain.row;
  if (!SetBatch(found, along)) return false;
  if (!chain.seconds.empty()) return found.batch == chain.batch;
  chain.row = found.row;
  chain.column = found.column;
  chain.outer_columns = found.outer_columns;
  chain.batch = found.batch;
  return true;
}

// A chain that ends in a reduction, which removes the columns.
bool MatchReduction(DotChain& chain, const Instr& reduce, const Dims& along) {
  if (!OnlyDim(along, reduce.attrs<DimensionsAttrs>().dimensions, chain.column)) return false;
  auto batch = static_cast<int64_t>(chain.scores().attrs<DotAttrs>().lhs_batch.size());
  for (int64_t dim : along)
    if (dim >= batch && chain.column != dim) MaySetRow(chain, dim);
  return SetBatch(chain, along);
}

// Finds the operand of a first dot that has the rows. Each dimension of the scores has one meaning,
// and the other operand has only columns besides batch dimensions.
bool MatchFirst(const DotChain& chain, DotChain::First& first) {
  const DotAttrs& attrs = first.dot->attrs<DotAttrs>();
  size_t batch = attrs.lhs_batch.size();
  size_t lhs_free =
      batch + FreeDims(*first.dot->operand(0), attrs.lhs_batch, attrs.lhs_contracting).size();
  auto own = [&](int64_t dim) {
    return static_cast<size_t>(std::ranges::find(first.along, dim) - first.along.begin());
  };
  auto side = [&](int64_t dim) -> size_t { return own(dim) < lhs_free ? 0 : 1; };
  size_t dims = chain.batch.size();
  for (std::optional<int64_t> dim : {chain.row, chain.column}) {
    if (!dim) continue;
    if (own(*dim) < batch || own(*dim) == first.along.size()) return false;
    ++dims;
  }
  first.row_operand = chain.row ? side(*chain.row) : chain.column ? 1 - side(*chain.column) : 0;
  if (chain.column && side(*chain.column) == first.row_operand) return false;
  for (int64_t dim : chain.outer_columns) {
    if (own(dim) < batch || own(dim) == first.along.size() || side(dim) == first.row_operand)
      return false;
    ++dims;
  }
  for (int64_t dim : chain.batch)
    if (own(dim) == first.along.size() || (own(dim) >= batch && side(dim) != first.row_operand))
      return false;
  return static_cast<size_t>(
             std::ranges::count_if(first.along, [](int64_t dim) { return dim >= 0; })) == dims;
}

// The dimensions of a dot along the scores, from ops that combine its results with values whose
// dimensions are known; nullopt if they do not tell all.
std::optional<Dims> DimsOfDot(const Instr& dot, const std::vector<const Instr*>& instrs,
                              const DimsAlong& known) {
  DimsAlong own(dot);
  Dims along = *own.Of(dot);
  std::vector<bool> found(along.size());
  for (size_t d = 0; d < along.size(); ++d) found[d] = along[d] == DimsAlong::kUnit;
  for (const Instr* instr : instrs) {
    if (known.Of(*instr) == nullptr) own.Add(*instr);
    if (!instr->info().Is(kElementwise)) continue;
    for (const Instr* from : instr->operands()) {
      const Dims* from_own = known.Of(*from) == nullptr ? own.Of(*from) : nullptr;
      if (from_own == nullptr) continue;
      for (const Instr* other : instr->operands()) {
        const Dims* to = known.Of(*other);
        if (to == nullptr || to->size() != from_own->size()) continue;
        for (size_t d = 0; d < to->size(); ++d) {
          if ((*from_own)[d] < 0 || (*to)[d] < 0) continue;
          auto at = static_cast<size_t>((*from_own)[d]);
          if (found[at] && along[at] != (*to)[d]) return std::nullopt;
          along[at] = (*to)[d];
          found[at] = true;
        }
      }
    }
  }
  if (std::ranges::count(found, false) > 0) return std::nullopt;
  return along;
}

// What a chain may consist of. Operands before users.
struct ChainParts {
  std::vector<const Instr*> between;  // what does not depend on second dots, with first dots
  std::vector<const Instr*> firsts;
  std::vector<DotChain::Second> seconds;
};

DimsAlong AlongOf(const DotChain& chain) {
  DimsAlong along(chain.scores());
  for (const DotChain::First& first : chain.firsts) along.Seed(*first.dot, first.along);
  return along;
}

// Adds those first dots that are combined with the scores. `known`: the dimensions of what follows
// from the scores.
void AddFirsts(DotChain& chain, const ChainParts& parts, DimsAlong known) {
  for (size_t before = 0; before != chain.firsts.size();) {
    if (before > 0) {
      known = AlongOf(chain);
      for (const Instr* instr : parts.between) known.Add(*instr);
    }
    before = chain.firsts.size();
    for (const Instr* dot : parts.firsts) {
      if (chain.IsFirst(*dot)) continue;
      if (std::optional<Dims> dims = DimsOfDot(*dot, parts.between, known))
        chain.firsts.push_back({dot, *dims});
    }
  }
}

// Finds the chain whose scores are the results of this dot.
std::string ChainFrom(const Instr& scores, const ChainParts& parts, DotChain& chain,
                      std::optional<DimsAlong>& along) {
  chain = {};
  chain.firsts = {{&scores, *DimsAlong(scores).Of(scores)}};
  DimsAlong alone = AlongOf(chain);
  // Other first dots only add conditions: most dots are no scores, and that is seen here.
  for (const Instr* instr : parts.between)
    if (!alone.Add(*instr)) return "it combines elements between the dots";
  AddFirsts(chain, parts, std::move(alone));
  along = AlongOf(chain);
  for (const Instr* instr : parts.between)
    if (!along->Add(*instr)) return "it combines elements between the dots";
  for (const DotChain::Second& second : parts.seconds) {
    const Dims* weights = along->Of(second.weights());
    if (weights == nullptr || !MatchSecond(chain, second, *weights)) return "its dots are no chain";
    chain.seconds.push_back(second);
  }
  bool is_matched = !parts.seconds.empty();
  for (const Instr* instr : parts.between) {
    if (!IsChainReduction(*instr) || along->Of(*instr) == nullptr) continue;
    if (!is_matched && !MatchReduction(chain, *instr, *along->Of(*instr->operand(0))))
      return "its reductions are not of rows";
    is_matched = true;
    if (!chain.IsOfRows(*along->Of(*instr))) return "its reductions are not of rows";
  }
  if (!is_matched) return "nothing contracts or reduces the results of its dots";
  for (DotChain::First& first : chain.firsts)
    if (!MatchFirst(chain, first)) return "its dots are no chain";
  return "";
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
  return std::ranges::none_of(along, [&](int64_t dim) { return IsOfColumns(dim); });
}

bool IsConstantZero(const Instr& instr) {
  const Instr* value = &instr;
  while (value->op() == Op::kBroadcast || value->op() == Op::kReshape ||
         value->op() == Op::kConvert)
    value = value->operand(0);
  if (value->op() != Op::kConstant || !value->shape().IsArray()) return false;
  const Literal& literal = value->attrs<ConstantAttrs>().literal;
  if (value->shape().ElementCount() != 1) return false;
  return IsComplex(literal.type()) ? literal.ComplexAt(0) == 0.0 : literal.DoubleAt(0) == 0;
}

bool IsChainReduction(const Instr& instr) {
  if (instr.op() != Op::kReduce) return false;
  if (!instr.shape().IsArray()) return true;
  const Dims& dims = instr.attrs<DimensionsAttrs>().dimensions;
  return std::ranges::any_of(
      dims, [&](int64_t d) { return SizeAt(*instr.operand(0), static_cast<size_t>(d)) != 1; });
}

bool DotChain::IsFirst(const Instr& instr) const {
  return std::ranges::count(firsts, &instr, &First::dot) > 0;
}

std::string FindDotChain(const std::vector<const Instr*>& instrs, DotChain& chain,
                         std::optional<DimsAlong>& along) {
  ChainParts parts;
  std::vector<const Instr*> seconds;
  std::unordered_set<const Instr*> after_firsts, after_seconds;
  for (const Instr* instr : instrs) {
    auto follows = [&](const std::unordered_set<const Instr*>& values) {
      return std::ranges::any_of(instr->operands(),
                                 [&](const Instr* operand) { return values.contains(operand); });
    };
    bool is_dot = instr->op() == Op::kDot, is_second = is_dot && follows(after_firsts);
    if (is_dot && (!HasPlainDims(*instr) || follows(after_seconds))) return "its dots are no chain";
    if (is_dot) (is_second ? seconds : parts.firsts).push_back(instr);
    if (is_dot || follows(after_firsts)) after_firsts.insert(instr);
    if (is_second || follows(after_seconds)) {
      after_seconds.insert(instr);
    } else {
      parts.between.push_back(instr);
    }
  }
  if (parts.firsts.empty()) return "it has no dot";
  std::string why = "its dots are no chain";
  // Weights are the operand that depends on a first dot.
  for (const Instr* second : seconds)
    parts.seconds.push_back({second, after_firsts.contains(second->operand(0)) ? 0U : 1U});
  why = ChainFrom(*parts.firsts[0], parts, chain, along);
  if (why.empty() && chain.firsts.size() != parts.firsts.size())
    return "the results of its first dots are not combined";
  return why;
}

std::optional<ChainSlice> ChainSliceOf(const Instr& last, ChainReductions reductions) {
  bool is_dot = HasPlainDims(last);
  if (!is_dot && (last.op() != Op::kReduce || !last.shape().IsArray())) return std::nullopt;
  for (size_t operand = 0; operand < (is_dot ? 2 : 1); ++operand) {
    BackwardSlice slice(*last.operand(operand), reductions);
    ChainParts parts{slice.instrs, {}, {}};
    std::ranges::copy_if(slice.dots, std::back_inserter(parts.firsts),
                         [](const Instr* dot) { return HasPlainDims(*dot); });
    if (is_dot) parts.seconds = {{&last, operand}};
    if (!is_dot) parts.between.push_back(&last);
    for (const Instr* scores : parts.firsts) {
      ChainSlice found;
      std::optional<DimsAlong> along;
      if (!ChainFrom(*scores, parts, found.chain, along).empty()) continue;
      for (const Instr* instr : parts.between)
        if (along->Of(*instr) != nullptr) found.instrs.push_back(instr);
      if (is_dot) found.instrs.push_back(&last);
      found.given = slice.given;
      return found;
    }
  }
  return std::nullopt;
}

namespace {

// The chains that may end at an instruction.
std::vector<ChainSlice> SlicesOf(const Instr& last) {
  std::vector<ChainSlice> all;
  for (ChainReductions reductions : {ChainReductions::kInside, ChainReductions::kGiven})
    if (std::optional<ChainSlice> slice = ChainSliceOf(last, reductions))
      all.push_back(std::move(*slice));
  return all;
}

}  // namespace

bool IsInDotChain(const Instr& dot) {
  if (!SlicesOf(dot).empty()) return true;
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
      } else if (std::ranges::any_of(SlicesOf(*user), [&](const ChainSlice& slice) {
                   return slice.chain.IsFirst(dot);
                 })) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace tokamak
