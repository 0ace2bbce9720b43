// Sinks accumulations out of loops. A weight gradient is a sum over iterations of dots that the
// loop itself never reads. The factors of all iterations are stacked, and one dot after the loop
// contracts the iteration together with the original contracted dimensions:
//
//   loop:  s += dot(a, x[i])            loop:   A[i] = a
//                                       after:  s = s0 + dot(A, x) over (i, k)
//
// A factor that is a row of a carried array with one row per iteration is stacked already, if it
// has the index of the other factor: the contraction pairs row i with row i. Stacking writes the
// factors instead of reading and writing the sum; it must not move more bytes. Floating-point sums
// are rounded in a different order.

#include <algorithm>

#include <fmt/format.h>

#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/loop_edit.h"

namespace tokamak {
namespace {

// A carried value that each iteration adds a term to.
struct Sum {
  size_t carry = 0;
  Instr* term = nullptr;       // the added term, a dot or a reduction
  Instr* transpose = nullptr;  // the transpose of the dot, if there is one
  Instr* index = nullptr;      // the row of each iteration
  // Bytes per iteration: of the sum, which is read and written, and of the factors to be stacked.
  int64_t sum_bytes = 0, stacked_bytes = 0;
};

bool IsZeroStart(const Instr* value) {
  while (value->op() == Op::kBroadcast) value = value->operand(0);
  if (value->op() != Op::kConstant || !value->shape().IsArray()) return false;
  const Literal& literal = value->attrs<ConstantAttrs>().literal;
  bool is_one = literal.is_splat() || value->shape().ElementCount() == 1;
  return is_one && IsReal(literal.type()) && literal.DoubleAt(0) == 0;
}

class AccumulationSinker {
 public:
  AccumulationSinker(const WhileLoop& loop, PassContext& context)
      : edit_(loop), trip_count_(*TripCount(loop)), context_(context) {}

  bool Find() {
    if (trip_count_ < kMinMovedTrips || trip_count_ > INT32_MAX || !FindCounter()) return false;
    for (size_t i = 0; i < loop().size(); ++i) FindProduct(i);
    if (products_.empty()) return false;
    for (size_t i = 0; i < loop().size(); ++i) FindReduction(i);
    return true;
  }

  void Run() {
    std::vector<std::pair<const Sum*, std::vector<Instr*>>> stacks;
    for (const Sum& sum : products_) {
      context_.Accepted(
          "loop.sink-accumulation", *sum.term, nullptr,
          fmt::format("products of {} iterations are accumulated: one product after the loop; an "
                      "iteration moves {} bytes instead of {}",
                      trip_count_, sum.stacked_bytes, sum.sum_bytes));
      stacks.push_back({&sum, {StackOf(sum, 0), StackOf(sum, 1)}});
    }
    for (const Sum& sum : reductions_) stacks.push_back({&sum, {StackOf(sum, 0)}});
    for (const auto& [sum, parts] : stacks) edit_.Drop(sum->carry);
    // Analysis results of the old loop become invalid with it.
    std::vector<Instr*> firsts;
    for (size_t i = 0; i < loop().size(); ++i) firsts.push_back(loop().init(i));
    Terms terms = TermsOf(stacks);
    Instr* made = edit_.Finish();
    for (const Term& term : terms) Add(made, term, firsts[term.carry]);
    edit_.Close();
  }

 private:
  // The data about a sum that stays valid after the body has changed.
  struct Term {
    size_t carry = 0;
    Op op{};
    Shape shape;
    Attrs attrs;
    std::optional<Attrs> transpose;
    Computation* reduction = nullptr;
    std::vector<size_t> stacks;  // indexed by carried value
  };
  using Terms = std::vector<Term>;

  const WhileLoop& loop() const { return edit_.loop(); }

  bool FindCounter() {
    for (size_t i = 0; i < loop().size(); ++i) {
      std::optional<Induction> found = InductionOf(loop(), i);
      if (!found || found->start != 0 || found->step != 1 || InfoOf(found->type).bits < 32)
        continue;
      counter_ = loop().in_body(i);
      return true;
    }
    return false;
  }

  // Whether it visits every row once: the counter, or the trip count minus one minus the counter.
  bool IsEveryRow(const Instr* index) const {
    if (index == counter_) return true;
    if (index->op() != Op::kSubtract || index->operand(1) != counter_) return false;
    std::optional<int64_t> last = KnownInteger(loop(), index->operand(0));
    return last && *last == static_cast<int64_t>(trip_count_) - 1;
  }

  bool IsOnlyUsedBy(const Instr* value, const Instr* user) const {
    return std::all_of(value->users().begin(), value->users().end(),
                       [&](const Instr* other) { return other == user; });
  }

  // The term added to a carried value that has no other use; null otherwise.
  Instr* TermOf(size_t i) const {
    Instr *self = loop().in_body(i), *next = loop().next(i);
    if (next->op() != Op::kAdd || !IsOnlyUsedBy(self, next)) return nullptr;
    if (!self->shape().IsArray() || !IsReal(self->shape().type())) return nullptr;
    if (!IsOnlyUsedBy(next, edit_.body().root()) || !loop().in_condition(i)->users().empty())
      return nullptr;
    auto root = edit_.body().root()->operands();
    if (std::count(root.begin(), root.end(), next) != 1) return nullptr;
    bool first = next->operand(0) == self;
    Instr* term = next->operand(first ? 1 : 0);
    return term == self || (!first && next->operand(1) != self) ? nullptr : term;
  }

  // The array whose rows the factor consists of, with one row per iteration.
  std::optional<LoopRow> RowFor(const Instr* value) const {
    std::optional<LoopRow> row = RowOf(loop(), value);
    if (!row || !IsEveryRow(row->index)) return std::nullopt;
    if (loop().init(row->carry)->shape().dim(0) != static_cast<int64_t>(trip_count_))
      return std::nullopt;
    return row;
  }

  // Accepts a sum of dots if it is large, no factor is loop-invariant, and stacking moves at most
  // the bytes of reading and writing the sum.
  void FindProduct(size_t i) {
    Instr* term = TermOf(i);
    if (term == nullptr) return;
    Sum sum{.carry = i};
    if (term->op() == Op::kTranspose) {
      sum.transpose = term;
      term = term->operand(0);
    }
    if (term->op() != Op::kDot || term->has_extras()) return;
    const DotAttrs& attrs = term->attrs<DotAttrs>();
    if (!attrs.lhs_batch.empty() || attrs.lhs_contracting.empty()) return;
    sum.term = term;
    sum.index = counter_;
    sum.sum_bytes = 2 * term->shape().ByteSize();
    int64_t& bytes = sum.stacked_bytes;
    int64_t depth = 1;
    for (int64_t d : attrs.lhs_contracting)
      depth *= term->operand(0)->shape().dim(static_cast<size_t>(d));
    if (term->shape().ElementCount() * depth < kMinMovedWork) return;
    for (const Instr* operand : term->operands())
      if (std::optional<LoopRow> row = RowFor(operand)) sum.index = row->index;
    for (const Instr* operand : term->operands()) {
      if (operand->op() == Op::kParameter && loop().IsInvariant(*ParameterNumber(operand))) return;
      if (!IsStacked(operand, sum.index)) bytes += operand->shape().ByteSize();
    }
    if (bytes > sum.sum_bytes) {
      context_.Rejected(
          "loop.sink-accumulation", *term, nullptr,
          fmt::format("an iteration would move {} bytes instead of {}", bytes, sum.sum_bytes));
      return;
    }
    if (bytes * static_cast<int64_t>(trip_count_) > kMaxMovedBytes) return;
    products_.push_back(sum);
  }

  // Whether all rows are already stacked, or will be.
  bool IsStacked(const Instr* value, const Instr* index) const {
    std::optional<LoopRow> row = RowFor(value);
    return (row && row->index == index) || StackFor(value, index) != nullptr;
  }

  // Reductions (bias gradients) cost no extra stack: they reduce a factor that a dot has stacked.
  void FindReduction(size_t i) {
    Instr* term = TermOf(i);
    if (term == nullptr) return;
    for (size_t zero : {0, 1})
      if (term->op() == Op::kAdd && IsZeroStart(term->operand(zero)))
        term = term->operand(1 - zero);
    if (term->op() != Op::kReduce || term->operand_count() != 2 || term->has_extras()) return;
    const Instr* reduction = term->called(0)->root();
    if (reduction->op() != Op::kAdd || reduction->operand(0)->op() != Op::kParameter ||
        reduction->operand(1)->op() != Op::kParameter ||
        reduction->operand(0) == reduction->operand(1) || !IsZeroStart(term->operand(1)))
      return;
    for (const Sum& product : products_)
      for (const Instr* operand : product.term->operands())
        if (operand == term->operand(0))
          return reductions_.push_back({.carry = i, .term = term, .index = product.index});
  }

  struct Stack {
    const Instr *value = nullptr, *index = nullptr;
    Instr* parameter = nullptr;
  };
  Instr* StackFor(const Instr* value, const Instr* index) const {
    for (const Stack& stack : stacks_)
      if (stack.value == value && stack.index == index) return stack.parameter;
    return nullptr;
  }

  // The carried array that contains all rows of a factor after the loop.
  Instr* StackOf(const Sum& sum, size_t operand) {
    Instr* value = sum.term->operand(operand);
    if (std::optional<LoopRow> row = RowFor(value); row && row->index == sum.index)
      return loop().in_body(row->carry);
    if (Instr* known = StackFor(value, sum.index)) return known;
    ElementType type = value->shape().type();
    Dims dims = value->shape().dims(), slice = dims;
    dims.insert(dims.begin(), static_cast<int64_t>(trip_count_));
    slice.insert(slice.begin(), 1);
    Computation &before = edit_.before(), &body = edit_.body();
    Instr* zero =
        Editor(*value, before)
            .Make(Op::kConstant, Shape::Scalar(type), {}, ConstantAttrs{Literal::Scalar(type, 0)});
    Instr* parameter = edit_.Carry(
        Editor(*value, before)
            .Make(Op::kBroadcast, Shape::Array(type, dims), {zero}, DimensionsAttrs{Dims{}}));
    Instr* row = Editor(*value, body).Make(Op::kReshape, Shape::Array(type, slice), {value});
    std::vector<Instr*> operands = {parameter, row, sum.index};
    operands.resize(dims.size() + 2, edit_.Zero(*value, sum.index->shape().type()));
    edit_.SetNext(
        parameter,
        Editor(*value, body).Make(Op::kDynamicUpdateSlice, Shape::Array(type, dims), operands));
    stacks_.push_back({value, sum.index, parameter});
    return parameter;
  }

  // Dimension 0 of a stack is the iteration. It becomes the first contracted (or reduced)
  // dimension, and the others shift by one.
  static Terms TermsOf(const std::vector<std::pair<const Sum*, std::vector<Instr*>>>& stacks) {
    Terms terms;
    for (const auto& [sum, parameters] : stacks) {
      Term term;
      term.carry = sum->carry;
      term.op = sum->term->op();
      term.shape = sum->term->shape();
      if (sum->term->op() == Op::kDot) {
        DotAttrs attrs = sum->term->attrs<DotAttrs>();
        for (Dims* dims : {&attrs.lhs_contracting, &attrs.rhs_contracting}) {
          for (int64_t& d : *dims) ++d;
          dims->insert(dims->begin(), 0);
        }
        term.attrs = attrs;
      } else {
        DimensionsAttrs attrs = sum->term->attrs<DimensionsAttrs>();
        for (int64_t& d : attrs.dimensions) ++d;
        attrs.dimensions.insert(attrs.dimensions.begin(), 0);
        term.attrs = attrs;
        term.reduction = sum->term->called(0);
      }
      if (sum->transpose != nullptr) term.transpose = sum->transpose->attrs();
      for (const Instr* parameter : parameters) term.stacks.push_back(*ParameterNumber(parameter));
      terms.push_back(std::move(term));
    }
    return terms;
  }

  // The value that the loop would have computed for a sum that started as `first`.
  void Add(Instr* made, const Term& term, Instr* first) {
    Computation& in = edit_.before();
    std::vector<Instr*> operands;
    for (size_t stack : term.stacks) {
      size_t number = edit_.NumberAfter(stack);
      operands.push_back(Editor(*made, in).Make(Op::kGetTupleElement,
                                                made->shape().elements()[number], {made},
                                                TupleIndexAttrs{static_cast<int64_t>(number)}));
    }
    ElementType type = term.shape.type();
    if (term.reduction != nullptr)
      operands.push_back(Editor(*made, in).Make(Op::kConstant, Shape::Scalar(type), {},
                                                ConstantAttrs{Literal::Scalar(type, 0)}));
    Instr* value = Editor(*made, in).Make(term.op, term.shape, operands, term.attrs);
    if (term.reduction != nullptr) value->set_called({term.reduction});
    if (term.transpose)
      value = Editor(*made, in).Make(Op::kTranspose, first->shape(), {value}, *term.transpose);
    value = Editor(*made, in).Make(Op::kAdd, first->shape(), {first, value});
    Instr* old = loop().instr;
    std::vector<Instr*> users(old->users().begin(), old->users().end());
    for (Instr* user : users) {
      if (user->attrs<TupleIndexAttrs>().index != static_cast<int64_t>(term.carry)) continue;
      in.ReplaceUses(user, value);
      in.Remove(user);
    }
  }

  LoopEdit edit_;
  uint64_t trip_count_;
  PassContext& context_;
  Instr* counter_ = nullptr;
  std::vector<Sum> products_, reductions_;
  std::vector<Stack> stacks_;
};

}  // namespace

// Record loop.sink-accumulation. Requires a known trip count.
Result<Changed> SinkAccumulations(Module& module, PassContext& context) {
  return ForEditableLoops(module, [&](const WhileLoop& loop) {
    AccumulationSinker sinker(loop, context);
    if (!sinker.Find()) return false;
    sinker.Run();
    return true;
  });
}

}  // namespace tokamak
