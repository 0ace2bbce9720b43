// Rewrite rules of users in C.

#include <cctype>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "capi/handles.h"
#include "driver/compile/host_calls.h"
#include "driver/compile/user_rules.h"
#include "driver/rules/make_rule.h"
#include "support/json_text.h"

struct tok_rule_call {
  std::string failure;
  std::string pattern, replacement;
};

struct tok_rule_handle {
  std::shared_ptr<const tokamak::UserRule> rule;
};

namespace tokamak {
namespace {

using nlohmann::json;

json ArrayTypeJson(const Shape& shape) {
  return {{"type", std::string(HloName(shape.type()))}, {"shape", shape.dims()}};
}

json ValuesJson(const std::vector<MatchedValue>& values) {
  json list = json::array();
  for (const MatchedValue& value : values) {
    json entry = value.shape.IsArray() ? ArrayTypeJson(value.shape) : json::object();
    entry["name"] = value.name;
    entry["op"] = value.op;
    entry["label"] = value.label;
    entry["users"] = value.users;
    entry["sources"] = value.sources;
    list.push_back(std::move(entry));
  }
  return list;
}

// "train.py:12" as a location.
TextSpan SpanOfSource(const char* source) {
  std::string text = source == nullptr ? "" : source;
  size_t colon = text.rfind(':');
  bool has_line = colon != std::string::npos && colon + 1 < text.size() &&
                  text.size() - colon < 9 &&
                  text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!has_line) return {.file = text};
  return {.file = text.substr(0, colon), .line = std::stoi(text.substr(colon + 1)), .column = 1};
}

class FunctionsInC final : public RuleFunctions {
 public:
  explicit FunctionsInC(const tok_rule& rule)
      : name_(rule.name),
        where_(SpanOfSource(rule.source)),
        when_(rule.when),
        trace_(rule.trace),
        warn_(rule.warn),
        user_(rule.user) {}

  bool HasWhen() const override { return when_ != nullptr; }
  bool HasTrace() const override { return trace_ != nullptr; }

  Result<bool> When(const MatchFacts& facts) override {
    json match{{"rule", std::string(facts.rule)},
               {"computation", facts.computation},
               {"variables", ValuesJson(facts.variables)},
               {"results", ValuesJson(facts.results)}};
    HostVisit visit;
    if (!visit.is_welcome()) return false;
    tok_rule_call call;
    int answer = when_(&call, JsonText(match).c_str(), user_);
    if (answer < 0 || !call.failure.empty()) return Failed("when", call);
    return answer != 0;
  }

  Result<std::optional<RulePair>> Trace(const std::vector<Shape>& variables) override {
    json shapes = json::array();
    for (const Shape& shape : variables) shapes.push_back(ArrayTypeJson(shape));
    HostVisit visit;
    if (!visit.is_welcome()) return std::optional<RulePair>();
    tok_rule_call call;
    int answer = trace_(&call, JsonText(shapes).c_str(), user_);
    if (answer < 0 || !call.failure.empty()) return Failed("trace", call);
    if (answer == 0) return std::optional<RulePair>();
    TOK_TRY(RulePair pair, ReadRulePair(call.pattern, call.replacement, name_));
    return std::optional<RulePair>(std::move(pair));
  }

  void Warn(const Error& error) override {
    HostVisit visit;
    if (warn_ != nullptr && visit.is_welcome())
      warn_(CodeText(error.code).c_str(), Render(error).c_str(), user_);
  }

 private:
  Error Failed(const char* what, const tok_rule_call& call) const {
    return MakeError(
        ErrorCode::kRuleFunction,
        "rule " + name_ + ": " + what + ": " +
            (call.failure.empty() ? std::string("it returned a negative number") : call.failure),
        where_);
  }

  std::string name_;
  TextSpan where_;
  tok_rule_when_fn when_;
  tok_rule_trace_fn trace_;
  tok_rule_warn_fn warn_;
  void* user_;
};

std::string_view TextIn(const void* data, size_t size) {
  return {static_cast<const char*>(data), data == nullptr ? 0 : size};
}

Result<std::shared_ptr<const UserRule>> RuleOf(const tok_rule& given) {
  RuleSpec spec;
  spec.name = given.name;
  spec.where = SpanOfSource(given.source);
  spec.priority = given.priority;
  spec.when_cheaper = given.always == 0;
  if (given.tolerance >= 0) spec.check.tolerance = given.tolerance;
  spec.check.nonfinite = given.nonfinite != 0;
  spec.check.low = given.low;
  spec.check.high = given.high;
  for (size_t i = 0; i < given.num_examples; ++i) {
    const tok_rule_example& example = given.examples[i];
    TOK_TRY(RulePair pair,
            ReadRulePair(TextIn(example.pattern, example.pattern_size),
                         TextIn(example.replacement, example.replacement_size), spec.name));
    spec.examples.push_back(std::move(pair));
  }
  if (given.when != nullptr || given.trace != nullptr || given.warn != nullptr)
    spec.functions = std::make_unique<FunctionsInC>(given);
  return MakeUserRule(std::move(spec));
}

}  // namespace
}  // namespace tokamak

tok_error* tok_rule_register(const tok_rule* rule, tok_rule_handle** handle) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (rule == nullptr || handle == nullptr || rule->struct_size < sizeof(tok_rule) ||
        rule->name == nullptr || (rule->examples == nullptr && rule->num_examples > 0))
      return tokamak::InvalidArgument("rule: a null pointer, or a struct that is too short");
    *handle = nullptr;
    auto made = tokamak::RuleOf(*rule);
    if (!made.ok()) return tokamak::InC(made.error());
    *handle = new tok_rule_handle{std::move(made.value())};
    tokamak::AddUserRule((*handle)->rule);
    return nullptr;
  });
}

void tok_rule_remove(tok_rule_handle* handle) {
  if (handle != nullptr) tokamak::RemoveUserRule(handle->rule->id);
}

void tok_rule_restore(tok_rule_handle* handle) {
  if (handle == nullptr) return;
  tokamak::Guarded([&]() -> tok_error* {
    tokamak::RemoveUserRule(handle->rule->id);
    tokamak::AddUserRule(handle->rule);
    return nullptr;
  });
}

void tok_rule_unregister(tok_rule_handle* handle) {
  tok_rule_remove(handle);
  delete handle;
}

void tok_rules_enter(tok_rule_handle* const* handles, size_t num_handles) {
  tokamak::Guarded([&]() -> tok_error* {
    tokamak::UserRules rules;
    for (size_t i = 0; i < num_handles; ++i)
      if (handles[i] != nullptr) rules.push_back(handles[i]->rule);
    tokamak::EnterRuleScope(std::move(rules));
    return nullptr;
  });
}

void tok_rules_leave(void) {
  tokamak::LeaveRuleScope();
}

void tok_rule_call_fail(tok_rule_call* call, const char* message) {
  if (call != nullptr)
    call->failure = message == nullptr || *message == '\0' ? "no reason given" : message;
}

void tok_rule_call_set(tok_rule_call* call, const tok_rule_example* example) {
  if (call == nullptr || example == nullptr) return;
  tokamak::Guarded([&]() -> tok_error* {
    call->pattern = tokamak::TextIn(example->pattern, example->pattern_size);
    call->replacement = tokamak::TextIn(example->replacement, example->replacement_size);
    return nullptr;
  });
}
