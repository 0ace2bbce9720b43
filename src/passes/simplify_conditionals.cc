// Simplifies conditionals:
//
//   index     Known, or only one branch: the branch is inlined.
//   branches  Equal, with equal arguments: the first is inlined. Tiny and pure: all are inlined,
//             followed by a select.
//   results   Unused ones are removed; those that every branch takes from the same outer value are
//             forwarded.
//   inside    Constants are sunk into the branch, unused parameters are removed, computations
//             common to all branches are hoisted.
//
// Linear in the conditionals and their branches.

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "ir/compare.h"
#include "passes/passes.h"
#include "rewrite/branches.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

bool IsNeededBranch(const Instr& instr) {
  return !instr.users().empty() || instr.parent()->root() == &instr ||
         instr.is_control_predecessor();
}

size_t ElementIndex(const Instr& element) {
  return static_cast<size_t>(element.attrs<TupleIndexAttrs>().index);
}

// The branch taken, if it is known.
std::optional<size_t> KnownBranch(const Branches& branches) {
  if (branches.size() == 1) return 0;
  const Instr& index = *branches.index();
  if (index.op() != Op::kConstant) return std::nullopt;
  int64_t value = index.attrs<ConstantAttrs>().literal.IntAt(0);
  if (index.shape().type() == ElementType::kPred) return value != 0 ? 0 : 1;
  auto count = static_cast<int64_t>(branches.size());
  return static_cast<size_t>(value < 0 || value >= count ? count - 1 : value);
}

// An index map, or a value without operands: it stays where it is read.
bool IsBranchView(const Instr& instr) {
  switch (instr.op()) {
    case Op::kParameter:
    case Op::kConstant:
    case Op::kIota:
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kBitcast:
    case Op::kSlice:
    case Op::kTuple:
      return true;
    default:
      return false;
  }
}

// Hoisting it does not increase live memory beyond its operands.
bool MayBeKept(const Instr& instr) {
  if (IsBranchView(instr) || !instr.shape().IsStaticArray()) return false;
  int64_t read = 0;
  for (const Instr* operand : instr.operands())
    if (operand->shape().IsStaticArray() && !IsBranchView(*operand))
      read += operand->shape().ByteSize();
    else if (operand->op() == Op::kParameter && operand->shape().IsStaticArray())
      read += operand->shape().ByteSize();
  return instr.shape().ByteSize() <= read;
}

bool IsLeaf(const Instr& instr) {
  if (IsPinned(instr) || !instr.shape().IsArray()) return false;
  return instr.op() == Op::kConstant || instr.op() == Op::kIota ||
         (instr.op() == Op::kBroadcast && instr.operand(0)->op() == Op::kConstant &&
          !IsPinned(*instr.operand(0)));
}

class ConditionalSimplifier {
 public:
  ConditionalSimplifier(Module& module, PassContext& context)
      : context_(context), counts_(module) {}

  Changed Run(Computation& computation) {
    changed_ = Changed::kNo;
    std::vector<Instr*> found;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kConditional && !IsPinned(*instr)) found.push_back(instr);
    if (found.empty()) return changed_;
    ProgramOrder program_order(computation);
    for (Instr* instr : found) Simplify(instr, program_order);
    program_order.Finish();
    return changed_;
  }

 private:
  void Simplify(Instr* instr, ProgramOrder& program_order) {
    Branches branches(instr);
    if (std::optional<size_t> known = KnownBranch(branches)) {
      std::string_view rule = branches.size() == 1 ? "cond.one-branch" : "cond.known-branch";
      if (InlineBranch(branches, *known, rule, program_order)) return;
    }
    if (AreEqual(branches) && InlineBranch(branches, 0, "cond.equal-branches", program_order))
      return;
    for (size_t k = 0; k < branches.size(); ++k)
      if (!branches.branch(k)->results.empty()) return;
    TakeResultsOut(branches);
    if (Instr* next = DropResults(branches, program_order)) branches = Branches(next);
    if (SelectInstead(branches, program_order)) return;
    MoveCommonOut(branches, program_order);
    ShrinkArguments(branches, program_order);
  }

  void Record(std::string_view rule, const Instr& subject, const Instr* other = nullptr,
              std::string because = {}) {
    context_.Accepted(rule, subject, other, std::move(because));
    changed_ = Changed::kYes;
  }

  // ---- whole conditionals

  static bool AreEqual(const Branches& branches) {
    for (size_t k = 1; k < branches.size(); ++k) {
      if (branches.arguments[k] != branches.arguments[0]) return false;
      if (branches.branch(k) == branches.branch(0)) continue;
      if (!SameBody(*branches.branch(0), *branches.branch(k))) return false;
    }
    return true;
  }

  bool InlineBranch(const Branches& branches, size_t k, std::string_view rule,
                    ProgramOrder& program_order) {
    const Computation& branch = *branches.branch(k);
    Instr* instr = branches.instr;
    if (IsPinned(branch, branches.arguments[k])) return false;
    if (!(branch.root()->shape() == instr->shape())) return false;
    for (size_t i = 0; i < branches.arguments[k].size(); ++i)
      if (!(branch.parameter(i)->shape() == branches.arguments[k][i]->shape())) return false;
    std::vector<Instr*> made;
    Instr* value = PasteBody(branch, branches.arguments[k], *instr->parent(), made);
    for (const Instr* copy : made) counts_.Add(*copy);
    Record(rule, *instr, value, branch.name());
    program_order.Put(instr, std::move(made));
    Replace(instr, value);
    return true;
  }

  // Replaces `instr` by `value` and removes it; forwards elements of a new tuple op.
  void Replace(Instr* instr, Instr* value) {
    KeepOrigins(*instr, value);
    counts_.Remove(*instr);
    Computation& computation = *instr->parent();
    std::vector<Instr*> users(instr->users().begin(), instr->users().end());
    computation.ReplaceUses(instr, value);
    computation.Remove(instr);
    if (value->op() != Op::kTuple) return;
    for (Instr* user : users) {
      if (user->op() != Op::kGetTupleElement) continue;
      Instr* part = value->operand(ElementIndex(*user));
      if (CanReplace(*user, *part)) ReplaceBy(user, part);
      RemoveUnused(user);
    }
  }

  // ---- results

  // Forwards results that are the same in every branch.
  void TakeResultsOut(const Branches& branches) {
    if (!branches.instr->shape().IsTuple()) return;
    for (size_t k = 0; k < branches.size(); ++k)
      if (branches.branch(k)->root()->op() != Op::kTuple) return;
    CommonCode common(branches);
    std::vector<Instr*> users(branches.instr->users().begin(), branches.instr->users().end());
    for (Instr* user : users) {
      if (user->op() != Op::kGetTupleElement || !IsNeededBranch(*user)) continue;
      int number = common.ClassOf(0, branches.branch(0)->root()->operand(ElementIndex(*user)));
      for (size_t k = 1; k < branches.size() && number >= 0; ++k)
        if (common.ClassOf(k, branches.branch(k)->root()->operand(ElementIndex(*user))) != number)
          number = -1;
      if (number < 0) continue;
      Instr* outer = common.Outer(number);
      const Instr* first = common.Representative(number);
      bool is_new = outer == nullptr;
      if (is_new && first->op() != Op::kConstant) continue;
      if (is_new) outer = CopyTo(*user->parent(), *first, {});
      if (!CanReplace(*user, *outer, is_new)) {
        if (is_new) RemoveUnused(outer);
        continue;
      }
      Record("cond.same-result", *user, outer);
      ReplaceBy(user, outer, is_new);
      RemoveUnused(user);
    }
  }

  // Rebuilds the conditional without unused results; null if all are used.
  Instr* DropResults(Branches& branches, ProgramOrder& program_order) {
    Instr* instr = branches.instr;
    if (!instr->shape().IsTuple() || instr->parent()->root() == instr) return nullptr;
    std::vector<char> used(instr->shape().elements().size(), 0);
    for (const Instr* user : instr->users()) {
      if (user->op() != Op::kGetTupleElement) return nullptr;
      if (IsNeededBranch(*user)) used[ElementIndex(*user)] = 1;
    }
    std::vector<size_t> kept;
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i] != 0) kept.push_back(i);
    if (kept.size() == used.size() || kept.empty()) return nullptr;
    Own(branches);
    Record("cond.unused-results", *instr, nullptr,
           fmt::format("{} of {}", used.size() - kept.size(), used.size()));
    for (size_t k = 0; k < branches.size(); ++k) ShrinkRoot(*branches.branch(k), kept);
    Instr* made = RebuildConditional(branches, ShapeOf(*instr, kept));
    ReplaceElements(instr, made, kept);
    instr->parent()->Remove(instr);
    program_order.Put(instr, {made});
    return made;
  }

  static Shape ShapeOf(const Instr& tuple, const std::vector<size_t>& kept) {
    if (kept.size() == 1) return tuple.shape().elements()[kept[0]];
    std::vector<Shape> shapes;
    for (size_t i : kept) shapes.push_back(tuple.shape().elements()[i]);
    return Shape::Tuple(std::move(shapes));
  }

  static void ShrinkRoot(Computation& branch, const std::vector<size_t>& kept) {
    Instr* root = branch.root();
    std::vector<Instr*> elements;
    for (size_t i : kept) elements.push_back(ElementOf(root, i));
    if (kept.size() == 1) {
      MergeOrigins(elements[0], *root);
      branch.set_root(elements[0]);
    } else {
      branch.set_root(Editor::Beside(*root).Make(Op::kTuple, ShapeOf(*root, kept), elements));
    }
    RemoveUnused(root);
  }

  static void ReplaceElements(Instr* old, Instr* made, const std::vector<size_t>& kept) {
    Computation& computation = *old->parent();
    std::vector<Instr*> users(old->users().begin(), old->users().end());
    for (Instr* user : users) {
      auto it = std::ranges::find(kept, ElementIndex(*user));
      if (it == kept.end()) {
        computation.Remove(user);
      } else if (kept.size() > 1) {
        user->set_operand(0, made);
        user->set_attrs(TupleIndexAttrs{it - kept.begin()});
      } else if (CanReplace(*user, *made)) {
        MergeOrigins(made, *user);
        computation.ReplaceUses(user, made);
        computation.Remove(user);
      } else {  // keeps an instruction for its sharding
        user->set_operand(
            0, Editor::Beside(*user).Make(Op::kTuple, Shape::Tuple({made->shape()}), {made}));
        user->set_attrs(TupleIndexAttrs{0});
      }
    }
  }

  // ---- select

  bool IsTiny(const Branches& branches) const {
    int64_t instrs = 0, elements = 0;
    for (size_t k = 0; k < branches.size(); ++k) {
      const Computation& branch = *branches.branch(k);
      if (IsPinned(branch, branches.arguments[k])) return false;
      for (const Instr* instr : branch.Instrs()) {
        if (instr->op() == Op::kTuple && instr == branch.root()) continue;
        if (!instr->shape().IsStaticArray()) return false;
        if (instr->op() == Op::kParameter) continue;
        constexpr uint16_t kCheap = kElementwise | kDataMovement | kLeaf;
        if (!IsPlain(*instr) || IsPinned(*instr) || !instr->called().empty()) return false;
        if ((instr->info().traits & kCheap) == 0 || instr->op() == Op::kGather) return false;
        ++instrs;
        elements += std::min(instr->shape().ElementCount(), context_.limits.selected_elements + 1);
        if (instrs > context_.limits.selected_instrs ||
            elements > context_.limits.selected_elements)
          return false;
      }
    }
    return true;
  }

  // Executes all branches and selects the result: for tiny branches without effects this costs less
  // than a branch, and lets them fuse.
  bool SelectInstead(const Branches& branches, ProgramOrder& program_order) {
    // Maximum branches of a select chain. Chosen.
    constexpr size_t kMostBranches = 4;
    Instr* instr = branches.instr;
    if (branches.size() > kMostBranches || !IsTiny(branches)) return false;
    bool is_tuple = instr->shape().IsTuple();
    const std::vector<Shape> shapes =
        is_tuple ? instr->shape().elements() : std::vector<Shape>{instr->shape()};
    int64_t elements = 0;
    for (const Shape& shape : shapes) {
      if (!shape.IsStaticArray()) return false;
      elements += std::min(shape.ElementCount(), context_.limits.selected_elements + 1);
    }
    if (elements > context_.limits.selected_elements) return false;
    for (size_t k = 0; k < branches.size(); ++k)
      if (!(branches.branch(k)->root()->shape() == instr->shape()) ||
          (is_tuple && branches.branch(k)->root()->op() != Op::kTuple))
        return false;
    std::vector<Instr*> made;
    std::vector<Instr*> values;
    for (size_t k = 0; k < branches.size(); ++k)
      values.push_back(
          PasteBody(*branches.branch(k), branches.arguments[k], *instr->parent(), made));
    std::vector<Instr*> results;
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<Instr*> parts;
      for (Instr* value : values) parts.push_back(is_tuple ? value->operand(i) : value);
      results.push_back(Choose(branches, parts));
    }
    Instr* value =
        is_tuple ? Editor::Beside(*instr).Make(Op::kTuple, instr->shape(), results) : results[0];
    Record("cond.select", *instr, value);
    program_order.Put(instr, {});
    Replace(instr, value);
    for (Instr* part : values) RemoveUnused(part);
    return true;
  }

  // Selects the value of the branch that the index names.
  static Instr* Choose(const Branches& branches, const std::vector<Instr*>& parts) {
    const Instr& like = *branches.instr;
    Instr* chosen = parts.back();
    for (size_t k = parts.size() - 1; k-- > 0;) {
      if (parts[k] == chosen) continue;
      Instr* is_it = branches.index();
      if (is_it->shape().type() != ElementType::kPred) {
        Instr* number = Editor::Beside(like).Make(
            Op::kConstant, is_it->shape(), {},
            ConstantAttrs{Literal::ScalarInt(is_it->shape().type(), static_cast<int64_t>(k))});
        is_it = Editor::Beside(like).Make(Op::kCompare, Shape::Scalar(ElementType::kPred),
                                          {branches.index(), number},
                                          CompareAttrs{CompareDirection::kEq, CompareType::kNone});
      }
      chosen = Editor::Beside(like).Make(Op::kSelect, chosen->shape(), {is_it, parts[k], chosen});
    }
    return chosen;
  }

  // ---- inside

  void MoveCommonOut(Branches& branches, ProgramOrder& program_order) {
    CommonCode common(branches);
    std::vector<std::vector<int>> needed(branches.size());
    bool any = false;
    for (size_t k = 0; k < branches.size(); ++k) {
      needed[k] = NeededClasses(branches, common, k);
      any = any || !needed[k].empty();
    }
    if (!any) return;
    if (Own(branches)) {
      common = CommonCode(branches);
      for (size_t k = 0; k < branches.size(); ++k) needed[k] = NeededClasses(branches, common, k);
    }
    std::unordered_map<int, Instr*> outside;
    for (size_t k = 0; k < branches.size(); ++k)
      for (int number : needed[k]) CopyOutside(branches, common, number, outside);
    for (size_t k = 0; k < branches.size(); ++k) PassIn(branches, common, k, needed[k], outside);
    Instr* made = RebuildConditional(branches, branches.instr->shape());
    Instr* old = branches.instr;
    old->parent()->ReplaceUses(old, made);
    old->parent()->Remove(old);
    program_order.Put(old, {made});
    branches = Branches(made);
  }

  // Hoisted classes that instructions remaining in this branch use.
  static std::vector<int> NeededClasses(const Branches& branches, const CommonCode& common,
                                        size_t k) {
    const Computation& branch = *branches.branch(k);
    InstrMap<char> needed(branch, 0);
    needed[branch.root()] = 1;
    std::vector<Instr*> order = branch.PostOrder();
    std::vector<int> numbers;
    std::unordered_set<int> listed;
    for (size_t i = order.size(); i-- > 0;) {
      int number = common.ClassOf(k, order[i]);
      bool moves = number >= 0 && MayBeKept(*common.Representative(number));
      if (moves && needed[order[i]] != 0 && listed.insert(number).second) numbers.push_back(number);
      if (moves || (number >= 0 && needed[order[i]] == 0)) continue;
      for (const Instr* operand : order[i]->operands()) needed[operand] = 1;
    }
    std::reverse(numbers.begin(), numbers.end());
    return numbers;
  }

  // Copies the class and its operands outside, each once.
  void CopyOutside(const Branches& branches, const CommonCode& common, int number,
                   std::unordered_map<int, Instr*>& outside) {
    std::vector<int> open = {number};
    while (!open.empty()) {
      int next = open.back();
      if (outside.contains(next)) {
        open.pop_back();
        continue;
      }
      const Instr* first = common.Representative(next);
      std::vector<Instr*> operands;
      size_t waiting = open.size();
      if (common.Outer(next) == nullptr) {
        for (const Instr* operand : first->operands()) {
          int needs = common.ClassOf(0, operand);
          if (auto it = outside.find(needs); it != outside.end())
            operands.push_back(it->second);
          else
            open.push_back(needs);
        }
      }
      if (open.size() != waiting) continue;
      Instr* outer = common.Outer(next);
      if (outer == nullptr) {
        outer = CopyTo(*branches.instr->parent(), *first, std::move(operands));
        counts_.Add(*outer);
      }
      outside.emplace(next, outer);
      open.pop_back();
    }
    Record("cond.common-code", *common.Representative(number), outside.at(number),
           branches.instr->name());
  }

  static void PassIn(Branches& branches, const CommonCode& common, size_t k,
                     const std::vector<int>& needed,
                     const std::unordered_map<int, Instr*>& outside) {
    Computation& branch = *branches.branch(k);
    std::unordered_map<int, std::vector<Instr*>> found;
    for (Instr* instr : branch.PostOrder())
      if (int number = common.ClassOf(k, instr); number >= 0) found[number].push_back(instr);
    for (int number : needed) {
      Instr* outer = outside.at(number);
      Instr* parameter = branch.AppendParameter(static_cast<int64_t>(branch.parameters().size()),
                                                outer->shape(), outer->name());
      branches.arguments[k].push_back(outer);
      for (Instr* instr : found[number]) {
        if (instr->is_removed()) continue;
        MergeOrigins(parameter, *instr);
        MergeOrigins(outer, *instr);
        branch.ReplaceUses(instr, parameter);
      }
    }
    for (int number : needed)
      for (Instr* instr : found[number]) RemoveUnused(instr);
  }

  // Sinks constants into the branches and removes unused parameters.
  void ShrinkArguments(Branches& branches, ProgramOrder& program_order) {
    bool any = false;
    for (size_t k = 0; k < branches.size(); ++k)
      for (size_t i = 0; i < branches.arguments[k].size(); ++i) any = any || MayGo(branches, k, i);
    if (!any) return;
    Own(branches);
    for (size_t k = 0; k < branches.size(); ++k) {
      Computation& branch = *branches.branch(k);
      std::vector<Instr*> old = branch.parameters(), parameters, arguments;
      std::vector<Instr*> gone;
      for (size_t i = 0; i < old.size(); ++i) {
        if (!MayGo(branches, k, i)) {
          parameters.push_back(old[i]);
          arguments.push_back(branches.arguments[k][i]);
          continue;
        }
        if (IsNeededBranch(*old[i]))
          WriteInside(branch, old[i], *branches.arguments[k][i]);
        else
          Record("cond.unused-argument", *old[i], nullptr, branch.name());
        gone.push_back(old[i]);
      }
      branch.SetParameters(parameters);
      for (Instr* parameter : gone) branch.Remove(parameter);
      branches.arguments[k] = std::move(arguments);
    }
    Instr* made = RebuildConditional(branches, branches.instr->shape());
    Instr* old = branches.instr;
    old->parent()->ReplaceUses(old, made);
    old->parent()->Remove(old);
    program_order.Put(old, {made});
  }

  static bool MayGo(const Branches& branches, size_t k, size_t i) {
    const Instr& parameter = *branches.branch(k)->parameter(i);
    if (IsPinned(parameter)) return false;
    if (!IsNeededBranch(parameter)) return true;
    const Instr& argument = *branches.arguments[k][i];
    return IsLeaf(argument) && parameter.shape() == argument.shape();
  }

  void WriteInside(Computation& branch, Instr* parameter, const Instr& leaf) {
    std::vector<Instr*> operands;
    for (const Instr* operand : leaf.operands()) operands.push_back(CopyTo(branch, *operand, {}));
    Instr* copy = CopyTo(branch, leaf, std::move(operands));
    Record("cond.constant-inside", *parameter, copy, branch.name());
    MergeOrigins(copy, *parameter);
    branch.ReplaceUses(parameter, copy);
  }

  // Makes all branches exclusive to this conditional; returns whether any was copied.
  bool Own(Branches& branches) {
    bool copied = false;
    for (size_t k = 0; k < branches.size(); ++k) {
      const Computation* before = branches.branch(k);
      copied = (counts_.Own(branches.instr, k) != before) || copied;
    }
    return copied;
  }

  PassContext& context_;
  CallCounts counts_;
  Changed changed_ = Changed::kNo;
};

}  // namespace

// Removes conditionals with a known branch, with equal branches, or with tiny pure branches.
// Removes unused results and arguments, and hoists computations common to all branches. Preserves
// the order of side effects and the branch taken.
Result<Changed> SimplifyConditionals(Module& module, PassContext& context) {
  if (!HasOp(module, Op::kConditional)) return Changed::kNo;
  ConditionalSimplifier simplifier(module, context);
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst()) changed |= simplifier.Run(*computation);
  return changed;
}

}  // namespace tokamak
