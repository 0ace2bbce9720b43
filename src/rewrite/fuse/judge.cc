#include "rewrite/fuse/judge.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "rewrite/bodies.h"
#include "rewrite/fuse/facts.h"

namespace tokamak::fuse {
namespace {

using enum FusionRule;

Judgement Refuse(FusionRule rule, std::string because = {}) {
  return Refusal{rule, std::move(because)};
}

std::string NameOfOp(const Instr& instr) {
  return std::string(instr.info().name);
}

// The loop that a kernel with several results has.
struct LoopShape {
  Dims dims;
  Dims reduced;  // of a reduction
};

LoopShape LoopShapeOf(const Instr& instr, const Judge& judge) {
  const Instr* root = &RootOf(instr);
  LoopShape loop;
  std::vector<const Instr*> roots = {root};
  if (root->op() == Op::kTuple) roots.assign(root->operands().begin(), root->operands().end());
  for (const Instr* result : roots) {
    bool folds = judge.IsLargeReduction(*result);
    const Shape& shape = folds ? result->operand(0)->shape() : result->shape();
    loop.dims = (shape.IsTuple() ? shape.elements()[0] : shape).dims();
    if (folds) loop.reduced = result->attrs<DimensionsAttrs>().dimensions;
  }
  return loop;
}

std::string ToText(const Dims& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

// All results are put into the tuple one by one, and taken out so.
bool IsTakenApart(const Instr& instr) {
  return !instr.shape().IsTuple() ||
         (RootOf(instr).op() == Op::kTuple && instr.parent()->root() != &instr &&
          std::all_of(instr.users().begin(), instr.users().end(), [](const Instr* user) {
            return user->op() == Op::kGetTupleElement && !IsPinned(*user);
          }));
}

}  // namespace

bool Judge::IsLargeReduction(const Instr& instr) const {
  return FoldedElements(instr) >= limits_.fused_small_reduction;
}

int64_t Judge::ArgumentsOf(const Instr& a, const Instr& b, bool joined) const {
  std::unordered_set<const Instr*> inputs;
  for (const Instr* instr : {&a, &b})
    for (const Instr* operand : instr->operands())
      if (operand != &a && operand != &b && !operand->shape().IsScalar()) inputs.insert(operand);
  return static_cast<int64_t>(inputs.size()) + ResultsOf(b) + (joined ? ResultsOf(a) : 0);
}

Judgement Judge::Size(const Instr& a, const Instr& b, bool joined) const {
  int64_t arguments = ArgumentsOf(a, b, joined), instrs = InstrsOf(a) + InstrsOf(b);
  if (!lifted_.Has(kKernelSize) && arguments > limits_.fused_arguments)
    return Refuse(kKernelSize,
                  fmt::format("{} arguments of {}", arguments, limits_.fused_arguments));
  if (!lifted_.Has(kKernelSize) && instrs > limits_.fused_instrs)
    return Refuse(kKernelSize, fmt::format("{} instructions of {}", instrs, limits_.fused_instrs));
  // What few instructions hold is not worth counting.
  constexpr int64_t kFewInstrs = 32;
  if (lifted_.Has(kRegisters) || instrs < kFewInstrs) return std::nullopt;
  int64_t of_a = RegistersOf(a), of_b = RegistersOf(b), kept = joined ? ResultsOf(a) : 1;
  int64_t registers = std::max(of_a, of_b + kept);
  if (registers > limits_.fused_registers)
    return Refuse(kRegisters, fmt::format("{} of {}", registers, limits_.fused_registers));
  return std::nullopt;
}

Judgement Judge::LawsOfEntry(const Instr& producer, const Instr& user) const {
  if (!producer.shape().IsArray() && (MayEnd(producer) || IsFusion(producer)))
    return Refuse(kSeveralResults);
  if (!MayPrecede(producer)) return Refuse(kOpKind, NameOfOp(producer));
  if (!MayEnd(user)) return Refuse(kOpKind, NameOfOp(user));
  auto holds = [&](const Instr& i) { return control_binds_ ? IsPinned(i) : IsMarked(i); };
  if (holds(producer) || holds(user)) return Refuse(kPinned);
  bool is_filled = producer.op() == Op::kBroadcast || producer.op() == Op::kIota;
  if (UpdatesInPlace(user, producer) && !(is_filled && RootOf(user).op() != Op::kScatter))
    return Refuse(kInPlace);
  return std::nullopt;
}

Judgement Judge::MayEnter(const Instr& producer, const Instr& user) const {
  if (Judgement law = LawsOfEntry(producer, user)) return law;
  auto asks = [&](FusionRule rule) { return !lifted_.Has(rule); };
  if (asks(kConstantArray) && producer.op() == Op::kConstant && !producer.shape().IsScalar())
    return Refuse(kConstantArray, fmt::format("{} bytes", BytesOf(producer.shape())));
  if (asks(kReductionRoot) && IsLargeReduction(RootOf(producer)))
    return Refuse(kReductionRoot, fmt::format("{} elements", FoldedElements(RootOf(producer))));
  if (asks(kCoalescing) && IsLargeReduction(RootOf(user)) && Transposes(producer))
    return Refuse(kCoalescing);
  if (asks(kInnerLoop) && HoldsInnerLoop(producer) && ReadsRepeatedly(user, producer))
    return Refuse(kInnerLoop);
  if (asks(kExpensiveOp) && IsExpensive(producer) && ReusesElements(user, producer))
    return Refuse(kExpensiveOp, "the user reads elements several times");
  return Size(producer, user, false);
}

Judgement Judge::MayBeCopied(const Instr& producer) const {
  std::vector<Instr*> users = DistinctUsers(producer);
  std::string because = fmt::format("{} users", users.size());
  if (!lifted_.Has(kConcatMultiUser) && producer.op() == Op::kConcatenate)
    return Refuse(kConcatMultiUser, because);
  if (!lifted_.Has(kExpensiveOp) && IsExpensive(producer)) return Refuse(kExpensiveOp, because);
  if (lifted_.Has(kDuplication) || IsUnary(producer)) return std::nullopt;
  for (const Instr* user : users)
    if (Judgement refused = MayEnter(producer, *user))
      return Refuse(kDuplication,
                    fmt::format("{} cannot: {}", LabelOf(*user), InfoOf(refused->rule).name));
  if (producer.parent()->root() == &producer) return Refuse(kDuplication, "it is the result");
  return std::nullopt;
}

Judgement Judge::MayBeMerged(const Instr& fusion) const {
  if (fusion.shape().IsTuple()) return Refuse(kSeveralResults);
  if (!lifted_.Has(kReductionRoot) && IsLargeReduction(RootOf(fusion)))
    return Refuse(kReductionRoot, fmt::format("{} elements", FoldedElements(RootOf(fusion))));
  if (!lifted_.Has(kExpensiveOp) && IsExpensive(fusion)) return Refuse(kExpensiveOp);
  std::vector<Instr*> users = DistinctUsers(fusion);
  // What instruction fusion left for this is not put into users by the back door.
  if (!lifted_.Has(kConcatMultiUser) && users.size() > 1 && RootOf(fusion).op() == Op::kConcatenate)
    return Refuse(kConcatMultiUser, fmt::format("{} users", users.size()));
  int64_t own = BytesOf(fusion.shape()), now = own, then = 0;
  for (const Instr* operand : DistinctOperands(fusion)) now += BytesOf(operand->shape());
  bool is_root = fusion.parent()->root() == &fusion;
  for (const Instr* user : users) {
    if (user->op() != Op::kFusion)
      return Refuse(kAllOrNone, fmt::format("{} is no fusion", LabelOf(*user)));
    if (Judgement refused = MayEnter(fusion, *user)) {
      bool is_law = InfoOf(refused->rule).kind == RuleKind::kLaw;
      if (users.size() == 1 || (is_law && lifted_.Has(kAllOrNone))) return refused;
      if (!lifted_.Has(kAllOrNone))
        return Refuse(kAllOrNone,
                      fmt::format("{}: {}", LabelOf(*user), InfoOf(refused->rule).name));
    }
    std::unordered_set<const Instr*> merged(user->operands().begin(), user->operands().end());
    for (const Instr* operand : merged) now += BytesOf(operand->shape());
    merged.erase(&fusion);
    merged.insert(fusion.operands().begin(), fusion.operands().end());
    for (const Instr* operand : merged) then += BytesOf(operand->shape());
  }
  if (is_root) return Refuse(kAllOrNone, "it is the result");
  constexpr double kMostMore = 1.1;
  if (!lifted_.Has(kMoreBytes) && static_cast<double>(then) > kMostMore * static_cast<double>(now))
    return Refuse(kMoreBytes, fmt::format("{} instead of {}", then, now));
  return std::nullopt;
}

Judgement Judge::MayShareLoop(const Instr& a, const Instr& b) const {
  for (const Instr* instr : {&a, &b}) {
    bool is_update =
        RootOf(*instr).op() == Op::kDynamicUpdateSlice || RootOf(*instr).op() == Op::kScatter;
    if (is_update) return Refuse(kInPlace);
    if (!MayEnd(*instr)) return Refuse(kOpKind, NameOfOp(*instr));
    if (!IsTakenApart(*instr)) return Refuse(kSeveralResults);
    if (IsPinned(*instr)) return Refuse(kPinned);
  }
  if (!lifted_.Has(kShapeCompatibility)) {
    LoopShape of_a = LoopShapeOf(a, *this), of_b = LoopShapeOf(b, *this);
    bool other_sums =
        !of_a.reduced.empty() && !of_b.reduced.empty() && of_a.reduced != of_b.reduced;
    if (of_a.dims != of_b.dims || other_sums)
      return Refuse(kShapeCompatibility,
                    fmt::format("{}{} and {}{}", ToText(of_a.dims),
                                of_a.reduced.empty() ? "" : " over " + ToText(of_a.reduced),
                                ToText(of_b.dims),
                                of_b.reduced.empty() ? "" : " over " + ToText(of_b.reduced)));
  }
  return Size(a, b, true);
}

Judgement Judge::MayBePacked(const Instr& instr) const {
  bool is_loop =
      MayEnd(instr) && !IsLargeReduction(RootOf(instr)) && RootOf(instr).op() != Op::kScatter;
  if (!is_loop) return Refuse(kOpKind, NameOfOp(RootOf(instr)));
  if (RootOf(instr).op() == Op::kDynamicUpdateSlice) return Refuse(kInPlace);
  if (IsPinned(instr)) return Refuse(kPinned);
  if (!IsTakenApart(instr)) return Refuse(kSeveralResults);
  if (lifted_.Has(kHorizontalSize)) return std::nullopt;
  const Shape& shape = instr.shape();
  int64_t elements = (shape.IsTuple() ? shape.elements()[0] : shape).ElementCount();
  if (elements > limits_.packed_elements)
    return Refuse(kHorizontalSize,
                  fmt::format("{} elements of {}", elements, limits_.packed_elements));
  if (InstrsOf(instr) > limits_.packed_instrs)
    return Refuse(kHorizontalSize,
                  fmt::format("{} instructions of {}", InstrsOf(instr), limits_.packed_instrs));
  return std::nullopt;
}

// Looks from both ends in turn: whichever side is small ends the search.
bool Judge::Reaches(const Instr& from, const Instr& to) const {
  std::unordered_set<const Instr*> after = {&from}, before = {&to};
  std::vector<const Instr*> ahead, behind;
  // The step from one to the other is no way around.
  for (const Instr* user : from.users())
    if (user != &to && after.insert(user).second) ahead.push_back(user);
  for (const Instr* operand : to.operands())
    if (operand != &from && before.insert(operand).second) behind.push_back(operand);
  for (int64_t visits = 0; !ahead.empty() && !behind.empty(); ++visits) {
    if (visits > limits_.fused_visits) return true;
    const Instr* instr = ahead.back();
    ahead.pop_back();
    if (before.contains(instr)) return true;
    // What waits for it, unseen: others by control, effects by their order.
    bool acts = instr->op() == Op::kFusion ? !IsFusion(*instr) : effects_.Of(*instr);
    if (instr->is_control_predecessor() || acts) return true;
    for (const Instr* user : instr->users())
      if (after.insert(user).second) ahead.push_back(user);
    instr = behind.back();
    behind.pop_back();
    if (after.contains(instr)) return true;
    for (const Instr* operand : instr->operands())
      if (before.insert(operand).second) behind.push_back(operand);
    for (const Instr* first : instr->extras().control_predecessors)
      if (before.insert(first).second) behind.push_back(first);
  }
  // The side that is exhausted has seen all of its end; what is left of the other is not on a way.
  return false;
}

bool Judge::IsAcyclic(const Instr& a, const Instr& b) const {
  return !Reaches(a, b) && !Reaches(b, a);
}

void Records::Refused(const Refusal& refusal, const Instr& subject, const Instr* other) {
  std::string label = other == nullptr ? "" : LabelOf(*other);
  if (told_.emplace(refusal.rule, LabelOf(subject), std::move(label)).second)
    context_.Rejected(InfoOf(refusal.rule).name, subject, other, refusal.because);
}

void Records::Moved(FusionRule move, const Instr& subject, const Instr* other,
                    std::string because) {
  context_.Taken(InfoOf(move).name, subject, other, std::move(because));
}

}  // namespace tokamak::fuse
