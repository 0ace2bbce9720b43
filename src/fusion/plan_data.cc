#include "fusion/plan_data.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ir/compare.h"

namespace tokamak {
namespace {

using nlohmann::json;

// Version of the JSON format, key tokamak_plan.
constexpr int kPlanVersion = 1;

// Unique names of a computation's instructions: an ambiguous name gets the position of the
// instruction as a suffix.
class Names {
 public:
  explicit Names(const Computation& computation) {
    std::unordered_map<std::string, int> count;
    std::vector<Instr*> order = computation.PostOrder();
    for (const Instr* instr : order) ++count[LabelOf(*instr)];
    size_t number = 0;
    for (const Instr* instr : order) {
      std::string name = LabelOf(*instr);
      if (count[name] > 1) name += fmt::format("#{}", number);
      ++number;
      instrs_.emplace(name, instr);
      names_.emplace(instr, std::move(name));
    }
  }

  const std::string& Of(const Instr* instr) const { return names_.at(instr); }
  // Null if no instruction has that name.
  const Instr* Find(const std::string& name) const {
    auto found = instrs_.find(name);
    return found == instrs_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string, const Instr*> instrs_;
  std::unordered_map<const Instr*, std::string> names_;
};

Error NotOf(const std::string& what) {
  Error error = MakeError(ErrorCode::kOptionValue, "plan: " + what);
  error.notes.push_back("`tokamak explain FILE --write-plan PLAN` writes a plan for this program");
  return error;
}

Result<std::vector<const Instr*>> InstrsOf(const std::vector<std::string>& words,
                                           const Names& names, const std::string& computation) {
  std::vector<const Instr*> instrs;
  for (const std::string& word : words) {
    const Instr* instr = names.Find(word);
    if (instr == nullptr)
      return NotOf("computation '" + computation + "' has no instruction '" + word + "'");
    if (std::find(instrs.begin(), instrs.end(), instr) != instrs.end())
      return NotOf("'" + word + "' occurs twice in one kernel of '" + computation + "'");
    instrs.push_back(instr);
  }
  return instrs;
}

// Every value that is read outside of its kernel must be a root: a handwritten plan may have
// omitted one.
Status CheckRoots(const Cut& cut, const Computation& computation) {
  std::unordered_set<const Instr*> stored, computed;
  for (const CutRegion& region : cut.regions) {
    stored.insert(region.roots.begin(), region.roots.end());
    computed.insert(region.instrs.begin(), region.instrs.end());
  }
  for (const CutRegion& region : cut.regions) {
    std::unordered_set<const Instr*> own(region.instrs.begin(), region.instrs.end());
    for (const Instr* instr : region.instrs)
      for (const Instr* operand : instr->operands())
        if (!own.contains(operand) && computed.contains(operand) && !stored.contains(operand))
          return NotOf(fmt::format("'{}' reads '{}', which no kernel of '{}' stores",
                                   LabelOf(*instr), LabelOf(*operand), computation.name()));
  }
  const Instr* root = computation.root();
  if (computed.contains(root) && !stored.contains(root))
    return NotOf("the result of '" + computation.name() + "' is stored by no kernel");
  return Ok();
}

Result<Cut> CutOf(const PlanData::Part& part, const Computation& computation) {
  Names names(computation);
  Cut cut;
  for (const PlanData::Kernel& kernel : part.kernels) {
    CutRegion& region = cut.regions.emplace_back();
    TOK_TRY(region.instrs, InstrsOf(kernel.instrs, names, part.computation));
    TOK_TRY(region.roots, InstrsOf(kernel.roots, names, part.computation));
    if (region.roots.empty()) return NotOf("a kernel of '" + part.computation + "' has no root");
    for (const Instr* root : region.roots)
      if (std::find(region.instrs.begin(), region.instrs.end(), root) == region.instrs.end())
        return NotOf("root '" + names.Of(root) + "' is not in its kernel");
  }
  std::unordered_set<int> packed;
  for (const std::vector<int>& group : part.launch_groups) {
    for (int kernel : group)
      if (kernel < 0 || static_cast<size_t>(kernel) >= cut.regions.size() ||
          !packed.insert(kernel).second)
        return NotOf(fmt::format(
            "a launch group of '{}' names kernel {} of {}, which does not exist or is named twice",
            part.computation, kernel, cut.regions.size()));
    cut.launch_groups.push_back(group);
  }
  TOK_RETURN_IF_ERROR(CheckRoots(cut, computation));
  return cut;
}

json JsonOf(const PlanData::Part& part) {
  json kernels = json::array();
  for (const PlanData::Kernel& kernel : part.kernels)
    kernels.push_back(
        {{"generator", kernel.generator}, {"instrs", kernel.instrs}, {"roots", kernel.roots}});
  return {{"computation", part.computation},
          {"kernels", kernels},
          {"launch_groups", part.launch_groups}};
}

// Throws json::exception on a missing key or a wrong type; the caller converts it to an error.
PlanData DataOf(const json& from, std::string& passes, std::string& skipped) {
  PlanData plan;
  plan.target = from.at("target").get<std::string>();
  plan.program = from.at("program").get<std::string>();
  passes = from.at("passes").get<std::string>();
  skipped = from.at("skip_passes").get<std::string>();
  plan.strict = from.at("strict").get<bool>();
  auto mode = from.at("fusion").get<std::string>();
  std::optional<FusionMode> found = FusionModeNamed(mode);
  if (!found) throw json::other_error::create(501, "fusion: " + mode, &from);
  plan.fusion = *found;
  for (const json& one : from.at("computations")) {
    PlanData::Part& part = plan.parts.emplace_back();
    part.computation = one.at("computation").get<std::string>();
    part.launch_groups = one.at("launch_groups").get<std::vector<std::vector<int>>>();
    for (const json& kernel : one.at("kernels"))
      part.kernels.push_back({kernel.at("generator").get<std::string>(),
                              kernel.at("instrs").get<std::vector<std::string>>(),
                              kernel.at("roots").get<std::vector<std::string>>()});
  }
  return plan;
}

}  // namespace

std::string PlanDigest(const Module& module) {
  return fmt::format("{:016x}", StructuralHash(module));
}

void AddParts(PlanData& plan, const Module& module, const Cuts& cuts) {
  for (const auto& computation : module.computations()) {
    auto found = cuts.find(computation.get());
    if (found == cuts.end()) continue;
    Names names(*computation);
    PlanData::Part& part = plan.parts.emplace_back();
    part.computation = computation->name();
    part.launch_groups = found->second.launch_groups;
    for (const CutRegion& region : found->second.regions) {
      PlanData::Kernel& kernel = part.kernels.emplace_back();
      kernel.generator = region.generator;
      for (const Instr* instr : region.instrs) kernel.instrs.push_back(names.Of(instr));
      for (const Instr* root : region.roots) kernel.roots.push_back(names.Of(root));
    }
  }
}

Result<Cuts> CutsOf(const PlanData& plan, const Module& module) {
  if (std::string digest = PlanDigest(module); digest != plan.program)
    return NotOf("it was made for another program (hash " + plan.program + ", this one has " +
                 digest + " after its passes)");
  Cuts cuts;
  for (const PlanData::Part& part : plan.parts) {
    const auto& all = module.computations();
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& computation) {
      return computation->name() == part.computation;
    });
    if (found == all.end())
      return NotOf("the program has no computation '" + part.computation + "'");
    TOK_TRY(cuts[found->get()], CutOf(part, **found));
  }
  return cuts;
}

std::string ToJson(const PlanData& plan) {
  json parts = json::array();
  for (const PlanData::Part& part : plan.parts) parts.push_back(JsonOf(part));
  std::string skipped;
  for (Pass pass : plan.skip_passes)
    skipped += (skipped.empty() ? "" : ",") + std::string(InfoOf(pass).name);
  json out = {{"tokamak_plan", kPlanVersion}, {"target", plan.target},
              {"program", plan.program},      {"passes", ToString(plan.passes)},
              {"skip_passes", skipped},       {"fusion", NameOf(plan.fusion)},
              {"strict", plan.strict},        {"computations", std::move(parts)}};
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<PlanData> PlanFromJson(std::string_view text, const std::string& file) {
  auto bad = [&](const std::string& why) {
    return MakeError(ErrorCode::kOptionValue, "plan: " + file + " is not a plan: " + why);
  };
  json from = json::parse(text, nullptr, false);
  if (from.is_discarded()) return bad("it is not JSON");
  PlanData plan;
  std::string passes, skipped;
  try {
    if (from.at("tokamak_plan").get<int>() != kPlanVersion)
      return bad(fmt::format("expected version {}", kPlanVersion));
    plan = DataOf(from, passes, skipped);
  } catch (const json::exception& error) {
    return bad(error.what());
  }
  TOK_TRY(plan.passes, ParsePipeline(passes));
  TOK_TRY(Pipeline skip, ParsePipelineUnchecked(skipped));
  for (const Step& step : skip) plan.skip_passes.push_back(step.pass);
  return plan;
}

}  // namespace tokamak
