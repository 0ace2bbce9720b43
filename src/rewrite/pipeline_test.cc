#include "rewrite/pipeline.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "rewrite/editor.h"
#include "rewrite/rules.h"

namespace tokamak {
namespace {

static_assert(!IsSound(std::array{Step{Pass::kFlattenTuples}}), "calls are not inlined yet");
static_assert(IsSound(std::array{Step{Pass::kInline}, Step{Pass::kFlattenTuples}}));
// In its second iteration the group would lack the fact that the first invalidated if inline did
// not establish it again.
static_assert(IsSound(std::array{Step{Pass::kInline, 1}, Step{Pass::kFlattenTuples, 1}}));
static_assert(!IsSound(std::array{Step{Pass::kFlattenTuples, 1}, Step{Pass::kInline, 1}}));

const Shape kVector = Shape::Array(ElementType::kF32, {4});

std::unique_ptr<Module> Example() {
  auto module = std::make_unique<Module>("example");
  Builder main(*module, "main");
  Instr* x = main.Parameter(kVector, "x");
  module->set_entry(main.Finish(main.Negate(main.Negate(x))).value());
  for (Instr* instr : module->entry()->Instrs())
    instr->set_origins(module->origins().Add(
        {.op_name = std::to_string(static_cast<int>(instr->id())), .op_type = "", .other = ""}));
  return module;
}

Result<Changed> Nothing(Module&, PassContext&) {
  return Changed::kNo;
}
// Negates the root once more on every run, so it never converges.
Result<Changed> Grow(Module& module, PassContext& context) {
  Computation* main = module.entry();
  Instr* more = Editor::Beside(*main->root()).Make(Op::kNegate, kVector, {main->root()});
  context.Accepted("test.grow", *main->root(), more);
  main->set_root(more);
  return Changed::kYes;
}
Result<Changed> Break(Module& module, PassContext& context) {
  Computation* main = module.entry();
  context.Accepted("test.break", *main->root());
  main->root()->set_shape(Shape::Array(ElementType::kF32, {5}));
  return Changed::kYes;
}
Result<Changed> Hide(Module& module, PassContext& context) {
  size_t before = context.log.all().size();
  DecisionLog other;
  PassContext unseen(other);
  TOK_TRY(Changed changed, Grow(module, unseen));
  EXPECT_EQ(context.log.all().size(), before);
  return changed;
}

Result<std::vector<PassRun>> RunWith(PassFn function, Module& module, DecisionLog& log, bool verify,
                                     std::span<const Step> steps) {
  std::vector<PassFn> functions(kPasses.size(), Nothing);
  functions[static_cast<size_t>(Pass::kSimplify)] = function;
  PassContext context(log);
  PipelineOptions options;
  options.verify_each = verify;
  return RunPipeline(module, steps, functions, context, options);
}

TEST(Pipeline, TextReadsBack) {
  for (std::string_view text : {"", "dce", "inline,dce,(simplify,cse)*", "(dce)*,(cse)*,dce"})
    EXPECT_EQ(ToString(ParsePipeline(text).value()), text);
  EXPECT_EQ(ToString(ParsePipeline(" default ").value()), ToString(kDefaultPipeline));
  EXPECT_EQ(ParsePipeline("dce,").error().code, ErrorCode::kPipelineText);
  EXPECT_EQ(ParsePipeline("dec").error().code, ErrorCode::kUnknownPass);
  EXPECT_EQ(ParsePipeline("flatten-tuples").error().code, ErrorCode::kUnsoundPipeline);
}

TEST(Pipeline, PassesThatFightAreNamed) {
  constexpr Step kLoop[] = {{Pass::kSimplify, 1}};
  auto module = Example();
  DecisionLog log;
  ASSERT_TRUE(RunWith(Grow, *module, log, false, kLoop).ok());
  EXPECT_EQ(log.all().back().rule, "pipeline.does-not-settle");
  EXPECT_NE(log.all().back().because.find("test.grow (1x)"), std::string::npos);
  auto fight = RunWith(Grow, *module, log, true, kLoop);
  ASSERT_FALSE(fight.ok());
  EXPECT_EQ(fight.error().code, ErrorCode::kDoesNotSettle);
}

TEST(Pipeline, TheVerifierBlamesThePassThatBrokeTheModule) {
  constexpr Step kOnce[] = {{Pass::kSimplify}};
  DecisionLog log;
  auto broken = RunWith(Break, *Example(), log, true, kOnce);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kPassBrokeModule);
  EXPECT_NE(broken.error().message.find("pass simplify"), std::string::npos);
  auto silent = RunWith(Hide, *Example(), log, true, kOnce);
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().code, ErrorCode::kPassBrokeModule);
}

TEST(Rules, OscillatingPassesAreNamed) {
  static constexpr Rule kRules[] = {
      {"test.there", "", m::Negate(m::Abs(m::x)), m::Abs(m::Negate(m::x))},
      {"test.back", "", m::Abs(m::Negate(m::x)), m::Negate(m::Abs(m::x))}};
  RuleSet rules(kRules);
  auto module = std::make_unique<Module>("example");
  Builder main(*module, "main");
  Instr* x = main.Parameter(kVector, "x");
  module->set_entry(main.Finish(main.Negate(main.Abs(x))).value());
  DecisionLog log;
  PassContext context(log);
  context.pass = "simplify";
  auto result = ApplyRules(*module->entry(), rules, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kDoesNotSettle);
  EXPECT_NE(result.error().message.find("test.there"), std::string::npos);
  EXPECT_NE(result.error().message.find("test.back"), std::string::npos);
}

TEST(Rules, OriginsOfWhatWasMatchedLiveOn) {
  auto module = Example();
  DecisionLog log;
  PassContext context(log);
  ASSERT_TRUE(ApplyRules(*module->entry(), SimplifyRules(), context).ok());
  EXPECT_EQ(module->entry()->size(), 1u);
  EXPECT_EQ(module->origins().Of(module->entry()->root()->origins()).size(), 3u);
}

}  // namespace
}  // namespace tokamak
