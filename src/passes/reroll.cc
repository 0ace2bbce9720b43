// Loop re-rolling: a loop that Python unrolled during tracing becomes a loop again.
//
//   h1 = f(x[0], h0)                         h, ys = while(0, h0, zeros)
//   h2 = f(x[1], h1)                         body:   h' = f(dynamic-slice(x, i), h)
//   ...                                              ys' = dynamic-update-slice(ys, h', i)
//   concatenate(h1, h2 ...)
//
// Equal steps are found by hashes in program order (analysis/repeats), checked instruction by
// instruction (rewrite/steps), and written once. Values from earlier steps are carried; values from
// outside are a function of the step number (rewrite/step_values) or loop-invariant. Every value is
// computed by the same op from the same operands, so the result is bit-exact. O(n log n).

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "analysis/repeats.h"
#include "ir/compare.h"
#include "passes/passes.h"
#include "rewrite/bodies.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"
#include "rewrite/step_values.h"
#include "rewrite/steps.h"

namespace tokamak {
namespace {

constexpr ElementType kIndex = ElementType::kS32;
// Maximum bytes of unused rows in stacked outputs. Chosen.
constexpr int64_t kUnusedBytes = int64_t{1} << 20;

// An array of zeros: the initial value of a carried array.
Instr* Zeros(const Instr& like, const Shape& shape) {
  Instr* zero = Editor::Beside(like).Make(Op::kConstant, Shape::Scalar(shape.type()), {},
                                          ConstantAttrs{Literal::Scalar(shape.type(), 0)});
  if (shape.IsScalar()) return zero;
  return Editor::Beside(like).Make(Op::kBroadcast, shape, {zero}, DimensionsAttrs{});
}

Shape StackOf(const Shape& row, int64_t count) {
  Dims dims = row.dims();
  dims.insert(dims.begin(), count);
  return row.WithDims(std::move(dims));
}

class Roller {
 public:
  Roller(const Steps& steps, Module& module, int64_t table_bytes)
      : steps_(steps),
        range_(steps.range),
        module_(module),
        like_(*steps.range.At(0, 0)),
        body_(module.AddComputation("step")),
        writer_(*body_, static_cast<int64_t>(range_.count), table_bytes),
        carried_(range_.period),
        stack_(range_.period, 0) {
    body_->is_public = false;
  }

  // Replaces the steps by the loop. Returns null, without changes, if the loop cannot be written.
  Instr* Run() {
    if (!CarryWhatLeaves() || !WriteStep()) {
      for (Instr* init : made_) RemoveUnused(init);
      module_.RemoveComputation(body_);
      return nullptr;
    }
    Finish();
    MakeLoop();
    ReplaceCollected();
    ReplaceUsed();
    RemoveSteps();
    return loop_;
  }

 private:
  // Carries values that later steps or outside users need; values of several steps are stacked.
  // Rejects stacks that are mostly unused, because they would need additional memory.
  bool CarryWhatLeaves() {
    int64_t unused_bytes = 0;
    for (size_t offset = 0; offset < range_.period; ++offset) {
      const Shape& shape = range_.At(0, offset)->shape();
      const std::vector<Instr*>& history = steps_.history[offset];
      for (Instr* before : history) Carry(offset, before);
      const std::vector<size_t>& used = steps_.used[offset];
      bool needs_stack = steps_.IsCollected(offset);
      for (size_t step : used) {
        size_t distance = range_.count - step;
        if (distance > std::max<size_t>(history.size(), 1)) needs_stack = true;
      }
      if (needs_stack) {
        auto rows = static_cast<int64_t>(range_.count);
        if (!steps_.IsCollected(offset))
          unused_bytes += (rows - static_cast<int64_t>(used.size())) * shape.ByteSize();
        Instr* zeros = Zeros(like_, StackOf(shape, static_cast<int64_t>(range_.count)));
        made_.push_back(zeros);
        writer_.Carry(zeros);
        stack_[offset] = writer_.inits().size();
      } else if (!used.empty() && history.empty()) {
        Instr* zeros = Zeros(like_, shape);
        made_.push_back(zeros);
        Carry(offset, zeros);
      }
    }
    // no carried value: the steps have no effect
    return !writer_.inits().empty() && unused_bytes <= kUnusedBytes;
  }

  void Carry(size_t offset, Instr* init) {
    writer_.Carry(init);
    carried_[offset].push_back(writer_.inits().size());
  }

  bool WriteStep() {
    values_.resize(range_.period);
    for (size_t offset = 0; offset < range_.period; ++offset) {
      std::vector<Instr*> all = range_.All(offset);
      std::vector<Instr*> operands;
      for (size_t slot = 0; slot < all[0]->operand_count(); ++slot) {
        Instr* operand = Operand(all, steps_.operands[offset][slot], slot);
        if (operand == nullptr) return false;
        operands.push_back(operand);
      }
      if (all[0]->op() == Op::kSlice)
        values_[offset] = writer_.Slice(operands[0], all);
      else
        values_[offset] = writer_.Copy(*all[0], std::move(operands), all);
      if (values_[offset] == nullptr) return false;
    }
    return true;
  }

  Instr* Operand(const std::vector<Instr*>& all, const StepOperand& from, size_t slot) {
    if (!from.is_outside) {
      if (from.distance == 0) return values_[from.offset];
      return body_->parameter(carried_[from.offset][from.distance - 1]);
    }
    std::vector<Instr*> values;
    values.reserve(all.size());
    for (const Instr* instr : all) values.push_back(instr->operand(slot));
    return writer_.Express(values);
  }

  // The root: the next counter and the carried values.
  void Finish() {
    std::vector<Instr*> next = body_->parameters();
    for (size_t offset = 0; offset < range_.period; ++offset) {
      Instr* value = values_[offset];
      for (size_t number : carried_[offset]) {
        next[number] = value;
        value = body_->parameter(number);
      }
      if (stack_[offset] != 0) next[stack_[offset]] = Update(offset);
    }
    Shape scalar = Shape::Scalar(kIndex);
    next[0] = body_->Append(Op::kAdd, scalar, {writer_.counter(), writer_.Scalar(kIndex, 1)});
    std::vector<Shape> shapes;
    for (const Instr* instr : next) shapes.push_back(instr->shape());
    body_->set_root(body_->Append(Op::kTuple, Shape::Tuple(shapes), next));
    for (Instr* instr : {next[0], body_->root(), writer_.counter()})
      instr->set_origins(like_.origins());
  }

  Instr* Update(size_t offset) {
    Instr* value = values_[offset];
    Instr* stack = body_->parameter(stack_[offset]);
    Instr* row = Editor::Beside(*value).Make(Op::kReshape, StackOf(value->shape(), 1), {value});
    std::vector<Instr*> operands = {stack, row, writer_.counter()};
    for (int64_t d = 1; d < stack->shape().rank(); ++d) operands.push_back(writer_.Zero());
    return Editor::Beside(*value).Make(Op::kDynamicUpdateSlice, stack->shape(),
                                       std::move(operands));
  }

  void MakeLoop() {
    Computation* condition = module_.AddComputation("more");
    condition->is_public = false;
    for (const Instr* parameter : body_->parameters())
      condition->AppendParameter(parameter->attrs<ParameterAttrs>().number, parameter->shape())
          ->set_origins(parameter->origins());
    Instr* count = condition->Append(
        Op::kConstant, Shape::Scalar(kIndex), {},
        ConstantAttrs{Literal::ScalarInt(kIndex, static_cast<int64_t>(range_.count))});
    Instr* more = condition->Append(Op::kCompare, Shape::Scalar(ElementType::kPred),
                                    {condition->parameter(0), count},
                                    CompareAttrs{CompareDirection::kLt, CompareType::kNone});
    condition->set_root(more);
    for (Instr* instr : {count, more}) instr->set_origins(like_.origins());
    std::vector<Instr*> operands = {Zeros(like_, Shape::Scalar(kIndex))};
    operands.insert(operands.end(), writer_.inits().begin(), writer_.inits().end());
    loop_ = Editor::Beside(like_).Make(Op::kWhile, body_->root()->shape(), std::move(operands));
    loop_->set_called({condition, body_});
    loop_->set_name("rolled");
    for (const Instr* value : values_) {
      OriginTable& origins = module_.origins();
      loop_->set_origins(origins.Merge(loop_->origins(), value->origins()));
    }
  }

  Instr* Result(size_t number) {
    Instr*& result = results_.emplace(number, nullptr).first->second;
    if (result == nullptr)
      result = Editor::Beside(*loop_).Make(Op::kGetTupleElement, loop_->shape().elements()[number],
                                           {loop_}, TupleIndexAttrs{static_cast<int64_t>(number)});
    return result;
  }

  // ---- outside

  // The stack as the concatenation of its rows along dimension `d` of the rows.
  Instr* Unstack(const Collected& collected) {
    Instr* stack = Result(stack_[collected.offset]);
    const Instr& like = *collected.concatenate;
    auto d = static_cast<size_t>(like.attrs<DimensionAttrs>().dimension);
    if (d > 0) {  // the first dimension becomes dimension d
      Dims permutation, dims;
      for (size_t i = 1; i <= d; ++i) permutation.push_back(static_cast<int64_t>(i));
      permutation.push_back(0);
      for (size_t i = d + 1; i < stack->shape().dims().size(); ++i)
        permutation.push_back(static_cast<int64_t>(i));
      for (int64_t i : permutation) dims.push_back(stack->shape().dim(static_cast<size_t>(i)));
      stack = Editor::Beside(like).Make(Op::kTranspose, stack->shape().WithDims(dims), {stack},
                                        DimensionsAttrs{permutation});
    }
    if (collected.is_new_dimension) return stack;
    Dims dims = range_.At(0, collected.offset)->shape().dims();
    dims[d] *= static_cast<int64_t>(range_.count);
    return Editor::Beside(like).Make(Op::kReshape, stack->shape().WithDims(dims), {stack});
  }

  // Several groups of one concatenate are adjacent in `collected`, in its order.
  void ReplaceCollected() {
    for (size_t i = 0; i < steps_.collected.size();) {
      Instr* old = steps_.collected[i].concatenate;
      std::vector<Instr*> operands;
      size_t next = 0;
      for (; i < steps_.collected.size() && steps_.collected[i].concatenate == old; ++i) {
        const Collected& collected = steps_.collected[i];
        for (; next < collected.first; ++next) operands.push_back(old->operand(next));
        operands.push_back(Unstack(collected));
        next += range_.count;
      }
      for (; next < old->operand_count(); ++next) operands.push_back(old->operand(next));
      Instr* made = operands[0];
      bool keeps = operands.size() > 1 || !CanReplace(*old, *made);
      if (keeps) {
        made = Editor::Beside(*old).Make(Op::kConcatenate, old->shape(), std::move(operands),
                                         old->attrs());
        made->set_name(old->name());
        if (old->has_extras()) made->mutable_extras() = old->extras();
      }
      MergeOrigins(made, *old);
      old->parent()->ReplaceUses(old, made);
      RemoveUnused(old);
    }
  }

  Instr* Outside(size_t offset, size_t step) {
    size_t distance = range_.count - step;
    if (distance <= carried_[offset].size()) return Result(carried_[offset][distance - 1]);
    Instr* stack = Result(stack_[offset]);
    const Shape& shape = range_.At(0, offset)->shape();
    Dims starts(stack->shape().dims().size(), 0), limits = stack->shape().dims();
    starts[0] = static_cast<int64_t>(step);
    limits[0] = starts[0] + 1;
    const Instr& like = *range_.At(step, offset);
    Instr* row = Editor::Beside(like).Make(Op::kSlice, StackOf(shape, 1), {stack},
                                           SliceAttrs{starts, limits, Dims(starts.size(), 1)});
    return Editor::Beside(like).Make(Op::kReshape, shape, {row});
  }

  void ReplaceUsed() {
    for (size_t offset = 0; offset < range_.period; ++offset) {
      for (size_t step : steps_.used[offset]) {
        Instr* value = range_.At(step, offset);
        Instr* instead = Outside(offset, step);
        std::vector<Instr*> users(value->users().begin(), value->users().end());
        for (Instr* user : users) {
          if (range_.PositionOf(user)) continue;
          for (size_t slot = 0; slot < user->operand_count(); ++slot)
            if (user->operand(slot) == value) user->set_operand(slot, instead);
        }
        Computation& computation = *value->parent();
        if (computation.root() == value) computation.set_root(instead);
      }
    }
  }

  void RemoveSteps() {
    Computation& computation = *like_.parent();
    for (size_t step = range_.count; step-- > 0;)
      for (size_t offset = range_.period; offset-- > 0;) {
        Instr* value = range_.At(step, offset);
        bool is_used = !value->users().empty() || computation.root() == value;  // a view
        if (!is_used && !value->is_removed()) computation.Remove(value);
      }
  }

  const Steps& steps_;
  const StepRange& range_;
  Module& module_;
  const Instr& like_;
  Computation* body_;
  StepWriter writer_;
  // Parameter numbers: [offset][d - 1] is the value d steps earlier; 0: there is no stack.
  std::vector<std::vector<size_t>> carried_;
  std::vector<size_t> stack_;
  std::vector<Instr*> values_, made_;
  std::unordered_map<size_t, Instr*> results_;
  Instr* loop_ = nullptr;
};

// ---- nested concatenates: JAX stacks sixteen values at once

bool IsPart(const Instr& inner, const Instr& outer) {
  return inner.op() == Op::kConcatenate && outer.op() == Op::kConcatenate &&
         inner.users().size() == 1 && inner.parent()->root() != &inner && !IsPinned(inner) &&
         inner.shape().layout() == nullptr && EqualAttrs(inner.op(), inner.attrs(), outer.attrs());
}

// Flattens nested concatenates into one. Linear: only the outermost ones are rebuilt.
Changed FlattenConcatenates(Computation& computation, PassContext& context) {
  Changed changed = Changed::kNo;
  for (Instr* outer : computation.PostOrder()) {
    if (outer->op() != Op::kConcatenate || outer->is_removed()) continue;
    if (outer->users().size() == 1 && IsPart(*outer, *outer->users()[0])) continue;
    auto is_part = [&](const Instr* operand) { return IsPart(*operand, *outer); };
    if (std::ranges::none_of(outer->operands(), is_part)) continue;
    std::vector<Instr*> open(outer->operands().rbegin(), outer->operands().rend()), parts;
    std::vector<Instr*> gone;
    while (!open.empty()) {
      Instr* next = open.back();
      open.pop_back();
      if (!IsPart(*next, *outer)) {
        parts.push_back(next);
        continue;
      }
      gone.push_back(next);
      open.insert(open.end(), next->operands().rbegin(), next->operands().rend());
    }
    Instr* flat = Editor::Beside(*outer).Make(Op::kConcatenate, outer->shape(), std::move(parts),
                                              outer->attrs());
    if (!CanReplace(*outer, *flat, true)) {
      RemoveUnused(flat);
      continue;
    }
    for (const Instr* inner : gone) MergeOrigins(flat, *inner);
    context.Accepted("concatenate.flat", *outer, flat);
    ReplaceBy(outer, flat, true);
    RemoveUnused(outer);
    changed = Changed::kYes;
  }
  return changed;
}

class Reroller {
 public:
  Reroller(Module& module, Computation& computation, const Effects& effects, PassContext& context)
      : module_(module),
        context_(context),
        line_(computation, effects),
        rolled_(line_.instrs().size(), 0) {}

  Changed Run() {
    auto steps = static_cast<size_t>(std::max<int64_t>(context_.limits.rerolled_steps, 3));
    RepeatFinder finder(line_.tokens());
    do {
      for (const Repeat& repeat : finder.Find(steps)) Try(repeat, steps);
    } while (finder.Widen(steps));
    return changed_;
  }

 private:
  void Try(const Repeat& repeat, size_t least) {
    for (size_t i = repeat.begin; i < repeat.begin + repeat.length; ++i)
      if (rolled_[i] != 0) return;
    StepRange range{&line_, repeat.begin, repeat.period, repeat.length / repeat.period};
    if (!Pays(range)) return;
    range.begin += BestPhase(range, repeat.length % repeat.period);
    if (TryOne(range)) return;
    // The first or last step may have different operands.
    if (range.count <= least) return;
    StepRange later = range, earlier = range;
    later.begin += range.period;
    --later.count;
    --earlier.count;
    if (Pays(later) && (TryOne(later) || TryOne(earlier))) return;
    context_.Rejected("reroll.steps-differ", *range.At(0, 0), nullptr,
                      fmt::format("{} steps of {} instructions", range.count, range.period));
  }

  bool TryOne(const StepRange& range) {
    std::optional<Steps> steps = CheckSteps(range);
    if (!steps) return false;
    std::string because = fmt::format("{} steps of {} instructions", range.count, range.period);
    std::string label = LabelOf(*range.At(0, 0));
    OriginId origins = range.At(0, 0)->origins();
    Instr* loop = Roller(*steps, module_, context_.limits.rerolled_table_bytes).Run();
    if (loop == nullptr) return false;
    context_.log.Add({.pass = context_.pass,
                      .rule = "reroll.steps",
                      .verdict = Verdict::kAccepted,
                      .subject = std::move(label),
                      .other = LabelOf(*loop),
                      .origins = origins,
                      .because = std::move(because)});
    for (size_t i = 0; i < range.count * range.period; ++i) rolled_[range.begin + i] = 1;
    changed_ = Changed::kYes;
    return true;
  }

  // One kernel can contain some hundred elementwise instructions, so fewer are better left
  // unrolled.
  bool Pays(const StepRange& range) const {
    bool is_heavy = false, computes = false;
    for (size_t offset = 0; offset < range.period; ++offset) {
      uint16_t traits = range.At(0, offset)->info().traits;
      computes = computes || (traits & (kDataMovement | kStructure | kLeaf)) == 0;
      is_heavy = is_heavy || (traits & (kElementwise | kDataMovement | kStructure | kLeaf)) == 0;
    }
    auto period = static_cast<int64_t>(range.period);
    int64_t all = period * static_cast<int64_t>(range.count);
    const PassLimits& limits = context_.limits;
    if (!computes || static_cast<int64_t>(range.count) < limits.rerolled_steps) return false;
    return all >= limits.rerolled_instrs || period >= limits.rerolled_step ||
           (is_heavy && all >= limits.rerolled_heavy);
  }

  Module& module_;
  PassContext& context_;
  StepLine line_;
  std::vector<char> rolled_;
  Changed changed_ = Changed::kNo;
};

}  // namespace

// Replaces consecutive equal steps by a counted loop. It carries the values passed between steps,
// indexes its inputs by the counter, and stacks the collected outputs. Steps stay if they have side
// effects or different shardings or types, or if an operand is not a function of the step number.
Result<Changed> Reroll(Module& module, PassContext& context) {
  Effects effects(module);
  Changed changed = Changed::kNo;
  std::vector<Computation*> computations = module.CalleesFirst();
  // The body of a reduction, a sort or a fusion may not contain a loop.
  std::unordered_set<const Computation*> inner;
  for (const Computation* computation : computations)
    for (const Instr* instr : computation->Callers())
      if (!RunsComputations(instr->op()))
        inner.insert(instr->called().begin(), instr->called().end());
  for (Computation* computation : computations)
    if (!inner.contains(computation)) {
      changed |= FlattenConcatenates(*computation, context);
      changed |= Reroller(module, *computation, effects, context).Run();
    }
  return changed;
}

}  // namespace tokamak
