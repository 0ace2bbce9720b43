// Reductions of the elements of a dot against the weights of another dot, as in the gradient of a
// softmax, become reductions of the other dot's results:
//
//   sum_j w[i,j] (sum_d g[i,d] v[j,d])  =  sum_d g[i,d] (sum_j w[i,j] v[j,d])
//         w[i,j] dot(g, v)[i,j]                g[i,d] dot(w, v)[i,d]
//
// The program computes dot(w, v) anyway: it is the product of attention. Its rows have the size of
// a head, and those of dot(g, v) have one element per key, which a kernel of the chain would have
// to compute just for the sum. Factors that are the same in all columns, such as reciprocals of a
// softmax's sums, are applied to the sum.
//
// It pays if the sum takes longer beside its terms: in a kernel that computes both dots again, or
// that reads their results. Small sums are better computed there.
//
// The new sum has other roundings: those of dot(w, v) and of w instead of those of dot(g, v). They
// must not be coarser (docs/numerics.md).

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "analysis/dot_chains.h"
#include "analysis/product_factors.h"
#include "cost/machine.h"
#include "cost/work.h"
#include "gen/dot_dimensions.h"
#include "gen/reducer.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Values that follow from an array by moves and conversions. Chosen: attention has a few.
constexpr size_t kMaxMoved = 64;
// Values between a reduction and a dot that may depend on it: the search visits no more. Chosen:
// more than attention has.
constexpr size_t kMaxVisited = 500;
// Rows, and threads, of a block. Chosen: a tile of attention has as many.
constexpr double kRowsOfBlock = 128;

constexpr int64_t kUnitDim = DimsAlong::kUnit;

bool Contains(const Dims& dims, int64_t dim) {
  return std::ranges::count(dims, dim) > 0;
}

Dims WithoutUnits(Dims dims) {
  std::erase(dims, kUnitDim);
  return dims;
}

int MantissaBitsOf(const Instr& instr) {
  return FormatOf(instr.shape().type()).mantissa_bits;
}

// Widens 16-bit numbers to f32: exact.
bool IsWidening(const Instr& instr) {
  return instr.op() == Op::kConvert && instr.shape().type() == ElementType::kF32 &&
         (instr.operand(0)->shape().type() == ElementType::kBF16 ||
          instr.operand(0)->shape().type() == ElementType::kF16);
}

bool IsPlainDot(const Instr& instr) {
  return instr.op() == Op::kDot && IsPlainArray(instr.shape()) && IsReal(instr.shape().type()) &&
         instr.attrs<DotAttrs>().lhs_ragged.empty() && !HasControlDependencies(instr);
}

// The dimensions of a dot are those of its results, followed by the contracted ones. Returns them
// for each dimension of an operand.
Dims DotDimsOf(const Instr& dot, size_t operand) {
  DotDimensions dims(dot);
  const DotAttrs& attrs = dims.attrs;
  const Dims& batch = operand == 0 ? attrs.lhs_batch : attrs.rhs_batch;
  const Dims& contracting = operand == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
  const Dims& free = operand == 0 ? dims.lhs_free : dims.rhs_free;
  size_t first = batch.size() + (operand == 0 ? 0 : dims.lhs_free.size());
  Dims all(batch.size() + contracting.size() + free.size());
  auto set = [&](const Dims& which, size_t from) {
    for (size_t i = 0; i < which.size(); ++i)
      all[static_cast<size_t>(which[i])] = static_cast<int64_t>(from + i);
  };
  set(batch, 0);
  set(free, first);
  set(contracting, static_cast<size_t>(dot.shape().rank()));
  return all;
}

// The value that moves and exact conversions begin with.
const Instr& OriginOf(const Instr& value) {
  ValueAlong at = AlongItself(value);
  while (true) {
    if (IsWidening(*at.instr)) {
      at.instr = at.instr->operand(0);
    } else if (std::optional<ValueAlong> from = BeforeMove(at);
               from && at.instr->op() != Op::kBroadcast) {
      at = std::move(*from);
    } else {
      return *at.instr;
    }
  }
}

// A dot that reads an array through moves and exact conversions.
struct DotWith {
  Instr* dot = nullptr;
  size_t operand = 0;
  Dims along;  // dimensions of the array, for each of the operand's
};
std::vector<DotWith> DotsWith(const Instr& array) {
  std::vector<DotWith> dots;
  DimsAlong along(array);
  std::vector<const Instr*> open = {&array};
  std::unordered_set<const Instr*> seen;
  for (size_t i = 0; i < open.size() && i < kMaxMoved; ++i)
    for (Instr* user : open[i]->users()) {
      if (!seen.insert(user).second) continue;
      if (IsPlainDot(*user)) {
        for (size_t operand : {0, 1})
          if (user->operand(operand) == open[i])
            dots.push_back({user, operand, *along.Of(*open[i])});
      } else if ((IsWidening(*user) ||
                  (user->op() != Op::kBroadcast && BeforeMove(AlongItself(*user)))) &&
                 along.Add(*user)) {
        open.push_back(user);
      }
    }
  return dots;
}

using ReductionPositions = std::unordered_map<const Instr*, size_t>;

// Whether a value may depend on another one. Values between them are after it in the program.
bool MayDependOn(const Instr& value, const Instr& on, const ReductionPositions& positions) {
  std::vector<const Instr*> open = {&value};
  std::unordered_set<const Instr*> seen = {&value};
  for (size_t i = 0; i < open.size(); ++i) {
    if (open[i] == &on || i > kMaxVisited) return true;
    for (const Instr* operand : open[i]->operands()) {
      auto position = positions.find(operand);
      bool is_after = position == positions.end() || position->second >= positions.at(&on);
      if (is_after && seen.insert(operand).second) open.push_back(operand);
    }
  }
  return false;
}

// The sum of a product one of whose factors is a dot. All dimensions below are those of the summed
// array ("terms"), followed by those that the dot contracts.
class SumOfDot {
 public:
  SumOfDot(Instr& reduce, const ReductionPositions& positions)
      : reduce_(reduce), terms_(*reduce.operand(0)), positions_(positions), make_(reduce) {}

  bool IsSum() const {
    if (WhyNoReduceKernel(reduce_) || !reduce_.shape().IsArray() || reduce_.captures() > 0 ||
        HasControlDependencies(reduce_) || !IsReal(terms_.shape().type()) ||
        MantissaBitsOf(terms_) > FormatOf(ElementType::kF32).mantissa_bits)
      return false;
    Reducer reducer = ReducerOf(reduce_);
    const Instr& init = *reduce_.operand(1);
    return reducer.ops == std::vector{Op::kAdd} && init.op() == Op::kConstant &&
           init.attrs<ConstantAttrs>().literal.DoubleAt(0) == 0;
  }

  // Finds the other dot, which is then other(); false if there is none.
  bool Find() {
    ValueAlong itself = AlongItself(terms_);
    for (int64_t d : reduce_.attrs<DimensionsAttrs>().dimensions)
      if (itself.along[static_cast<size_t>(d)] != kUnitDim) summed_.push_back(d);
    if (summed_.empty()) return false;
    factors_ = FactorsOf(terms_, summed_);
    for (const Factor& factor : factors_.all)
      if (factor.how == Factor::How::kTimes && IsPlainDot(*factor.value.instr) && SetDot(factor)) {
        const std::vector<DotWith> dots = DotsWith(OriginOf(*dot_->operand(columns_operand_)));
        for (const DotWith& other : dots)
          if (IsOther(other, dots)) return true;
      }
    return false;
  }
  const Instr& dot() const { return *dot_; }
  const Instr& other() const { return *other_; }

  // Microseconds of the sum beside its terms, without a launch: in a kernel that computes the
  // results of both dots again, or in one that reads them.
  double CostOfTerms(const Machine& machine) const {
    auto terms = static_cast<double>(terms_.shape().ElementCount());
    Work again = SumWork();
    // The products of the factors, and their sum.
    AddElementOp(again, terms_, terms * static_cast<double>(factors_.all.size() + 1), machine);
    Work read = again;
    again[Pipe::kTensor] = 2 * terms * static_cast<double>(DotDimensions(*dot_).k);
    for (const Instr* of : {dot_, other_weights_})
      read.reads += terms * BytesOf(of->shape().type());
    read.tasks = static_cast<double>(reduce_.shape().ElementCount());
    auto beside = [&](const Work& work) {
      CostEstimate cost = EstimateCost(work, machine);
      return cost.total() - cost.launch;
    };
    return std::min(beside(again), beside(read));
  }
  // The sum of the other dot's results.
  CostEstimate CostOfOther(const Machine& machine) const {
    Work work = SumWork();
    const Instr* factor = dot_->operand(1 - columns_operand_);
    for (const Instr* of : {factor, other_})
      work.reads += static_cast<double>(of->shape().ElementCount() * BytesOf(of->shape().type()));
    return EstimateCost(work, machine);
  }

  void Replace() {
    ValueAlong product = StoredProduct();
    Dims order = WithoutUnits(product.along), of_sum = order;
    Instr* factor = Ordered(*dot_->operand(1 - columns_operand_), rows_along_, order);
    Instr* terms = Ordered(*product.instr, product.along, order);
    terms = make_.Make(Op::kMultiply, terms->shape(), {factor, terms});
    std::erase_if(of_sum, [&](int64_t dim) { return Contains(contracted_, dim); });
    DimensionsAttrs summed;
    Dims sizes;
    for (size_t d = 0; d < order.size(); ++d) {
      if (Contains(contracted_, order[d]))
        summed.dimensions.push_back(static_cast<int64_t>(d));
      else
        sizes.push_back(terms->shape().dim(d));
    }
    Instr* zero = make_.Constant(Literal::Scalar(ElementType::kF32, 0));
    Instr* sum = make_.Make(Op::kReduce, Shape::Array(ElementType::kF32, sizes), {terms, zero},
                            std::move(summed), AdditionFor(reduce_, ElementType::kF32));
    for (const Factor& of : row_factors_) sum = Times(sum, of, of_sum);
    if (is_negative_) sum = make_.Make(Op::kNegate, sum->shape(), {sum});
    Dims ascending = of_sum;
    std::ranges::sort(ascending);
    sum = make_.Converted(Ordered(*sum, of_sum, ascending), reduce_.shape().type());
    make_.Replace(make_.Reshaped(sum, reduce_.shape().dims()));
  }

 private:
  // The other dot after all moves of its results, if nothing else uses them: it is stored so.
  ValueAlong StoredProduct() const {
    DimsAlong along(*other_);
    const Instr* last = other_;
    while (last->users().size() == 1) {
      const Instr& user = **last->users().begin();
      bool is_move = user.op() != Op::kBroadcast && BeforeMove(AlongItself(user)).has_value();
      if (!is_move || HasControlDependencies(user) || !along.Add(user)) break;
      last = &user;
    }
    ValueAlong product{last, *along.Of(*last)};
    for (int64_t& dim : product.along)
      dim = dim < 0 ? kUnitDim : other_along_[static_cast<size_t>(dim)];
    return product;
  }

  Work SumWork() const {
    Work work;
    auto rows = static_cast<double>(reduce_.shape().ElementCount());
    work.tasks = std::ceil(rows / kRowsOfBlock);
    work.threads = kRowsOfBlock;
    work.writes = rows * BytesOf(reduce_.shape().type());
    return work;
  }

  static bool IsOfFactor(const Factor& factor, const Dims& dims) {
    return std::ranges::any_of(factor.value.along,
                               [&](int64_t dim) { return Contains(dims, dim); });
  }

  // The dimension of an operand of the dot, in our numbering.
  Dims OperandAlong(size_t operand) const {
    const Dims& sizes = dot_->operand(operand)->shape().dims();
    Dims along = DotDimsOf(*dot_, operand);
    for (size_t d = 0; d < along.size(); ++d) {
      if (sizes[d] == 1) {
        along[d] = kUnitDim;
      } else if (along[d] >= dot_->shape().rank()) {
        along[d] += terms_.shape().rank() - dot_->shape().rank();
      } else {
        along[d] = dot_along_[static_cast<size_t>(along[d])];
      }
    }
    return along;
  }

  // The dot that is a factor of each term. One of its operands has the summed dimensions, and no
  // others but batch dimensions and those that it contracts.
  bool SetDot(const Factor& factor) {
    dot_ = factor.value.instr;
    dot_along_ = factor.value.along;
    Dims all = WithoutUnits(AlongItself(terms_).along);
    if (!std::ranges::is_permutation(WithoutUnits(dot_along_), all)) return false;
    DotDimensions dims(*dot_);
    auto along_of_free = [&](size_t operand) {
      size_t first = dims.attrs.lhs_batch.size() + (operand == 0 ? 0 : dims.lhs_free.size());
      size_t count = (operand == 0 ? dims.lhs_free : dims.rhs_free).size();
      auto begin = dot_along_.begin() + static_cast<int64_t>(first);
      return WithoutUnits({begin, begin + static_cast<int64_t>(count)});
    };
    columns_operand_ = std::ranges::is_permutation(along_of_free(0), summed_) ? 0 : 1;
    if (!std::ranges::is_permutation(along_of_free(columns_operand_), summed_)) return false;
    rows_along_ = OperandAlong(1 - columns_operand_);
    contracted_.clear();
    for (int64_t dim : rows_along_)
      if (dim >= terms_.shape().rank()) contracted_.push_back(dim);
    // The new sum has no more terms.
    int64_t terms = 1;
    for (int64_t d : summed_) terms *= terms_.shape().dim(static_cast<size_t>(d));
    return !contracted_.empty() && dims.k <= terms;
  }

  // Whether a dot multiplies the same array with the other factors of the terms. `dots`: all dots
  // with the array.
  bool IsOther(const DotWith& found, const std::vector<DotWith>& dots) {
    if (found.dot == dot_) return false;
    other_ = found.dot;
    Dims along = OtherAlong(found, dots);
    other_weights_ = other_->operand(1 - found.operand);
    return !along.empty() && HasWeights(*other_weights_, found, along) && IsAsPrecise() &&
           !MayDependOn(*other_, reduce_, positions_);
  }

  // For the dimensions of the other dot (DotDimsOf), those of the array that both multiply; others
  // are kUnitDim. Empty if it does not contract what is summed.
  Dims OtherAlong(const DotWith& found, const std::vector<DotWith>& dots) const {
    const Instr& columns = *dot_->operand(columns_operand_);
    const Instr& array = OriginOf(columns);
    Dims of_columns = OperandAlong(columns_operand_),
         of_array(static_cast<size_t>(array.shape().rank()), kUnitDim);
    for (const DotWith& own : dots) {
      if (own.dot != dot_ || own.operand != columns_operand_) continue;
      for (size_t d = 0; d < own.along.size(); ++d)
        if (own.along[d] >= 0) of_array[static_cast<size_t>(own.along[d])] = of_columns[d];
    }
    Dims dims = DotDimsOf(*other_, found.operand);
    DotDimensions sizes(*other_);
    Dims along(static_cast<size_t>(other_->shape().rank()) + sizes.attrs.lhs_contracting.size(),
               kUnitDim);
    for (size_t d = 0; d < dims.size(); ++d)
      if (found.along[d] >= 0)
        along[static_cast<size_t>(dims[d])] = of_array[static_cast<size_t>(found.along[d])];
    auto results = along.begin() + other_->shape().rank();
    if (!std::ranges::is_permutation(WithoutUnits({results, along.end()}), summed_)) return {};
    return along;
  }

  // Whether the weights are the product of the factors of the terms without the dot, and of values
  // of rows. Sets the results' dimensions and the factors of the sum.
  bool HasWeights(const Instr& weights, const DotWith& found, Dims along) {
    Dims dims = DotDimsOf(*other_, 1 - found.operand), contracted;
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] >= other_->shape().rank()) contracted.push_back(static_cast<int64_t>(d));
    weights_ = FactorsOf(weights, contracted);
    Dims to(dims.size(), kUnitDim);  // our dimensions, for those of the weights
    if (!MatchElements(contracted, to)) return false;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t& dim = along[static_cast<size_t>(dims[d])];
      if (dim != kUnitDim && dim != to[d]) return false;
      dim = to[d];
    }
    along.resize(static_cast<size_t>(other_->shape().rank()));
    Dims all = WithoutUnits(AlongItself(terms_).along);
    std::erase_if(all, [&](int64_t dim) { return Contains(summed_, dim); });
    all.insert(all.end(), contracted_.begin(), contracted_.end());
    if (!std::ranges::is_permutation(WithoutUnits(along), all)) return false;
    other_along_ = std::move(along);
    is_negative_ = factors_.is_negative != weights_.is_negative;
    return SetRowFactors(contracted, to);
  }

  // Finds the weights' factors of elements among those of the terms: all of them, once each.
  bool MatchElements(const Dims& contracted, Dims& to) const {
    std::vector<const Factor*> rest;
    for (const Factor& factor : factors_.all)
      if (factor.value.instr != dot_ && IsOfFactor(factor, summed_)) rest.push_back(&factor);
    for (const Factor& factor : weights_.all) {
      if (!IsOfFactor(factor, contracted)) continue;
      auto same = std::ranges::find_if(rest, [&](const Factor* other) {
        return other->value.instr == factor.value.instr && other->how == factor.how;
      });
      if (same == rest.end() || !Match(factor.value.along, (*same)->value.along, to)) return false;
      rest.erase(same);
    }
    return rest.empty();
  }
  // Adds that dimensions are the same; false if others are already.
  static bool Match(const Dims& own, const Dims& ours, Dims& to) {
    for (size_t d = 0; d < own.size(); ++d) {
      if ((own[d] == kUnitDim) != (ours[d] == kUnitDim)) return false;
      if (own[d] == kUnitDim) continue;
      int64_t& dim = to[static_cast<size_t>(own[d])];
      if (dim != kUnitDim && dim != ours[d]) return false;
      dim = ours[d];
    }
    return true;
  }

  // What is left of the terms' values of rows, divided by those of the weights.
  bool SetRowFactors(const Dims& contracted, const Dims& to) {
    using How = Factor::How;
    row_factors_.clear();
    for (const Factor& factor : factors_.all)
      if (!IsOfFactor(factor, summed_)) row_factors_.push_back(factor);
    for (Factor factor : weights_.all) {
      if (IsOfFactor(factor, contracted)) continue;
      for (int64_t& dim : factor.value.along)
        if (dim >= 0) dim = to[static_cast<size_t>(dim)];
      auto same = std::ranges::find_if(row_factors_, [&](const Factor& other) {
        return other.value.instr == factor.value.instr && other.how == factor.how &&
               other.value.along == factor.value.along;
      });
      if (same != row_factors_.end()) {
        row_factors_.erase(same);
        continue;
      }
      // A factor may be zero.
      if (factor.how != How::kDividedBy) return false;
      factor.how = How::kTimes;
      row_factors_.push_back(std::move(factor));
    }
    return std::ranges::all_of(row_factors_, [](const Factor& factor) {
      return factor.how == How::kTimes || factor.how == How::kDividedBy;
    });
  }

  // Whether the other dot and its weights are rounded no more than the terms are.
  bool IsAsPrecise() const {
    int bits = MantissaBitsOf(*dot_);
    if (MantissaBitsOf(*other_) < bits || weights_.mantissa_bits < bits) return false;
    if (dot_->shape().type() != ElementType::kF32) return true;
    // Both round their factors alike, if at all.
    const auto &attrs = dot_->attrs<DotAttrs>(), &others = other_->attrs<DotAttrs>();
    auto is_f32 = [](const Instr* operand) {
      return operand->shape().type() == ElementType::kF32 && !IsWidening(*operand);
    };
    return attrs.precision == others.precision && attrs.algorithm == others.algorithm &&
           is_f32(dot_->operand(1 - columns_operand_)) && is_f32(other_weights_);
  }

  // The elements of a value in f32, in this order of dimensions.
  Instr* Ordered(const Instr& value, const Dims& along, const Dims& order) {
    auto* x = const_cast<Instr*>(&value);
    Dims sizes, own = WithoutUnits(along);
    for (size_t d = 0; d < along.size(); ++d)
      if (along[d] != kUnitDim) sizes.push_back(value.shape().dim(d));
    x = make_.Reshaped(x, sizes);
    DimensionsAttrs to;
    Dims to_sizes;
    for (int64_t dim : order) {
      auto at = std::ranges::find(own, dim);
      if (at == own.end()) continue;
      to.dimensions.push_back(at - own.begin());
      to_sizes.push_back(sizes[static_cast<size_t>(at - own.begin())]);
    }
    if (!std::ranges::is_sorted(to.dimensions))
      x = make_.Make(Op::kTranspose, Shape::Array(x->shape().type(), to_sizes), {x}, std::move(to));
    return make_.Converted(x, ElementType::kF32);
  }

  Instr* Times(Instr* sum, const Factor& factor, const Dims& order) {
    Instr* x = Ordered(*factor.value.instr, factor.value.along, order);
    DimensionsAttrs to;
    for (size_t d = 0; d < order.size(); ++d)
      if (Contains(factor.value.along, order[d])) to.dimensions.push_back(static_cast<int64_t>(d));
    if (x->shape().rank() != sum->shape().rank())
      x = make_.Make(Op::kBroadcast, sum->shape(), {x}, std::move(to));
    Op op = factor.how == Factor::How::kTimes ? Op::kMultiply : Op::kDivide;
    return make_.Make(op, sum->shape(), {sum, x});
  }

  Instr& reduce_;
  const Instr& terms_;
  const ReductionPositions& positions_;
  Editor make_;
  Factors factors_, weights_;
  Dims summed_, contracted_;
  const Instr* dot_ = nullptr;
  size_t columns_operand_ = 0;   // of the dot: it has what is summed
  Dims dot_along_, rows_along_;  // of the results and of the other operand
  const Instr *other_ = nullptr, *other_weights_ = nullptr;
  Dims other_along_;  // of the results
  std::vector<Factor> row_factors_;
  bool is_negative_ = false;
};

}  // namespace

// Record contraction.reassociate.
Result<Changed> ReassociateDots(Module& module, PassContext& context) {
  if (!context.machine().async_multiply) return Changed::kNo;
  return EditComputations(module, [&](Computation& computation) {
    if (computation.CountOf(Op::kDot) < 2) return false;
    ReductionPositions positions;
    std::vector<Instr*> reduces;
    for (Instr* instr : computation.Instrs()) {
      positions.emplace(instr, positions.size());
      if (instr->op() == Op::kReduce) reduces.push_back(instr);
    }
    std::vector<Instr*> terms;  // of the replaced sums
    bool changed = false;
    for (Instr* reduce : reduces) {
      SumOfDot sum(*reduce, positions);
      if (!sum.IsSum() || !sum.Find() || !IsInDotChain(sum.dot())) continue;
      double before_us = sum.CostOfTerms(context.machine());
      double after_us = sum.CostOfOther(context.machine()).total();
      if (after_us >= before_us) {
        context.Rejected("contraction.reassociate", *reduce, &sum.other(),
                         fmt::format("{:.1f} us, not less than {:.1f}", after_us, before_us));
        continue;
      }
      context.AcceptedByCost("contraction.reassociate", *reduce, before_us, after_us,
                             "from " + LabelOf(sum.other()));
      if (positions.contains(reduce->operand(0))) terms.push_back(reduce->operand(0));
      sum.Replace();
      changed = true;
    }
    // Operands before users. Planners would give unused values kernels.
    std::ranges::sort(terms, {}, [&](const Instr* term) { return positions.at(term); });
    terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
    for (Instr* term : terms) RemoveUnused(term);
    return changed;
  });
}

}  // namespace tokamak
