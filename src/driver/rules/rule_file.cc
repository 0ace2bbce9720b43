#include <algorithm>

#include <fmt/format.h>

#include "driver/rules/make_rule.h"
#include "ir/clone.h"
#include "text/load.h"

namespace tokamak {
namespace {

Error BadRule(std::string message, TextSpan where) {
  return MakeError(ErrorCode::kRuleInput, "rules: " + std::move(message), std::move(where));
}

class FileRuleFunctions final : public RuleFunctions {
 public:
  explicit FileRuleFunctions(void (*warn)(const Error&)) : warn_(warn) {}
  void Warn(const Error& error) override { warn_(error); }

 private:
  void (*warn_)(const Error&);
};

// Sets the field that a module attribute names; false if its value has another type.
bool SetField(RuleSpec& spec, std::string_view field, const AttrValue& value) {
  const auto* whole = value.As<IntAttr>();
  const auto* real = value.As<FloatAttr>();
  if (field == "rule" && value.As<std::string>() != nullptr) {
    spec.name = *value.As<std::string>();
  } else if (field == "priority" && whole != nullptr) {
    spec.priority = whole->value;
  } else if (field == "always" && value.As<bool>() != nullptr) {
    spec.when_cheaper = !*value.As<bool>();
  } else if (field == "nonfinite" && value.As<bool>() != nullptr) {
    spec.check.nonfinite = *value.As<bool>();
  } else if (field == "tolerance" && real != nullptr) {
    spec.check.tolerance = real->value;
  } else if (field == "low" && real != nullptr) {
    spec.check.low = real->value;
  } else if (field == "high" && real != nullptr) {
    spec.check.high = real->value;
  } else {
    return false;
  }
  return true;
}

// The program with only this function.
std::unique_ptr<Module> Only(const Module& module, std::string_view function) {
  std::unique_ptr<Module> copy = CloneModule(module);
  copy->set_entry(copy->FindComputation(function));
  copy->entry()->is_public = true;
  std::vector<bool> keep(copy->computations().size(), false);
  std::vector<const Computation*> open = {copy->entry()};
  while (!open.empty()) {
    const Computation* next = open.back();
    open.pop_back();
    for (size_t i = 0; i < keep.size(); ++i) {
      if (copy->computations()[i].get() != next || keep[i]) continue;
      keep[i] = true;
      for (const Instr* caller : next->Callers())
        open.insert(open.end(), caller->called().begin(), caller->called().end());
    }
  }
  copy->KeepComputations(keep);
  return copy;
}

Result<RuleSpec> SpecOf(const Module& module) {
  RuleSpec spec;
  spec.name = module.name();
  const Computation* pattern = module.FindComputation("pattern");
  const Computation* replacement = module.FindComputation("replacement");
  TextSpan where{.file = module.file};
  if (pattern == nullptr || replacement == nullptr)
    return BadRule("a rule has the functions @pattern and @replacement", where);
  where.line = static_cast<int>(pattern->pos.line);
  where.column = static_cast<int>(pattern->pos.column);
  spec.where = where;
  constexpr std::string_view kPrefix = "tokamak.";
  for (const AttrEntry& entry : module.attributes) {
    if (!entry.name.starts_with(kPrefix)) continue;
    if (!SetField(spec, std::string_view(entry.name).substr(kPrefix.size()), entry.value))
      return BadRule(fmt::format("unknown attribute or type of value: {}", entry.name), where);
  }
  spec.examples.push_back({Only(module, "pattern"), Only(module, "replacement")});
  return spec;
}

}  // namespace

Result<std::vector<std::shared_ptr<const UserRule>>> LoadRuleFile(const std::string& path,
                                                                  void (*warn)(const Error&)) {
  TOK_TRY(LoadedFile file, LoadFile(path, Verification::kYes));
  std::vector<RuleSpec> specs;
  for (auto& program : file.programs) {
    if (!program.ok()) return std::move(program.error());
    if (program.value()->computations().empty()) continue;
    TOK_TRY(RuleSpec spec, SpecOf(*program.value()));
    auto same = std::ranges::find(specs, spec.name, &RuleSpec::name);
    if (same == specs.end()) {
      specs.push_back(std::move(spec));
    } else {
      same->examples.push_back(std::move(spec.examples.front()));
    }
  }
  if (specs.empty()) return BadRule("the file has no rule", {.file = path});
  std::vector<std::shared_ptr<const UserRule>> rules;
  for (RuleSpec& spec : specs) {
    spec.functions = std::make_unique<FileRuleFunctions>(warn);
    TOK_TRY(std::shared_ptr<const UserRule> rule, MakeUserRule(std::move(spec)));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace tokamak
