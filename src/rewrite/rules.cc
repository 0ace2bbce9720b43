// The engine behind a table of rules. A worklist initially holds all instructions, operands before
// users. A firing adds the new instructions, their users, and operands that lost a use. Each
// instruction is in the worklist at most once, so the cost is linear in the instructions and in
// those that firings touch. The order of the worklist, and therefore the result, is deterministic.

#include "rewrite/rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "rewrite/replace.h"
#include "rewrite/rules/topic_list.h"

namespace tokamak {
namespace {

// Rules apply to arrays of numbers with static sizes. A type without sign and zero (f8e8m0fnu) is
// excluded, because the algebraic identities do not hold for it.
bool IsOrdinaryShape(const Shape& shape) {
  if (shape.HasDynamicDims() || shape.kind() == ShapeKind::kUnranked) return false;
  return !shape.IsArray() || (shape.quant() == nullptr && shape.type() != ElementType::kF8E8M0FNU);
}
bool AreOrdinary(const Instr* instr) {
  return IsOrdinaryShape(instr->shape()) &&
         std::ranges::all_of(instr->operands(), [](const Instr* operand) {
           return IsOrdinaryShape(operand->shape());
         });
}

// Inner instructions of a match may be removed, together with what the program states about them.
bool SaysSomething(const Instr* instr) {
  return instr->has_extras() &&
         (instr->extras().sharding || !instr->extras().frontend_attributes.empty());
}

class RuleRun {
 public:
  RuleRun(Computation& computation, const RuleSet& rules, PassContext& context)
      : computation_(computation), rules_(rules), context_(context) {}

  Result<Changed> Run() {
    queue_ = computation_.PostOrder();
    queued_.assign(computation_.id_limit(), 1);
    const int64_t limit =
        1000 + context_.limits.firings_an_instr * static_cast<int64_t>(queue_.size());
    for (size_t next = 0; next < queue_.size(); ++next) {
      Instr* instr = queue_[next];
      queued_[Index(instr)] = 0;
      while (!instr->is_removed() && TryRules(instr)) {
        if (++firings_ > limit) return Unsettled(*instr);
        if (instr->users().empty()) break;  // it was replaced
      }
    }
    return firings_ > 0 ? Changed::kYes : Changed::kNo;
  }

 private:
  static size_t Index(const Instr* instr) { return static_cast<size_t>(instr->id()); }

  bool TryRules(Instr* instr) {
    std::span<const Rule* const> rules = rules_.Of(instr->op());
    if (rules.empty()) return false;
    if (instr->users().empty() && computation_.root() != instr) return false;
    if (!AreOrdinary(instr)) return false;
    for (const Rule* rule : rules)
      if (Try(*rule, instr)) return true;
    return false;
  }

  bool Try(const Rule& rule, Instr* instr) {
    std::optional<m::Match> match = m::Find(rule.pattern, instr);
    if (!match) return false;
    for (const Instr* inner : match->inner())
      if (!AreOrdinary(inner) || SaysSomething(inner)) return false;
    if (rule.when != nullptr && !rule.when(*match)) return false;
    Editor edit(*instr, Editor::Naming::kUnnamed);
    Instr* to = rule.replacement.Apply(edit, *match);
    if (to == nullptr || to == instr || !edit.CanReplace(to)) {
      edit.Discard();
      queued_.resize(computation_.id_limit(), 0);
      return false;
    }
    Commit(rule, *match, edit, to);
    return true;
  }

  void Commit(const Rule& rule, const m::Match& match, const Editor& edit, Instr* to) {
    Instr* from = match.root();
    // Only these, not all users of `to`, which may be many and see no change.
    std::vector<Instr*> users(from->users().begin(), from->users().end());
    ReplaceBy(from, to, edit.Made(to));
    context_.Accepted(rule.name, *from, to);
    queued_.resize(computation_.id_limit(), 0);
    std::vector<Instr*> touched;
    // Inner instructions that become unused pass their origins to the replacement.
    std::vector<OriginId> inner;
    for (const Instr* instr : match.inner()) inner.push_back(instr->origins());
    RemoveUnused(from, &touched);
    OriginTable& table = computation_.module()->origins();
    for (size_t i = 0; i < inner.size(); ++i)
      if (match.inner()[i]->is_removed()) to->set_origins(table.Merge(to->origins(), inner[i]));
    for (Instr* made : edit.made()) Push(made);
    Push(to);
    for (Instr* user : users) Push(user);
    for (Instr* instr : touched) Push(instr);
  }

  void Push(Instr* instr) {
    if (instr->is_removed() || queued_[Index(instr)] != 0) return;
    queued_[Index(instr)] = 1;
    queue_.push_back(instr);
  }

  Error Unsettled(const Instr& instr) {
    const std::deque<Decision>& all = context_.log.all();
    std::vector<std::string_view> last;
    for (size_t i = all.size(); i-- > 0 && all.size() - i < 100;)
      if (std::ranges::count(last, all[i].rule) == 0) last.push_back(all[i].rule);
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(last.size(), 4); ++i)
      names += fmt::format("{}{}", i == 0 ? "" : ", ", last[i]);
    return MakeError(ErrorCode::kDoesNotSettle,
                     fmt::format("{}: {} firings in {} and no end: these rules undo each other: {}",
                                 context_.pass, firings_, computation_.name(), names),
                     SpanOf(instr));
  }

  Computation& computation_;
  const RuleSet& rules_;
  PassContext& context_;
  std::vector<Instr*> queue_;
  std::vector<char> queued_;  // by id
  int64_t firings_ = 0;
};

}  // namespace

RuleSet::RuleSet(std::span<const Rule> table) : RuleSet(std::span(&table, 1)) {}

RuleSet::RuleSet(std::span<const std::span<const Rule>> tables) {
  auto op_of = [](const Rule& rule) { return static_cast<size_t>(rule.pattern.node().op); };
  for (std::span<const Rule> table : tables)
    for (const Rule& rule : table) {
      TOK_CHECK(rule.pattern.node().kind == m::Pattern::Kind::kOp, "a rule begins with an op");
      ++begin_[op_of(rule) + 1];
    }
  for (size_t op = 0; op < kOpCount; ++op)
    begin_[op + 1] = static_cast<uint16_t>(begin_[op + 1] + begin_[op]);
  rules_.resize(begin_[kOpCount]);
  std::array<uint16_t, kOpCount + 1> next = begin_;
  for (std::span<const Rule> table : tables)
    for (const Rule& rule : table) rules_[next[op_of(rule)]++] = &rule;
}

const RuleSet& SimplifyRules() {
  static const RuleSet* set = [] {
    std::vector<std::span<const Rule>> tables;
    for (const RuleTopic& topic : kRuleTopics) tables.push_back(topic.rules());
    return new RuleSet(tables);
  }();
  return *set;
}

Result<Changed> ApplyRules(Computation& computation, const RuleSet& rules, PassContext& context) {
  if (std::ranges::none_of(AllOps(), [&](const OpInfo& info) {
        return computation.CountOf(info.op) > 0 && !rules.Of(info.op).empty();
      }))
    return Changed::kNo;
  return RuleRun(computation, rules, context).Run();
}

bool IsIntegral(const m::Match& match) {
  return IsInteger(match.type());
}
bool IsPred(const m::Match& match) {
  return match.type() == ElementType::kPred;
}
bool IsRealType(const m::Match& match) {
  return IsReal(match.type());
}

}  // namespace tokamak
