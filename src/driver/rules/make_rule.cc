#include "driver/rules/make_rule.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "driver/plugins/registry.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "passes/passes.h"
#include "rewrite/user_match.h"
#include "support/digest.h"
#include "support/interned.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak {
namespace {

// Instructions of a pattern or of a replacement. Chosen: larger ones are whole programs, which
// matching, for each instruction of a program, is not made for.
constexpr size_t kMostRuleInstrs = 512;
// Extents that rescaled examples get, to see whether a rule depends on them. Chosen: small, and no
// power of two, so that numbers that are tied to an extent show.
constexpr int64_t kRescaledExtent = 3;

Status RunSteps(Module& module, std::span<const Step> steps) {
  DecisionLog log;
  PassContext context(log);
  PipelineOptions options;
  options.verify_each = true;
  TOK_TRY(std::vector<PassRun> runs, RunPasses(module, steps, context, options));
  return Ok();
}

// Without a location of the rule, that of the instruction is used.
Error At(const RuleSpec& spec, ErrorCode code, std::string message, const Instr* instr = nullptr) {
  TextSpan where = spec.where;
  if (where.file.empty() && instr != nullptr) where = SpanOf(*instr);
  return MakeError(code, fmt::format("rule {}: {}", spec.name, message), where);
}

Status CheckShapes(const RuleSpec& spec, const Computation& pattern,
                   const Computation& replacement) {
  size_t count = pattern.parameters().size();
  if (count != replacement.parameters().size())
    return At(spec, ErrorCode::kRuleShapes,
              fmt::format("the pattern has {} parameters, the replacement {}", count,
                          replacement.parameters().size()),
              replacement.root());
  for (size_t k = 0; k < count; ++k) {
    const Shape& a = pattern.parameter(k)->shape();
    const Shape& b = replacement.parameter(k)->shape();
    if (!a.IsStaticArray() || a.quant() != nullptr)
      return At(
          spec, ErrorCode::kRuleShapes,
          fmt::format("parameter {} is {}; variables are arrays of static sizes", k, ToString(a)),
          pattern.parameter(k));
    if (!Compatible(a, b))
      return At(spec, ErrorCode::kRuleShapes,
                fmt::format("parameter {} of the pattern is {}, that of the replacement {}", k,
                            ToString(a), ToString(b)),
                replacement.parameter(k));
  }
  const Shape& a = pattern.root()->shape();
  const Shape& b = replacement.root()->shape();
  if (Compatible(a, b)) return Ok();
  return At(spec, ErrorCode::kRuleShapes,
            fmt::format("the pattern returns {}, the replacement {}, for variables {}", ToString(a),
                        ToString(b), VariablesText(pattern)),
            replacement.root());
}

Status CheckEffects(const RuleSpec& spec, const RulePair& pair) {
  for (const Module* module : {pair.pattern.get(), pair.replacement.get()}) {
    Effects effects(*module);
    if (!effects.Of(*module->entry())) continue;
    const Instr* culprit = module->entry()->root();
    for (const Instr* instr : module->entry()->Instrs())
      if (effects.Of(*instr)) culprit = instr;
    return At(
        spec, ErrorCode::kRuleEffects,
        fmt::format("its {} has a side effect: {}",
                    module == pair.pattern.get() ? "pattern" : "replacement", culprit->info().name),
        culprit);
  }
  return Ok();
}

// Whether every variable reaches a result, and every result is computed from a variable.
Status CheckVariables(const RuleSpec& spec, const Computation& pattern,
                      const Computation& replacement) {
  for (size_t k = 0; k < pattern.parameters().size(); ++k) {
    if (!pattern.parameter(k)->users().empty()) continue;
    bool is_read = !replacement.parameter(k)->users().empty() ||
                   replacement.root() == replacement.parameter(k);
    return At(
        spec, ErrorCode::kRuleVariables,
        fmt::format("the pattern does not use variable {} ({}){}", k, pattern.parameter(k)->name(),
                    is_read ? ", so the replacement would not know it" : ""),
        pattern.parameter(k));
  }
  for (const Instr* result : ResultsOfPattern(pattern))
    if (result->op() == Op::kParameter || result->operand_count() == 0)
      return At(spec, ErrorCode::kRuleVariables,
                "a result of the pattern is a variable or a constant, which would match everything",
                result);
  return Ok();
}

Status CheckSize(const RuleSpec& spec, const RulePair& pair) {
  for (const Module* module : {pair.pattern.get(), pair.replacement.get()}) {
    size_t count = module->CountInstrs();
    if (count > kMostRuleInstrs)
      return At(
          spec, ErrorCode::kRuleInput,
          fmt::format("it has {} instructions; at most {} are possible", count, kMostRuleInstrs));
  }
  return Ok();
}

Status CheckExample(const RuleSpec& spec, const RulePair& pair) {
  TOK_RETURN_IF_ERROR(CheckShapes(spec, *pair.pattern->entry(), *pair.replacement->entry()));
  TOK_RETURN_IF_ERROR(CheckEffects(spec, pair));
  RulePair plain = CloneOf(pair);
  constexpr Step kPlain[] = {{Pass::kInline}, {Pass::kFlattenTuples}, {Pass::kDce}};
  TOK_RETURN_IF_ERROR(RunSteps(*plain.pattern, kPlain));
  TOK_RETURN_IF_ERROR(RunSteps(*plain.replacement, kPlain));
  const Computation& pattern = *plain.pattern->entry();
  TOK_RETURN_IF_ERROR(CheckVariables(spec, pattern, *plain.replacement->entry()));
  TOK_RETURN_IF_ERROR(CheckSize(spec, plain));
  bool has_condition = spec.functions != nullptr && spec.functions->HasWhen();
  if (!has_condition && ContainsItself(plain))
    return At(spec, ErrorCode::kRuleNeverEnds,
              "the replacement contains the pattern, so it would apply without end",
              pair.replacement->entry()->root());
  return CheckRuleValues(spec.name, spec.where, pair, spec.check);
}

// Other shapes for the variables of an example: one of another rank for elementwise rules, and one
// with other extents.
std::vector<std::vector<Shape>> OtherShapes(const Computation& entry) {
  std::vector<Shape> ranked, extents;
  for (const Instr* parameter : entry.parameters()) {
    const Shape& shape = parameter->shape();
    Dims larger = shape.dims();
    for (int64_t& extent : larger)
      if (extent > 1) extent += kRescaledExtent;
    extents.push_back(shape.WithDims(larger));
    Dims dims = shape.dims();
    if (!dims.empty()) dims.push_back(kRescaledExtent);
    ranked.push_back(shape.WithDims(dims));
  }
  return {extents, ranked};
}

// Whether the rule also holds for other extents than those of its examples.
bool HoldsRescaled(const RuleSpec& spec) {
  for (const RulePair& example : spec.examples)
    for (const std::vector<Shape>& shapes : OtherShapes(*example.pattern->entry())) {
      std::optional<RulePair> pair = RescaledPair(example, shapes);
      if (pair && !CheckRuleValues(spec.name, spec.where, *pair, spec.check).ok()) return false;
    }
  return true;
}

std::string ContentOf(const RuleSpec& spec, uint64_t id) {
  std::string text = fmt::format("{} {} {}", spec.name, spec.priority, spec.when_cheaper);
  for (const RulePair& example : spec.examples)
    text += WriteHloText(*example.pattern) + WriteHloText(*example.replacement);
  // Functions of the user have no content that could be compared.
  if (spec.functions != nullptr) text += std::to_string(id);
  return HexOf(DigestOf(text));
}

}  // namespace

Result<std::shared_ptr<const UserRule>> MakeUserRule(RuleSpec spec) {
  if (!IsItemName(spec.name))
    return MakeError(
        ErrorCode::kRuleInput,
        fmt::format("rule '{}': a name has letters, digits, '_', '-' and '.'", spec.name),
        spec.where);
  if (spec.examples.empty())
    return At(spec, ErrorCode::kRuleInput, "it has no pattern and replacement");
  for (RulePair& pair : spec.examples) {
    for (Module* module : {pair.pattern.get(), pair.replacement.get()}) {
      if (module->entry() == nullptr)
        return At(spec, ErrorCode::kRuleInput, "a program has no function main");
      TOK_RETURN_IF_ERROR(RunSteps(*module, kEntryPipeline));
    }
    TOK_RETURN_IF_ERROR(CheckExample(spec, pair));
  }
  static std::atomic<uint64_t> next_id{1};
  auto rule = std::make_shared<UserRule>();
  rule->id = next_id++;
  rule->label = Interned("user." + spec.name);  // decisions refer to rules that may be gone
  bool has_trace = spec.functions != nullptr && spec.functions->HasTrace();
  rule->is_symbolic = !has_trace && HoldsRescaled(spec);
  rule->content = ContentOf(spec, rule->id);
  rule->name = std::move(spec.name);
  rule->where = std::move(spec.where);
  rule->priority = spec.priority;
  rule->when_cheaper = spec.when_cheaper;
  rule->examples = std::move(spec.examples);
  rule->functions = std::move(spec.functions);
  return std::shared_ptr<const UserRule>(std::move(rule));
}

Result<RulePair> ReadRulePair(std::string_view pattern, std::string_view replacement,
                              const std::string& name) {
  RulePair pair;
  for (auto [text, to] : {std::pair(pattern, &pair.pattern), {replacement, &pair.replacement}}) {
    TOK_TRY(*to, ReadModule(Bytes::Copy(text.data(), text.size()), name));
    TOK_RETURN_IF_ERROR(VerifyModule(**to));
  }
  return pair;
}

}  // namespace tokamak
