// Simplifies loops. For each while that carries arrays (flatten-tuples ensures that):
//
//   trips    Zero: the loop is replaced by its operands. One: by its body.
//   results  A loop-invariant value is replaced by its initial value, a counter by its final value.
//   carried  Two values that are always equal are merged; an invariant constant is sunk into the
//            body; a value is removed if no result, side effect, condition or other carried value
//            needs it.
//
// A loop that may not terminate keeps at least one of its results, so it does not become unused
// here. Linear in the loops and their bodies.

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "analysis/loops.h"
#include "passes/passes.h"
#include "rewrite/bodies.h"
#include "rewrite/editor.h"
#include "rewrite/match.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

bool IsElementOf(const Instr* user, const Instr* tuple) {
  return user->op() == Op::kGetTupleElement && tuple->shape().IsTuple();
}

size_t CarriedIndex(const Instr& element) {
  return static_cast<size_t>(element.attrs<TupleIndexAttrs>().index);
}

bool IsRoot(const Instr& instr) {
  return instr.parent()->root() == &instr;
}

bool IsNeededInLoop(const Instr& instr) {
  return !instr.users().empty() || IsRoot(instr) || instr.is_control_predecessor();
}

// Which results are used; all if something uses the tuple as a whole.
std::vector<char> UsedResults(const WhileLoop& loop) {
  const Instr& instr = *loop.instr;
  if (loop.size() == 1) return {static_cast<char>(IsNeededInLoop(instr))};
  std::vector<char> used(loop.size(), IsRoot(instr) || instr.is_control_predecessor());
  for (const Instr* user : instr.users()) {
    if (!IsElementOf(user, &instr)) return std::vector<char>(loop.size(), 1);
    if (IsNeededInLoop(*user)) used[CarriedIndex(*user)] = 1;
  }
  return used;
}

// Which of its carried values the loop needs.
struct Needs {
  std::vector<char> carries;
  InstrMap<char> in_condition, in_body;
};

class Marker {
 public:
  Marker(const WhileLoop& loop, const Effects& effects)
      : loop_(loop),
        effects_(effects),
        needs_{std::vector<char>(loop.size(), 0), InstrMap<char>(*loop.condition, 0),
               InstrMap<char>(*loop.body, 0)} {}

  Needs Run(const std::vector<char>& used_results) {
    needs_.in_condition[loop_.condition->root()] = 1;
    open_.push_back(loop_.condition->root());
    MarkEffects(*loop_.condition, needs_.in_condition);
    MarkEffects(*loop_.body, needs_.in_body);
    for (size_t i = 0; i < loop_.size(); ++i)
      if (used_results[i] != 0) Carry(i);
    while (!open_.empty()) {
      const Instr* instr = open_.back();
      open_.pop_back();
      if (std::optional<size_t> number = ParameterNumber(instr)) Carry(*number);
      InstrMap<char>& live =
          instr->parent() == loop_.condition ? needs_.in_condition : needs_.in_body;
      for (const Instr* operand : instr->operands()) Mark(operand, live);
      for (const Instr* before : instr->extras().control_predecessors) Mark(before, live);
    }
    return std::move(needs_);
  }

 private:
  void Mark(const Instr* instr, InstrMap<char>& live) {
    if (live[instr] != 0) return;
    live[instr] = 1;
    open_.push_back(instr);
  }
  void Carry(size_t i) {
    if (needs_.carries[i] != 0) return;
    needs_.carries[i] = 1;
    Mark(loop_.next(i), needs_.in_body);
  }
  void MarkEffects(const Computation& computation, InstrMap<char>& live) {
    for (const Instr* instr : computation.Instrs())
      if (effects_.Of(*instr) || instr->is_control_predecessor()) Mark(instr, live);
  }

  const WhileLoop& loop_;
  const Effects& effects_;
  Needs needs_;
  std::vector<const Instr*> open_;
};

// A constant, a broadcast constant, or an iota: cheaper to recompute than to carry.
bool IsSinkable(const Instr* init) {
  if (!init->shape().IsArray() || IsPinned(*init)) return false;
  if (init->op() == Op::kConstant || init->op() == Op::kIota) return true;
  return init->op() == Op::kBroadcast && init->operand(0)->op() == Op::kConstant &&
         !IsPinned(*init->operand(0));
}

Instr* CopyLeaf(const Instr& leaf, Computation& to) {
  std::vector<Instr*> operands;
  for (const Instr* operand : leaf.operands()) operands.push_back(CopyLeaf(*operand, to));
  return CopyTo(to, leaf, std::move(operands));
}

class LoopSimplifier {
 public:
  LoopSimplifier(Module& module, PassContext& context)
      : context_(context), effects_(module), counts_(module) {}

  Changed Run(Computation& computation) {
    changed_ = Changed::kNo;
    std::vector<Instr*> loops;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kWhile) loops.push_back(instr);
    if (loops.empty()) return changed_;
    ProgramOrder program_order(computation);
    for (Instr* instr : loops) Simplify(instr, program_order);
    program_order.Finish();
    return changed_;
  }

 private:
  void Simplify(Instr* instr, ProgramOrder& program_order) {
    if (IsPinned(*instr)) return;
    std::optional<WhileLoop> loop = LoopOf(instr);
    if (!loop) return;
    std::optional<uint64_t> trips = TripCount(*loop);
    bool tests_only = trips && !effects_.Of(*loop->condition);
    if (tests_only && *trips == 0 && RunZeroTimes(*loop)) return;
    if (tests_only && *trips == 1 && RunOnce(*loop, program_order)) return;
    MergeEqual(*loop);
    SinkConstants(*loop);
    TakeResultsOut(*LoopOf(instr), trips);
    DropUnneeded(*LoopOf(instr), program_order);
  }

  void Record(std::string_view rule, const Instr& subject, const Instr* other,
              std::string because = {}) {
    context_.Accepted(rule, subject, other, std::move(because));
    changed_ = Changed::kYes;
  }

  // ---- trip counts

  bool RunZeroTimes(const WhileLoop& loop) {
    Instr* instr = loop.instr;
    Instr* value = loop.init(0);
    if (loop.size() == 1 && !(value->shape() == instr->shape())) return false;
    if (loop.size() > 1) {
      std::vector<Instr*> operands(instr->operands().begin(), instr->operands().end());
      value = Editor::Beside(*instr).Make(Op::kTuple, instr->shape(), std::move(operands));
    }
    return Replace(instr, value, "loop.no-iteration");
  }

  bool RunOnce(const WhileLoop& loop, ProgramOrder& program_order) {
    if (IsPinned(*loop.body, loop.instr->operands())) return false;
    if (!(loop.body->root()->shape() == loop.instr->shape())) return false;
    std::vector<Instr*> made;
    Instr* value = PasteBody(*loop.body, loop.instr->operands(), *loop.instr->parent(), made);
    for (const Instr* instr : made) counts_.Add(*instr);
    program_order.Put(loop.instr, made);
    return Replace(loop.instr, value, "loop.one-iteration");
  }

  bool Replace(Instr* instr, Instr* value, std::string_view rule) {
    Record(rule, *instr, value, instr->called(1)->name());
    KeepOrigins(*instr, value);
    counts_.Remove(*instr);
    Computation& computation = *instr->parent();
    std::vector<Instr*> elements(instr->users().begin(), instr->users().end());
    computation.ReplaceUses(instr, value);
    computation.Remove(instr);
    for (Instr* element : elements) {
      if (element->op() != Op::kGetTupleElement || value->op() != Op::kTuple) continue;
      Instr* part = value->operand(CarriedIndex(*element));
      if (CanReplace(*element, *part)) ReplaceBy(element, part);
      RemoveUnused(element);
    }
    return true;
  }

  // ---- carried values

  // Carried values with equal keys are equal in every iteration.
  using Key = std::tuple<int, uint64_t, uint64_t>;
  static Key KeyOf(const WhileLoop& loop, size_t i) {
    auto id = [](const Instr* instr) { return static_cast<uint64_t>(instr->id()); };
    if (loop.IsInvariant(i)) return {0, id(loop.init(i)), 0};
    std::optional<Induction> induction = InductionOf(loop, i);
    if (induction && induction->start)
      return {2 + static_cast<int>(induction->type), static_cast<uint64_t>(*induction->start),
              static_cast<uint64_t>(induction->step)};
    return {1, id(loop.init(i)), id(loop.next(i))};
  }

  void MergeEqual(WhileLoop& loop) {
    std::map<Key, size_t> first;
    std::vector<size_t> equal_to;  // computed before any edit, because keys contain ids
    for (size_t i = 0; i < loop.size(); ++i)
      equal_to.push_back(first.emplace(KeyOf(loop, i), i).first->second);
    for (size_t i = 0; i < loop.size(); ++i) {
      size_t kept = equal_to[i];
      if (kept == i || !IsMergeable(loop, i, kept)) continue;
      Own(loop);
      Record("loop.equal-carries", *loop.in_body(i), loop.in_body(kept), loop.instr->name());
      ReplaceInside(loop, i, loop.in_body(kept), loop.in_condition(kept));
      MergeResults(loop, i, kept);
    }
  }

  static bool IsMergeable(const WhileLoop& loop, size_t i, size_t kept) {
    if (!loop.in_body(i)->shape().IsArray()) return false;
    if (!CanReplace(*loop.in_body(i), *loop.in_body(kept)) ||
        !CanReplace(*loop.in_condition(i), *loop.in_condition(kept)))
      return false;
    bool is_counter = loop.next(i) != loop.next(kept) && !loop.IsInvariant(i);
    return IsUsedInside(loop, i, is_counter ? loop.next(i) : nullptr) || HasResult(loop, i);
  }

  // Whether it has uses other than being passed on and those in `but`.
  static bool IsUsedInside(const WhileLoop& loop, size_t i, const Instr* but = nullptr) {
    if (!loop.in_condition(i)->users().empty() || IsRoot(*loop.in_condition(i))) return true;
    const Instr* self = loop.in_body(i);
    const Instr* root = loop.body->root();
    for (const Instr* user : self->users())
      if (user != root && user != but) return true;
    if (root->op() != Op::kTuple) return false;
    for (size_t k = 0; k < root->operand_count(); ++k)
      if (root->operand(k) == self && k != i) return true;
    return false;
  }

  static bool HasResult(const WhileLoop& loop, size_t i) {
    for (const Instr* user : loop.instr->users())
      if (IsPlainElement(*user, loop, i)) return true;
    return false;
  }

  static bool IsPlainElement(const Instr& user, const WhileLoop& loop, size_t i) {
    return IsElementOf(&user, loop.instr) && CarriedIndex(user) == i && IsNeededInLoop(user) &&
           !user.has_extras() && !user.is_control_predecessor();
  }

  void MergeResults(const WhileLoop& loop, size_t i, size_t kept) {
    std::vector<Instr*> users(loop.instr->users().begin(), loop.instr->users().end());
    Instr* other = nullptr;
    for (Instr* user : users) {
      if (!IsPlainElement(*user, loop, i)) continue;
      if (other == nullptr)
        other = Editor::Beside(*user).Make(Op::kGetTupleElement, user->shape(), {loop.instr},
                                           TupleIndexAttrs{static_cast<int64_t>(kept)});
      ReplaceBy(user, other, true);
      RemoveUnused(user);
    }
  }

  // Redirects uses of carried value i inside the loop to the other two values; it is still passed
  // on.
  static void ReplaceInside(const WhileLoop& loop, size_t i, Instr* in_body, Instr* in_condition) {
    Instr *self = loop.in_body(i), *next = loop.next(i), *root = loop.body->root();
    MergeOrigins(in_body, *self);
    MergeOrigins(in_condition, *loop.in_condition(i));
    loop.condition->ReplaceUses(loop.in_condition(i), in_condition);
    loop.body->ReplaceUses(self, in_body);
    if (next != self) return;
    if (loop.size() == 1)
      loop.body->set_root(self);
    else
      root->set_operand(i, self);
  }

  void SinkConstants(WhileLoop& loop) {
    for (size_t i = 0; i < loop.size(); ++i) {
      if (!loop.IsInvariant(i) || !IsSinkable(loop.init(i)) || !IsUsedInside(loop, i)) continue;
      if (IsPinned(*loop.in_body(i)) || IsPinned(*loop.in_condition(i))) continue;
      if (!(loop.in_body(i)->shape() == loop.init(i)->shape()) ||
          !(loop.in_condition(i)->shape() == loop.init(i)->shape()))
        continue;
      Own(loop);
      Instr* in_body = CopyLeaf(*loop.init(i), *loop.body);
      Instr* in_condition = CopyLeaf(*loop.init(i), *loop.condition);
      Record("loop.constant-inside", *loop.in_body(i), in_body, loop.instr->name());
      ReplaceInside(loop, i, in_body, in_condition);
      RemoveUnused(in_condition);
    }
  }

  // ---- results

  // Replaces a loop-invariant result by its initial value, and a counter with a known trip count by
  // its final value. Never removes the last result of a loop that may not terminate.
  void TakeResultsOut(const WhileLoop& loop, std::optional<uint64_t> trips) {
    if (loop.size() == 1) return;
    std::vector<char> used = UsedResults(loop);
    std::vector<Instr*> users(loop.instr->users().begin(), loop.instr->users().end());
    bool keeps_one = trips.has_value() || effects_.Of(*loop.instr) || IsRoot(*loop.instr);
    for (const Instr* user : users) {
      if (IsElementOf(user, loop.instr) && !IsNeededInLoop(*user)) continue;
      keeps_one = keeps_one || !IsElementOf(user, loop.instr) ||
                  !loop.IsInvariant(CarriedIndex(*user)) || user->is_control_predecessor();
    }
    if (!keeps_one) return;
    for (Instr* user : users) {
      if (!IsElementOf(user, loop.instr) || !IsNeededInLoop(*user)) continue;
      size_t i = CarriedIndex(*user);
      if (loop.IsInvariant(i)) {
        if (!CanReplace(*user, *loop.init(i))) continue;
        Record("loop.invariant-result", *user, loop.init(i));
        ReplaceBy(user, loop.init(i));
        RemoveUnused(user);
      } else if (std::optional<Induction> induction = InductionOf(loop, i);
                 trips && induction && induction->start) {
        ReplaceByNumber(user, *induction, *trips);
      }
    }
  }

  void ReplaceByNumber(Instr* user, const Induction& induction, uint64_t trips) {
    int64_t value = ValueAfter(induction, trips);
    Instr* last =
        Editor::Beside(*user).Make(Op::kConstant, Shape::Scalar(induction.type), {},
                                   ConstantAttrs{Literal::ScalarInt(induction.type, value)});
    if (!CanReplace(*user, *last, true)) return RemoveUnused(last);
    Record("loop.counter-result", *user, last, fmt::format("after {} iterations", trips));
    ReplaceBy(user, last, true);
    RemoveUnused(user);
  }

  // ---- dead carried values

  void DropUnneeded(WhileLoop loop, ProgramOrder& program_order) {
    if (loop.size() == 1) return;
    std::vector<char> used = UsedResults(loop);
    Needs needs = Marker(loop, effects_).Run(used);
    std::vector<size_t> kept;
    for (size_t i = 0; i < loop.size(); ++i)
      if (needs.carries[i] != 0) kept.push_back(i);
    if (kept.size() == loop.size() || kept.empty()) return;
    if (!loop.body->results.empty() || !loop.condition->results.empty()) return;
    if (Own(loop)) needs = Marker(loop, effects_).Run(used);
    for (size_t i = 0; i < loop.size(); ++i)
      if (needs.carries[i] == 0)
        Record("loop.dead-carry", *loop.in_body(i), nullptr, loop.instr->name());
    std::vector<Instr*> next;
    for (size_t i : kept) next.push_back(loop.next(i));
    ShrinkBody(loop, kept, next, needs);
    ShrinkCondition(*loop.condition, kept, needs);
    ReplaceByShorter(loop, kept, program_order);
  }

  static Shape ShapeOf(const Instr& tuple, const std::vector<size_t>& kept) {
    if (kept.size() == 1) return tuple.shape().elements()[kept[0]];
    std::vector<Shape> shapes;
    for (size_t i : kept) shapes.push_back(tuple.shape().elements()[i]);
    return Shape::Tuple(std::move(shapes));
  }

  static void ShrinkBody(const WhileLoop& loop, const std::vector<size_t>& kept,
                         const std::vector<Instr*>& next, Needs& needs) {
    Computation& body = *loop.body;
    Instr* root = body.root();
    if (kept.size() == 1) {
      body.set_root(next[0]);
    } else {
      Instr* made = Editor::Beside(*root).Make(Op::kTuple, ShapeOf(*root, kept), next);
      made->set_name(root->name());
      body.set_root(made);
    }
    std::vector<Instr*> order = body.PostOrder();
    for (size_t i = order.size(); i-- > 0;) {
      Instr* instr = order[i];
      bool is_new = instr == body.root();
      if (is_new || instr->op() == Op::kParameter || needs.in_body[instr] != 0) continue;
      body.Remove(instr);
    }
    KeepParameters(body, kept);
  }

  static void ShrinkCondition(Computation& condition, const std::vector<size_t>& kept,
                              const Needs& needs) {
    RemoveAllBut(condition, needs.in_condition);
    KeepParameters(condition, kept);
  }

  static void KeepParameters(Computation& computation, const std::vector<size_t>& kept) {
    std::vector<Instr*> old = computation.parameters(), parameters;
    std::vector<char> invariant(old.size(), 0);
    for (size_t i : kept) {
      parameters.push_back(old[i]);
      invariant[i] = 1;
    }
    computation.SetParameters(std::move(parameters));
    for (size_t i = 0; i < old.size(); ++i)
      if (invariant[i] == 0) computation.Remove(old[i]);
  }

  // Replaces the loop by one that carries only `kept`. A loop with a single carried value returns
  // the array itself, not a tuple.
  void ReplaceByShorter(const WhileLoop& loop, const std::vector<size_t>& kept,
                        ProgramOrder& program_order) {
    Instr* old = loop.instr;
    std::vector<Instr*> operands;
    std::vector<int64_t> numbers(loop.size(), -1);
    for (size_t i : kept) {
      numbers[i] = static_cast<int64_t>(operands.size());
      operands.push_back(loop.init(i));
    }
    Instr* made = Editor::Beside(*old).Make(Op::kWhile, ShapeOf(*old, kept), std::move(operands));
    made->set_name(old->name());
    made->set_called({old->called().begin(), old->called().end()});
    std::vector<Instr*> users(old->users().begin(), old->users().end());
    for (Instr* user : users) {
      int64_t number = numbers[CarriedIndex(*user)];
      if (number < 0) {
        old->parent()->Remove(user);
      } else if (kept.size() == 1) {
        MergeOrigins(made, *user);
        if (CanReplace(*user, *made)) {
          old->parent()->ReplaceUses(user, made);
          old->parent()->Remove(user);
        } else {  // keeps an instruction for its sharding
          Instr* tuple =
              Editor::Beside(*user).Make(Op::kTuple, Shape::Tuple({made->shape()}), {made});
          user->set_operand(0, tuple);
          user->set_attrs(TupleIndexAttrs{0});
        }
      } else {
        user->set_operand(0, made);
        user->set_attrs(TupleIndexAttrs{number});
      }
    }
    old->parent()->Remove(old);
    program_order.Put(old, {made});
  }

  // Makes condition and body exclusive to the loop; returns true if copies invalidated `loop`.
  bool Own(WhileLoop& loop) {
    WhileLoop before = loop;
    counts_.Own(loop.instr, 0);
    counts_.Own(loop.instr, 1);
    loop = *LoopOf(loop.instr);
    return loop.condition != before.condition || loop.body != before.body;
  }

  PassContext& context_;
  Effects effects_;
  CallCounts counts_;
  Changed changed_ = Changed::kNo;
};

}  // namespace

// Removes loops that run zero times or once; forwards results that are known without the loop;
// sinks constants; merges equal carried values and removes unneeded ones. Never changes the trip
// count of a remaining loop, nor the order of side effects.
Result<Changed> SimplifyLoops(Module& module, PassContext& context) {
  if (!HasOp(module, Op::kWhile)) return Changed::kNo;
  LoopSimplifier simplifier(module, context);
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst()) changed |= simplifier.Run(*computation);
  return changed;
}

}  // namespace tokamak
