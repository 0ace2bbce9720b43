#include "rewrite/user_instances.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/running_computations.h"
#include "ir/clone.h"
#include "rewrite/user_replace.h"

namespace tokamak {
namespace {

// Calls of one rule's `trace` in one compilation. Chosen: a program has fewer different shapes at
// which one function is used; each call traces two functions in Python.
constexpr int64_t kMostTraces = 64;

std::string ShapesText(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) text += (text.empty() ? "" : ", ") + ToString(shape);
  return text;
}

std::vector<Shape> ShapesOfVariables(const std::vector<Instr*>& variables) {
  std::vector<Shape> shapes;
  for (const Instr* variable : variables) shapes.push_back(variable->shape().WithoutLayout());
  return shapes;
}

std::vector<std::string> SourcesOf(const Instr& instr) {
  const OriginTable& table = instr.parent()->module()->origins();
  std::vector<std::string> sources;
  for (const Origin* origin : table.Of(instr.origins())) {
    if (origin->frame == FrameId::kNone) continue;
    const Frame& frame = table.frame(origin->frame);
    sources.push_back(fmt::format("{}:{}", frame.file, frame.line));
  }
  return sources;
}

MatchedValue ValueOf(std::string name, const Instr& instr) {
  return {std::move(name),
          instr.shape(),
          std::string(instr.info().name),
          LabelOf(instr),
          static_cast<int64_t>(instr.users().size()),
          SourcesOf(instr)};
}

// The examples of rules after the passes, for all compilations of the process: a program of one op,
// as JAX compiles many, should not cost more than the passes on it.
class ExampleCache {
 public:
  template <typename Make>
  std::shared_ptr<const RuleInstance> FindOr(const std::string& key, Make&& make) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (auto it = made_.find(key); it != made_.end()) return it->second;
    }
    std::shared_ptr<const RuleInstance> made = make();
    std::lock_guard<std::mutex> lock(mutex_);
    if (made_.size() >= kMostKept) made_.clear();
    made_.emplace(key, made);
    return made;
  }

  static ExampleCache& OfProcess() {
    static auto* cache = new ExampleCache;
    return *cache;
  }

 private:
  // Entries, two for each example of a rule. Chosen: more than a process has examples.
  static constexpr size_t kMostKept = 2048;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const RuleInstance>> made_;
};

// Collects the matches of one rule in one computation.
class GroupFinder {
 public:
  GroupFinder(RuleGroup& group, RuleInstances& instances, const std::set<std::string>& closed,
              RuleCondition& condition, std::string place)
      : group_(group),
        instances_(instances),
        closed_(closed),
        condition_(condition),
        place_(std::move(place)) {}

  // Users first, so that of two instances that overlap the one nearer to the results is taken.
  Status Run() {
    std::vector<Instr*> order;
    for (const RuleInstance* example : instances_.ExamplesOf(*group_.rule)) {
      const Computation& pattern = *example->pair.pattern->entry();
      if (group_.computation->CountOf(ResultsOfPattern(pattern)[0]->op()) == 0) continue;
      if (order.empty()) order = group_.computation->PostOrder();
      UserMatcher same(pattern, MatchMode::kAnyShape), any(pattern, MatchMode::kAnyNumber);
      for (size_t i = order.size(); i-- > 0;) {
        Instr* instr = order[i];
        bool is_used = !instr->users().empty() || group_.computation->root() == instr;
        if (instr->op() != same.root_op() || !is_used || claimed_.contains(instr)) continue;
        std::optional<UserMatch> shapes = same.Find(instr);
        if (!shapes) shapes = any.Find(instr);
        if (shapes) TOK_RETURN_IF_ERROR(Try(instr, ShapesOfVariables(shapes->variables)));
      }
    }
    return Ok();
  }

 private:
  Status Try(Instr* root, const std::vector<Shape>& shapes) {
    std::string key = fmt::format("{} {} {}", group_.rule->id, place_, ShapesText(shapes));
    if (closed_.contains(key) || (!group_.matches.empty() && key != group_.key)) return Ok();
    TOK_TRY(const RuleInstance* instance, instances_.For(*group_.rule, shapes));
    if (instance == nullptr) return Ok();
    std::optional<UserMatch> match =
        UserMatcher(*instance->pair.pattern->entry(), MatchMode::kExact).Find(root);
    if (!match || Overlaps(*match) || HasOtherUsers(*match, instance->kept)) return Ok();
    if (!IsReplaceable(*match)) return Ok();
    TOK_TRY(bool holds, condition_.Holds(*group_.rule, *instance, *match));
    if (!holds) return Ok();
    claimed_.insert(match->roots.begin(), match->roots.end());
    claimed_.insert(match->inner.begin(), match->inner.end());
    group_.key = std::move(key);
    group_.instance = instance;
    group_.matches.push_back(std::move(*match));
    return Ok();
  }

  bool Overlaps(const UserMatch& match) const {
    auto is_claimed = [&](const Instr* instr) { return claimed_.contains(instr); };
    return std::ranges::any_of(match.roots, is_claimed) ||
           std::ranges::any_of(match.inner, is_claimed);
  }

  RuleGroup& group_;
  RuleInstances& instances_;
  const std::set<std::string>& closed_;
  RuleCondition& condition_;
  std::string place_;
  std::unordered_set<const Instr*> claimed_;
};

}  // namespace

Result<bool> RuleFunctions::When(const MatchFacts&) {
  return true;
}
Result<std::optional<RulePair>> RuleFunctions::Trace(const std::vector<Shape>&) {
  return std::optional<RulePair>();
}
void RuleFunctions::Warn(const Error&) {}

RulePair CloneOf(const RulePair& pair) {
  return {CloneModule(*pair.pattern), CloneModule(*pair.replacement)};
}

std::string VariablesText(const Computation& entry) {
  return ShapesText(ShapesOfVariables(entry.parameters()));
}

bool ContainsItself(const RulePair& canonical) {
  UserMatcher matcher(*canonical.pattern->entry(), MatchMode::kExact);
  return std::ranges::any_of(canonical.replacement->entry()->Instrs(), [&](Instr* instr) {
    return instr->op() == matcher.root_op() && matcher.Find(instr).has_value();
  });
}

std::shared_ptr<const RuleInstance> RuleInstances::Canonical(RulePair pair) {
  for (Module* module : {pair.pattern.get(), pair.replacement.get()})
    if (!host_.Canonicalize(*module, stage_).ok()) return nullptr;
  const Computation& pattern = *pair.pattern->entry();
  const Computation& replacement = *pair.replacement->entry();
  std::vector<Instr*> results = ResultsOfPattern(pattern), made = ResultsOfPattern(replacement);
  if (pattern.parameters().size() != replacement.parameters().size()) return nullptr;
  if (results.size() != made.size()) return nullptr;
  for (size_t i = 0; i < results.size(); ++i) {
    // A pattern that the passes reduced to a number or to a variable would match anything.
    if (results[i]->operand_count() == 0) return nullptr;
    if (!Compatible(results[i]->shape(), made[i]->shape())) return nullptr;
  }
  auto instance = std::make_shared<RuleInstance>();
  instance->kept = KeptBy(pattern, replacement);
  instance->pair = std::move(pair);
  return instance;
}

const std::string& RuleInstances::PassesKey() {
  if (!passes_key_) passes_key_ = host_.PassesKey(stage_);
  return *passes_key_;
}

const std::vector<const RuleInstance*>& RuleInstances::ExamplesOf(const UserRule& rule) {
  auto [it, added] = examples_.try_emplace(rule.id);
  if (!added) return it->second;
  for (const RulePair& example : rule.examples) {
    std::vector<Shape> shapes = ShapesOfVariables(example.pattern->entry()->parameters());
    Result<const RuleInstance*> instance = For(rule, shapes);
    if (!instance.ok() || instance.value() == nullptr) continue;
    it->second.push_back(instance.value());
  }
  return it->second;
}

Result<std::optional<RulePair>> RuleInstances::OtherPair(const UserRule& rule,
                                                         const std::vector<Shape>& variables) {
  if (rule.functions != nullptr && rule.functions->HasTrace()) {
    if (++traced_[rule.id] > kMostTraces) return std::optional<RulePair>();
    return rule.functions->Trace(variables);
  }
  if (rule.is_symbolic)
    for (const RulePair& example : rule.examples)
      if (std::optional<RulePair> pair = RescaledPair(example, variables)) return pair;
  return std::optional<RulePair>();
}

Result<const RuleInstance*> RuleInstances::For(const UserRule& rule,
                                               const std::vector<Shape>& variables) {
  std::string shapes = ShapesText(variables);
  std::string key = fmt::format("{} {}", rule.id, shapes);
  if (auto it = made_.find(key); it != made_.end()) return it->second.get();
  std::shared_ptr<const RuleInstance>& made = made_[key];
  for (const RulePair& example : rule.examples) {
    if (VariablesText(*example.pattern->entry()) != shapes) continue;
    std::string cached = fmt::format("{} {}", key, PassesKey());
    made = ExampleCache::OfProcess().FindOr(cached, [&] { return Canonical(CloneOf(example)); });
    return made.get();
  }
  TOK_TRY(std::optional<RulePair> pair, OtherPair(rule, variables));
  if (pair) made = Canonical(std::move(*pair));
  return made.get();
}

MatchFacts FactsOf(const UserRule& rule, const RuleInstance& instance, const UserMatch& match) {
  MatchFacts facts{.rule = rule.name,
                   .computation = match.roots[0]->parent()->name(),
                   .variables = {},
                   .results = {}};
  const Computation& pattern = *instance.pair.pattern->entry();
  for (size_t k = 0; k < match.variables.size(); ++k)
    facts.variables.push_back(ValueOf(pattern.parameter(k)->name(), *match.variables[k]));
  for (const Instr* root : match.roots) facts.results.push_back(ValueOf("result", *root));
  return facts;
}

RuleGroup FindRuleGroup(Module& module, const std::vector<std::shared_ptr<const UserRule>>& rules,
                        RuleInstances& instances, const std::set<std::string>& closed,
                        RuleCondition& condition, std::optional<RuleFailure>& failed) {
  // Not the scalar computations of reductions, sorts and the like: other passes recognize their
  // form.
  std::vector<Computation*> computations = RunningComputations(module);
  for (const auto& rule : rules)
    for (size_t i = 0; i < computations.size(); ++i) {
      RuleGroup group;
      group.rule = rule.get();
      group.computation = computations[i];
      Status found = GroupFinder(group, instances, closed, condition, std::to_string(i)).Run();
      if (!found.ok()) {
        failed = RuleFailure{rule.get(), std::move(found.error())};
        return {};
      }
      if (!group.matches.empty()) return group;
    }
  return {};
}

}  // namespace tokamak
