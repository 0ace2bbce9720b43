// Unification by a stack of goals (pattern instruction, program instruction). A commutative op
// leaves two ways to continue; the second is tried when any later goal fails, so that every
// assignment is found within the limit of steps.

#include "rewrite/user_match.h"

#include <algorithm>

#include "ir/compare.h"
#include "ir/compare_direction.h"
#include "rewrite/match.h"

namespace tokamak {
namespace {

size_t IndexIn(const Instr* instr) {
  return static_cast<size_t>(instr->id());
}

bool HasOneElement(const Shape& shape) {
  return shape.IsStaticArray() && shape.ElementCount() == 1;
}

// The constant of equal elements that `instr` is, through broadcasts and reshapes; null if it is
// not one.
const Literal* NumberOf(const Instr* instr) {
  while (instr->op() == Op::kBroadcast || instr->op() == Op::kReshape) instr = instr->operand(0);
  if (instr->op() != Op::kConstant || !instr->shape().IsArray()) return nullptr;
  const Literal& literal = instr->attrs<ConstantAttrs>().literal;
  bool is_number = literal.is_splat() || HasOneElement(instr->shape());
  return is_number ? &literal : nullptr;
}

bool SameNumber(const Literal& a, const Literal& b) {
  auto bytes = static_cast<size_t>(BytesOf(a.type()));
  return a.type() == b.type() &&
         a.data().Window(0, bytes).text() == b.data().Window(0, bytes).text();
}

bool SameTypes(const Shape& a, const Shape& b) {
  if (a.kind() != b.kind()) return false;
  if (a.IsArray()) return a.type() == b.type();
  return a.elements().size() == b.elements().size();
}

// Attributes that do not depend on shapes: a loose match compares them, too.
bool IsShapeless(const Instr& instr) {
  return instr.info().Is(kElementwise) || instr.op() == Op::kCustomCall ||
         instr.op() == Op::kGetTupleElement;
}

bool TakesBothOrders(const Instr* instr) {
  return instr->operand_count() == 2 && (IsCommutative(instr->op()) || instr->op() == Op::kCompare);
}

// Instructions compared for one pair by ComputesSame. Chosen: copies of a value that a program
// holds twice are small before common subexpressions are merged.
constexpr int kMostCompared = 256;

bool AreSame(const Instr* a, const Instr* b, int& left) {
  if (a == b) return true;
  if (--left < 0 || a->op() != b->op() || a->op() == Op::kParameter) return false;
  if (a->operand_count() != b->operand_count() || a->operand_count() == 0)
    if (a->op() != Op::kConstant && a->op() != Op::kIota) return false;
  if (!a->called().empty() || a->info().Is(kSideEffect) || a->info().Is(kRandom)) return false;
  if (!Compatible(a->shape(), b->shape()) || !EqualAttrs(a->op(), a->attrs(), b->attrs()))
    return false;
  for (size_t i = 0; i < a->operand_count(); ++i)
    if (!AreSame(a->operand(i), b->operand(i), left)) return false;
  return true;
}

bool IsInner(const Instr* instr) {
  return instr->operand_count() > 0 && NumberOf(instr) == nullptr &&
         SingleElementOf(instr) == instr;
}

}  // namespace

bool ComputesSame(const Instr* a, const Instr* b) {
  int left = kMostCompared;
  return AreSame(a, b, left);
}

const Instr* SingleElementOf(const Instr* instr) {
  while ((instr->op() == Op::kBroadcast || instr->op() == Op::kReshape) &&
         HasOneElement(instr->operand(0)->shape()))
    instr = instr->operand(0);
  return instr;
}

std::vector<Instr*> ResultsOfPattern(const Computation& pattern) {
  Instr* root = pattern.root();
  if (root->op() != Op::kTuple) return {root};
  return {root->operands().begin(), root->operands().end()};
}

UserMatcher::UserMatcher(const Computation& pattern, MatchMode mode)
    : pattern_(pattern), mode_(mode), roots_(ResultsOfPattern(pattern)) {}

std::optional<UserMatch> UserMatcher::Find(Instr* root) {
  bound_.assign(pattern_.id_limit(), nullptr);
  trail_.clear();
  goals_.assign(1, {roots_[0], root});
  steps_ = 0;
  if (!Solve() || !FindOtherRoots(1)) return std::nullopt;
  UserMatch match = Result();
  if (std::ranges::count(match.variables, nullptr) > 0) return std::nullopt;
  return match;
}

bool UserMatcher::Computes(const Instr* p, const Instr* i, const std::vector<Instr*>& variables) {
  bound_.assign(pattern_.id_limit(), nullptr);
  trail_.clear();
  for (size_t k = 0; k < variables.size(); ++k)
    bound_[IndexIn(pattern_.parameter(k))] = variables[k];
  goals_.assign(1, {p, i});
  steps_ = 0;
  return Solve();
}

// Further results are among the instructions with the same op in the computation of the first.
bool UserMatcher::FindOtherRoots(size_t next) {
  if (next == roots_.size()) return true;
  const Instr* pattern = roots_[next];
  if (bound_[IndexIn(pattern)] != nullptr) return FindOtherRoots(next + 1);
  for (Instr* candidate : bound_[IndexIn(roots_[0])]->parent()->PostOrder()) {
    if (candidate->op() != pattern->op()) continue;
    size_t mark = trail_.size();
    goals_.assign(1, {pattern, candidate});
    if (Solve() && FindOtherRoots(next + 1)) return true;
    goals_.clear();
    Undo(mark);
  }
  return false;
}

void UserMatcher::Undo(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) bound_[IndexIn(trail_.back())] = nullptr;
}

// Leaves the goals as they were if it fails.
bool UserMatcher::Solve() {
  if (goals_.empty()) return true;
  if (++steps_ > kMostSteps) return false;
  Goal goal = goals_.back();
  goals_.pop_back();
  const size_t mark = trail_.size(), base = goals_.size();
  bool has_order = false;
  for (bool swapped : {false, true}) {
    if (swapped && !has_order) break;
    if (Expand(goal, swapped, has_order) && Solve()) return true;
    goals_.resize(base);
    Undo(mark);
  }
  goals_.push_back(goal);
  return false;
}

bool UserMatcher::Bind(const Instr* pattern, const Instr* instr) {
  bound_[IndexIn(pattern)] = instr;
  trail_.push_back(pattern);
  return true;
}

// Compares one pair and adds the goals for its operands. `has_order` is set if the operands may
// also be exchanged.
bool UserMatcher::Expand(Goal goal, bool swapped, bool& has_order) {
  auto [p, i] = goal;
  if (const Instr* known = bound_[IndexIn(p)]; known != nullptr)
    return known == i || ComputesSame(known, i);
  const bool exact = mode_ == MatchMode::kExact;
  if (p->op() == Op::kParameter) {
    if (!SameTypes(p->shape(), i->shape()) || !i->shape().IsArray()) return false;
    bool fits = SameDims(p->shape(), i->shape()) ||
                (HasOneElement(p->shape()) && HasOneElement(i->shape()));
    return (fits || !exact) && Bind(p, i);
  }
  if (!SameTypes(p->shape(), i->shape())) return false;
  if (exact && !Compatible(p->shape(), i->shape())) return false;
  if (const Literal* number = NumberOf(p); number != nullptr) {
    const Literal* found = NumberOf(i);
    if (found == nullptr || number->type() != found->type()) return false;
    return (mode_ == MatchMode::kAnyNumber || SameNumber(*number, *found)) && Bind(p, i);
  }
  if (const Instr* single = SingleElementOf(p); single != p) {
    const Instr* found = SingleElementOf(i);
    if (found == i && !(HasOneElement(i->shape()) && !exact)) return false;
    Bind(p, i);
    goals_.push_back({single, found});
    return true;
  }
  if (swapped && p->op() == Op::kCompare) {
    if (i->op() != Op::kCompare) return false;
    CompareAttrs attrs = p->attrs<CompareAttrs>();
    attrs.direction = Swapped(attrs.direction);
    if (!(attrs == i->attrs<CompareAttrs>())) return false;
  } else if (!SameOp(p, i)) {
    if (p->op() == Op::kCompare && i->op() == Op::kCompare) has_order = true;
    return false;
  }
  has_order = TakesBothOrders(p);
  Bind(p, i);
  const size_t count = p->operand_count();
  // The last goal is solved first: that of the first operand.
  for (size_t k = count; k-- > 0;)
    goals_.push_back({p->operand(k), i->operand(swapped ? count - 1 - k : k)});
  return true;
}

bool UserMatcher::SameOp(const Instr* p, const Instr* i) {
  if (p->op() != i->op() || p->operand_count() != i->operand_count()) return false;
  if (p->captures() != i->captures() || p->called().size() != i->called().size()) return false;
  if (i->is_control_predecessor()) return false;
  if (mode_ == MatchMode::kExact || IsShapeless(*p))
    if (!EqualAttrs(p->op(), p->attrs(), i->attrs())) return false;
  return SameCallees(p, i);
}

bool UserMatcher::SameCallees(const Instr* p, const Instr* i) {
  for (size_t k = 0; k < p->called().size(); ++k) {
    const Computation& a = *p->called(k);
    const Computation& b = *i->called(k);
    if (a.parameters().size() != b.parameters().size()) return false;
    UserMatcher inner(a, mode_);
    for (size_t n = 0; n < a.parameters().size(); ++n)
      if (!SameTypes(a.parameter(n)->shape(), b.parameter(n)->shape())) return false;
    if (!inner.Computes(a.root(), b.root(), b.parameters())) return false;
  }
  return true;
}

UserMatch UserMatcher::Result() const {
  auto at = [&](const Instr* pattern) { return const_cast<Instr*>(bound_[IndexIn(pattern)]); };
  UserMatch match;
  for (const Instr* root : roots_) match.roots.push_back(at(root));
  for (const Instr* parameter : pattern_.parameters()) match.variables.push_back(at(parameter));
  for (const Instr* pattern : trail_) {
    if (pattern->op() == Op::kParameter || !IsInner(pattern)) continue;
    if (std::ranges::count(match.roots, at(pattern)) > 0) continue;
    match.inner.push_back(at(pattern));
    match.inner_patterns.push_back(pattern);
  }
  return match;
}

}  // namespace tokamak
