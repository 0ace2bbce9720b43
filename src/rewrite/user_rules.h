#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "rewrite/pass.h"
#include "support/result.h"

// Rewrite rules of users. A rule is a pattern and a replacement, each a computation; their
// parameters are the variables of the rule. The pass apply-user-rules finds instances of patterns
// (user_match.h) and replaces them where that is predicted to pay. docs/extending.md is the guide.

namespace tokamak {

// A pattern and its replacement for fixed shapes: the entries of two modules.
struct RulePair {
  std::unique_ptr<Module> pattern, replacement;
};
RulePair CloneOf(const RulePair& pair);
// The shapes of the variables: "f32[4,8], f32[8]".
std::string VariablesText(const Computation& entry);

// A variable or result of an instance, for a condition (`when`).
struct MatchedValue {
  std::string name;  // of the parameter of the pattern; "result"
  Shape shape;
  std::string op, label;  // of the instruction that it stands for
  int64_t users = 0;
  std::vector<std::string> sources;  // "train.py:12"
};
struct MatchFacts {
  std::string_view rule;
  std::string computation;
  std::vector<MatchedValue> variables, results;
};

// Functions of the user. Called on the thread that compiles; an error is the function's failure.
class RuleFunctions {
 public:
  virtual ~RuleFunctions() = default;
  virtual bool HasWhen() const { return false; }
  virtual Result<bool> When(const MatchFacts& facts);
  // The rule for other shapes of its variables; null if it has none for them.
  virtual bool HasTrace() const { return false; }
  virtual Result<std::optional<RulePair>> Trace(const std::vector<Shape>& variables);
  // Receives what went wrong with the rule while a program was compiled.
  virtual void Warn(const Error& error);
};

struct UserRule {
  uint64_t id = 0;                 // unique in the process
  std::string name;                // "my_gelu"
  std::string_view label;          // "user.my_gelu", lives as long as the process
  TextSpan where;                  // of the rule, in the user's sources
  int64_t priority = 0;            // rules with a greater one are tried first
  bool when_cheaper = true;        // replace only what the cost model predicts to become faster
  bool is_symbolic = false;        // the examples hold for other extents, too (RescaledPair)
  std::vector<RulePair> examples;  // verified, with arrays as parameters
  std::string content;             // digest of everything that affects programs
  std::unique_ptr<RuleFunctions> functions;
};

// The pair for other shapes of the variables, derived from an example. If all arrays of the example
// are scalars or have one shape, and its ops are elementwise, that shape becomes any other one.
// Otherwise extents are symbols: equal numbers of the example stay equal. Null if the shapes do not
// fit or the result does not verify.
std::optional<RulePair> RescaledPair(const RulePair& example, const std::vector<Shape>& variables);

// What the engine needs from the driver.
class RuleHost {
 public:
  virtual std::vector<std::shared_ptr<const UserRule>> Rules() = 0;
  // Runs the passes on a pattern that the program has undergone before this stage.
  virtual Status Canonicalize(Module& module, int64_t stage) = 0;
  // Identifies those passes.
  virtual std::string PassesKey(int64_t stage) = 0;
  // Removes unused instructions.
  virtual Status Clean(Module& module) = 0;
  // Predicted microseconds of one run of the program.
  virtual Result<double> EstimateUs(const Module& module, int64_t stage) = 0;
  // The groups of instances (RuleGroup::key) that earlier runs of the pass rejected.
  virtual std::set<std::string>& Rejected() = 0;
  // Counts the runs of the pass: 0 for the first.
  virtual int64_t NextStage() = 0;
  virtual void Warn(const UserRule& rule, const Error& error) = 0;
  // Later runs of the pass in this compilation do not get the rule.
  virtual void LeaveOut(const UserRule& rule) = 0;

 protected:
  ~RuleHost() = default;
};

// Applies the rules of the host. A rule that fails is left out, with a warning and a record; the
// program is then as if that rule did not exist.
Result<Changed> ApplyUserRules(Module& module, RuleHost& host, PassContext& context);

// Whether the pattern occurs in its own replacement, so that the rule would never end.
bool ContainsItself(const RulePair& canonical);

}  // namespace tokamak
