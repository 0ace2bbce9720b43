// tok_rule_tests: one test for each row of the rule table, generated from the row itself. The rule
// must fire on its example, alone and within the whole table, and the program must give the same
// bits before and after on inputs with NaN, infinities, both zeros and extreme integers. A row
// without an example gets one for each element type that its ops accept. The last line is a tally.
//
//   tok_rule_tests [NAME]...     only these rules
//   tok_rule_tests --list        one row per line: name, meaning, topic, separated by tabs

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "driver/testing/same_values.h"
#include "ir/builder.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "rewrite/rules.h"
#include "rewrite/rules/topic_list.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak {
namespace {

using m::Pattern;

// A value for each variable and op of a pattern, all arrays of one type and size; selects and
// similar ops take preds where inference requires them.
class PatternProgram {
 public:
  explicit PatternProgram(Module& module) : builder_(module, "main") {}

  Instr* Make(const Pattern::Node& node, ElementType type) {
    if (node.kind == Pattern::Kind::kNumber) return MakeNumber(node.number, type);
    if (node.var >= 0 && vars_[static_cast<size_t>(node.var)] != nullptr)
      return vars_[static_cast<size_t>(node.var)];
    Instr* made = nullptr;
    if (node.kind == Pattern::Kind::kVar) {
      made = builder_.Parameter(Shape::Array(type, {kElements}));
    } else {
      std::vector<Instr*> operands;
      for (size_t i = 0; i < node.operand_count; ++i) {
        bool is_pred = (node.op == Op::kSelect && i == 0);
        operands.push_back(Make(node.operand(i), is_pred ? ElementType::kPred : type));
      }
      made = builder_.Append(node.op, std::move(operands));
    }
    if (node.var >= 0) vars_[static_cast<size_t>(node.var)] = made;
    return made;
  }

  bool Finish(Module& module, Instr* root) {
    Result<Computation*> done = builder_.Finish(root);
    if (!done.ok()) return false;
    module.set_entry(done.value());
    return VerifyModule(module).ok();
  }

 private:
  static constexpr int64_t kElements = 61;  // chosen: not a multiple of any vector width

  Instr* MakeNumber(m::Number number, ElementType type) {
    double value = 0;
    switch (number) {
      case m::Number::kNegativeZero:
        value = -0.0;
        break;
      case m::Number::kOne:
      case m::Number::kTrue:
        value = 1;
        break;
      case m::Number::kMinusOne:
        value = -1;
        break;
      case m::Number::kAny:
        value = 3;
        break;
      default:
        break;
    }
    Literal scalar = number == m::Number::kAllOnes && type != ElementType::kPred
                         ? Literal::ScalarInt(type, -1)
                         : Literal::Scalar(type, number == m::Number::kAllOnes ? 1 : value);
    return builder_.Broadcast(builder_.Constant(std::move(scalar)), {kElements}, {});
  }

  Builder builder_;
  std::array<Instr*, m::kVars> vars_{};
};

class Tester {
 public:
  explicit Tester(const Rule& rule) : rule_(rule), alone_(std::span(&rule, 1)) {}

  // "" or a description of the failure.
  std::string Run() {
    if (!rule_.example.empty()) return RunText();
    int fired = 0;
    for (ElementType type : kTypes) {
      auto module = std::make_unique<Module>("example");
      PatternProgram program(*module);
      if (!program.Finish(*module, program.Make(rule_.pattern.node(), type))) continue;
      bool fires = false;
      std::string problem = RunOn(*module, fires);
      if (!problem.empty()) return fmt::format("{}: {}", HloName(type), problem);
      fired += fires ? 1 : 0;
    }
    return fired > 0 ? "" : "it fires for no element type; give it an example";
  }

 private:
  static constexpr ElementType kTypes[] = {
      ElementType::kPred, ElementType::kS8,   ElementType::kS32, ElementType::kS64,
      ElementType::kU8,   ElementType::kU32,  ElementType::kU64, ElementType::kBF16,
      ElementType::kF16,  ElementType::kF32,  ElementType::kF64, ElementType::kF8E4M3FN,
      ElementType::kC64,  ElementType::kC128,
  };

  std::string RunText() {
    std::string text =
        fmt::format("HloModule example\n{}\nENTRY main {{\n{}\n}}\n", rule_.called, rule_.example);
    if (rule_.example.find("HloModule") != std::string_view::npos) text = rule_.example;
    auto module = ReadHloText(text, "<example>");
    if (!module.ok()) return "its example does not read: " + Render(module.error(), text);
    Status verified = VerifyModule(*module.value());
    if (!verified.ok()) return "its example does not verify: " + Render(verified.error(), text);
    bool fires = false;
    std::string problem = RunOn(*module.value(), fires);
    if (!problem.empty()) return problem;
    return fires ? "" : "it does not fire on its example";
  }

  std::string RunOn(const Module& module, bool& fires) {
    ProofOptions proof_options;
    proof_options.seconds = 10;
    Proof proof(module, proof_options);
    if (!proof.why_not().empty()) return "its example does not run: " + proof.why_not();
    for (const RuleSet* rules : {static_cast<const RuleSet*>(&alone_), &SimplifyRules()}) {
      std::unique_ptr<Module> copy = CloneModule(module);
      DecisionLog log;
      PassContext context(log);
      context.pass = "simplify";
      for (const auto& computation : copy->computations()) {
        Result<Changed> changed = ApplyRules(*computation, *rules, context);
        if (!changed.ok()) return changed.error().message;
      }
      for (const auto& computation : copy->computations()) computation->PutInOrder();
      for (const Decision& decision : log.all())
        if (rules == &alone_ && decision.rule == rule_.name) fires = true;
      Status verified = VerifyModule(*copy);
      if (!verified.ok())
        return "what it leaves does not verify: " + verified.error().message + "\n" +
               WriteHloText(*copy);
      std::string difference = proof.Compare(*copy);
      if (!difference.empty())
        return difference + "\nbefore:\n" + WriteHloText(module) + "after:\n" + WriteHloText(*copy);
    }
    return {};
  }

  const Rule& rule_;
  RuleSet alone_;
};

int List() {
  for (const RuleTopic& topic : kRuleTopics)
    for (const Rule& rule : topic.rules())
      fmt::print("{}\t{}\t{}\n", rule.name, rule.meaning, topic.name);
  return 0;
}

int Main(const std::set<std::string_view>& wanted) {
  int passed = 0, failed = 0;
  std::set<std::string_view> names;
  for (const Rule* row : SimplifyRules().all()) {
    const Rule& rule = *row;
    if (!wanted.empty() && !wanted.contains(rule.name)) continue;
    std::string problem = Tester(rule).Run();
    if (!names.insert(rule.name).second) problem = "two rules have this name";
    if (rule.name.find('.') == std::string_view::npos) problem = "a name reads topic.reason";
    if (problem.empty()) {
      ++passed;
      continue;
    }
    ++failed;
    fmt::print("FAILED {}: {}\n", rule.name, problem);
  }
  fmt::print("tally: {} passed, {} failed, 0 skipped\n", passed, failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") return tokamak::List();
  return tokamak::Main({argv + 1, argv + argc});
}
