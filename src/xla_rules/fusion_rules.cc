// The rules of XLA's fusion passes, one query per kind of fusion. Each returns the first rule that
// rejects, with the numbers behind it, or nullopt.
//
//   MayEnter              producer into one user (instruction fusion)
//   MayBeCopied           producer with several users into each of them
//   MayBeMerged           fusion into all users (fusion merger): all or none, and few more bytes
//   MayShareLoop          two kernels with several results (multi-output fusion)
//   MayFuseHorizontally   part of a horizontally fused launch
//
// Legality rules always hold. Profitability rules can be lifted one by one (`lifted_`), which shows
// their effect. IsAcyclic decides whether two instructions may become one: no path may lead through
// a third.

#include "xla_rules/fusion_rules.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "rewrite/bodies.h"
#include "xla_rules/facts.h"

namespace tokamak::fuse {
namespace {

using enum FusionRule;

MaybeRejection Reject(FusionRule rule, std::string because = {}) {
  return Rejection{rule, std::move(because)};
}

std::string NameOfOp(const Instr& instr) {
  return std::string(instr.info().name);
}

// The loop nest of a kernel with several results.
struct LoopShape {
  Dims dims;
  Dims reduced;  // reduced dimensions of a reduction
};

LoopShape LoopShapeOf(const Instr& instr, const FusionRules& rules) {
  const Instr* root = &RootOf(instr);
  LoopShape loop;
  std::vector<const Instr*> roots = {root};
  if (root->op() == Op::kTuple) roots.assign(root->operands().begin(), root->operands().end());
  for (const Instr* result : roots) {
    bool reduces = rules.IsLargeReduction(*result);
    const Shape& shape = reduces ? result->operand(0)->shape() : result->shape();
    loop.dims = (shape.IsTuple() ? shape.elements()[0] : shape).dims();
    if (reduces) loop.reduced = result->attrs<DimensionsAttrs>().dimensions;
  }
  return loop;
}

std::string ToText(const Dims& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

// Whether the results are only packed into a tuple and extracted again.
bool IsOnlyUnpacked(const Instr& instr) {
  return !instr.shape().IsTuple() ||
         (RootOf(instr).op() == Op::kTuple && instr.parent()->root() != &instr &&
          std::all_of(instr.users().begin(), instr.users().end(), [](const Instr* user) {
            return user->op() == Op::kGetTupleElement && !IsPinned(*user);
          }));
}

}  // namespace

bool FusionRules::IsLargeReduction(const Instr& instr) const {
  return ReducedElements(instr) >= limits_.fused_small_reduction;
}

int64_t FusionRules::ArgumentsOf(const Instr& a, const Instr& b, bool joined) const {
  std::unordered_set<const Instr*> inputs;
  for (const Instr* instr : {&a, &b})
    for (const Instr* operand : instr->operands())
      if (operand != &a && operand != &b && !operand->shape().IsScalar()) inputs.insert(operand);
  return static_cast<int64_t>(inputs.size()) + ResultsOf(b) + (joined ? ResultsOf(a) : 0);
}

MaybeRejection FusionRules::Size(const Instr& a, const Instr& b, bool joined) const {
  int64_t arguments = ArgumentsOf(a, b, joined), instrs = InstrsOf(a) + InstrsOf(b);
  if (!lifted_.Has(kKernelSize) && arguments > limits_.fused_arguments)
    return Reject(kKernelSize,
                  fmt::format("{} arguments of {}", arguments, limits_.fused_arguments));
  if (!lifted_.Has(kKernelSize) && instrs > limits_.fused_instrs)
    return Reject(kKernelSize, fmt::format("{} instructions of {}", instrs, limits_.fused_instrs));
  // Below this many instructions the register limit is not checked. Chosen: such fusions cannot
  // reach it.
  constexpr int64_t kFewFusedInstrs = 32;
  if (lifted_.Has(kRegisters) || instrs < kFewFusedInstrs) return std::nullopt;
  int64_t of_a = RegistersOf(a), of_b = RegistersOf(b), kept = joined ? ResultsOf(a) : 1;
  int64_t registers = std::max(of_a, of_b + kept);
  if (registers > limits_.fused_registers)
    return Reject(kRegisters, fmt::format("{} of {}", registers, limits_.fused_registers));
  return std::nullopt;
}

MaybeRejection FusionRules::LegalityOfEntry(const Instr& producer, const Instr& user) const {
  if (!producer.shape().IsArray() && (MayEnd(producer) || IsFusion(producer)))
    return Reject(kSeveralResults);
  if (!MayPrecede(producer)) return Reject(kOpKind, NameOfOp(producer));
  if (!MayEnd(user)) return Reject(kOpKind, NameOfOp(user));
  auto holds = [&](const Instr& i) { return control_binds_ ? IsPinned(i) : IsMarked(i); };
  if (holds(producer) || holds(user)) return Reject(kPinned);
  bool is_filled = producer.op() == Op::kBroadcast || producer.op() == Op::kIota;
  if (UpdatesInPlace(user, producer) && !(is_filled && RootOf(user).op() != Op::kScatter))
    return Reject(kInPlace);
  return std::nullopt;
}

MaybeRejection FusionRules::MayEnter(const Instr& producer, const Instr& user) const {
  if (MaybeRejection violated = LegalityOfEntry(producer, user)) return violated;
  auto asks = [&](FusionRule rule) { return !lifted_.Has(rule); };
  if (asks(kConstantArray) && producer.op() == Op::kConstant && !producer.shape().IsScalar())
    return Reject(kConstantArray, fmt::format("{} bytes", BytesOf(producer.shape())));
  if (asks(kReductionRoot) && IsLargeReduction(RootOf(producer)))
    return Reject(kReductionRoot, fmt::format("{} elements", ReducedElements(RootOf(producer))));
  if (asks(kCoalescing) && IsLargeReduction(RootOf(user)) && Transposes(producer))
    return Reject(kCoalescing);
  if (asks(kInnerLoop) && HoldsInnerLoop(producer) && ReadsRepeatedly(user, producer))
    return Reject(kInnerLoop);
  if (asks(kExpensiveOp) && IsExpensive(producer) && ReusesElements(user, producer))
    return Reject(kExpensiveOp, "the user reads elements several times");
  return Size(producer, user, false);
}

MaybeRejection FusionRules::MayBeCopied(const Instr& producer) const {
  std::vector<Instr*> users = DistinctUsers(producer);
  std::string because = fmt::format("{} users", users.size());
  if (!lifted_.Has(kConcatMultiUser) && producer.op() == Op::kConcatenate)
    return Reject(kConcatMultiUser, because);
  if (!lifted_.Has(kExpensiveOp) && IsExpensive(producer)) return Reject(kExpensiveOp, because);
  if (lifted_.Has(kDuplication) || IsUnary(producer)) return std::nullopt;
  for (const Instr* user : users)
    if (MaybeRejection rejection = MayEnter(producer, *user))
      return Reject(kDuplication,
                    fmt::format("{} cannot: {}", LabelOf(*user), InfoOf(rejection->rule).name));
  if (producer.parent()->root() == &producer) return Reject(kDuplication, "it is the result");
  return std::nullopt;
}

// `now` and `then` are bytes read and written by the fusion and its users before and after the
// merge; results of the users do not change and are left out.
MaybeRejection FusionRules::MayBeMerged(const Instr& fusion) const {
  if (fusion.shape().IsTuple()) return Reject(kSeveralResults);
  if (!lifted_.Has(kReductionRoot) && IsLargeReduction(RootOf(fusion)))
    return Reject(kReductionRoot, fmt::format("{} elements", ReducedElements(RootOf(fusion))));
  if (!lifted_.Has(kExpensiveOp) && IsExpensive(fusion)) return Reject(kExpensiveOp);
  std::vector<Instr*> users = DistinctUsers(fusion);
  // A concatenate that instruction fusion rejected must not be merged into its users here.
  if (!lifted_.Has(kConcatMultiUser) && users.size() > 1 && RootOf(fusion).op() == Op::kConcatenate)
    return Reject(kConcatMultiUser, fmt::format("{} users", users.size()));
  int64_t own = BytesOf(fusion.shape()), now = own, then = 0;
  for (const Instr* operand : DistinctOperands(fusion)) now += BytesOf(operand->shape());
  bool is_root = fusion.parent()->root() == &fusion;
  for (const Instr* user : users) {
    if (user->op() != Op::kFusion)
      return Reject(kAllOrNone, fmt::format("{} is not a fusion", LabelOf(*user)));
    if (MaybeRejection rejection = MayEnter(fusion, *user)) {
      bool is_legality_rule = InfoOf(rejection->rule).kind == RuleKind::kLegality;
      if (users.size() == 1 || (is_legality_rule && lifted_.Has(kAllOrNone))) return rejection;
      if (!lifted_.Has(kAllOrNone))
        return Reject(kAllOrNone,
                      fmt::format("{}: {}", LabelOf(*user), InfoOf(rejection->rule).name));
    }
    std::unordered_set<const Instr*> merged(user->operands().begin(), user->operands().end());
    for (const Instr* operand : merged) now += BytesOf(operand->shape());
    merged.erase(&fusion);
    merged.insert(fusion.operands().begin(), fusion.operands().end());
    for (const Instr* operand : merged) then += BytesOf(operand->shape());
  }
  if (is_root) return Reject(kAllOrNone, "it is the result");
  // A merge may increase the bytes read by this factor. Chosen: a launch saved repays some traffic.
  constexpr double kMostMore = 1.1;
  if (!lifted_.Has(kMoreBytes) && static_cast<double>(then) > kMostMore * static_cast<double>(now))
    return Reject(kMoreBytes, fmt::format("{} instead of {}", then, now));
  return std::nullopt;
}

MaybeRejection FusionRules::MayShareLoop(const Instr& a, const Instr& b) const {
  for (const Instr* instr : {&a, &b}) {
    bool is_update =
        RootOf(*instr).op() == Op::kDynamicUpdateSlice || RootOf(*instr).op() == Op::kScatter;
    if (is_update) return Reject(kInPlace);
    if (!MayEnd(*instr)) return Reject(kOpKind, NameOfOp(*instr));
    if (!IsOnlyUnpacked(*instr)) return Reject(kSeveralResults);
    if (IsPinned(*instr)) return Reject(kPinned);
  }
  if (!lifted_.Has(kShapeCompatibility)) {
    LoopShape of_a = LoopShapeOf(a, *this), of_b = LoopShapeOf(b, *this);
    bool other_sums =
        !of_a.reduced.empty() && !of_b.reduced.empty() && of_a.reduced != of_b.reduced;
    if (of_a.dims != of_b.dims || other_sums)
      return Reject(kShapeCompatibility,
                    fmt::format("{}{} and {}{}", ToText(of_a.dims),
                                of_a.reduced.empty() ? "" : " over " + ToText(of_a.reduced),
                                ToText(of_b.dims),
                                of_b.reduced.empty() ? "" : " over " + ToText(of_b.reduced)));
  }
  return Size(a, b, true);
}

MaybeRejection FusionRules::MayFuseHorizontally(const Instr& instr) const {
  bool is_loop =
      MayEnd(instr) && !IsLargeReduction(RootOf(instr)) && RootOf(instr).op() != Op::kScatter;
  if (!is_loop) return Reject(kOpKind, NameOfOp(RootOf(instr)));
  if (RootOf(instr).op() == Op::kDynamicUpdateSlice) return Reject(kInPlace);
  if (IsPinned(instr)) return Reject(kPinned);
  if (!IsOnlyUnpacked(instr)) return Reject(kSeveralResults);
  if (lifted_.Has(kHorizontalSize)) return std::nullopt;
  const Shape& shape = instr.shape();
  int64_t elements = (shape.IsTuple() ? shape.elements()[0] : shape).ElementCount();
  if (elements > limits_.horizontal_elements)
    return Reject(kHorizontalSize,
                  fmt::format("{} elements of {}", elements, limits_.horizontal_elements));
  if (InstrsOf(instr) > limits_.horizontal_instrs)
    return Reject(kHorizontalSize,
                  fmt::format("{} instructions of {}", InstrsOf(instr), limits_.horizontal_instrs));
  return std::nullopt;
}

// Bidirectional search: stops as soon as the smaller side is exhausted.
bool FusionRules::Reaches(const Instr& from, const Instr& to) const {
  std::unordered_set<const Instr*> after = {&from}, before = {&to};
  std::vector<const Instr*> ahead, behind;
  // The direct edge from one to the other does not count as a path.
  for (const Instr* user : from.users())
    if (user != &to && after.insert(user).second) ahead.push_back(user);
  for (const Instr* operand : to.operands())
    if (operand != &from && before.insert(operand).second) behind.push_back(operand);
  for (int64_t visits = 0; !ahead.empty() && !behind.empty(); ++visits) {
    if (visits > limits_.fused_visits) return true;
    const Instr* instr = ahead.back();
    ahead.pop_back();
    if (before.contains(instr)) return true;
    // Implicit dependences: control successors, and the program order of side effects.
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
  // The exhausted side has been visited completely, so no path exists.
  return false;
}

bool FusionRules::IsAcyclic(const Instr& a, const Instr& b) const {
  return !Reaches(a, b) && !Reaches(b, a);
}

void Records::RecordRejection(const Rejection& reason, const Instr& subject, const Instr* other) {
  std::string label = other == nullptr ? "" : LabelOf(*other);
  if (recorded_.emplace(reason.rule, LabelOf(subject), std::move(label)).second)
    context_.Rejected(InfoOf(reason.rule).name, subject, other, reason.because);
}

void Records::Moved(FusionRule move, const Instr& subject, const Instr* other,
                    std::string because) {
  context_.Accepted(InfoOf(move).name, subject, other, std::move(because));
}

}  // namespace tokamak::fuse
