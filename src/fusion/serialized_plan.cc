#include "fusion/serialized_plan.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ir/compare.h"
#include "support/json_text.h"

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
Status CheckRoots(const KernelPartition& partition, const Computation& computation) {
  std::unordered_set<const Instr*> stored, computed;
  for (const PartitionRegion& region : partition.regions) {
    stored.insert(region.roots.begin(), region.roots.end());
    computed.insert(region.instrs.begin(), region.instrs.end());
  }
  for (const PartitionRegion& region : partition.regions) {
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

Result<KernelPartition> PartitionOf(const SerializedPlan::ComputationEntry& entry,
                                    const Computation& computation) {
  Names names(computation);
  KernelPartition partition;
  for (const SerializedPlan::Kernel& kernel : entry.kernels) {
    PartitionRegion& region = partition.regions.emplace_back();
    TOK_TRY(region.instrs, InstrsOf(kernel.instrs, names, entry.computation));
    TOK_TRY(region.roots, InstrsOf(kernel.roots, names, entry.computation));
    if (region.roots.empty()) return NotOf("a kernel of '" + entry.computation + "' has no root");
    for (const Instr* root : region.roots)
      if (std::find(region.instrs.begin(), region.instrs.end(), root) == region.instrs.end())
        return NotOf("root '" + names.Of(root) + "' is not in its kernel");
  }
  std::unordered_set<int> launched;
  for (const std::vector<int>& group : entry.launch_groups) {
    for (int kernel : group)
      if (kernel < 0 || static_cast<size_t>(kernel) >= partition.regions.size() ||
          !launched.insert(kernel).second)
        return NotOf(fmt::format(
            "a launch group of '{}' names kernel {} of {}, which does not exist or is named twice",
            entry.computation, kernel, partition.regions.size()));
    partition.launch_groups.push_back(group);
  }
  TOK_RETURN_IF_ERROR(CheckRoots(partition, computation));
  return partition;
}

json JsonOf(const SerializedPlan::ComputationEntry& entry) {
  json kernels = json::array();
  for (const SerializedPlan::Kernel& kernel : entry.kernels)
    kernels.push_back(
        {{"generator", kernel.generator}, {"instrs", kernel.instrs}, {"roots", kernel.roots}});
  return {{"computation", entry.computation},
          {"kernels", kernels},
          {"launch_groups", entry.launch_groups}};
}

// Everything but what has names: passes and the fusion mode. Throws json::exception on a missing
// key or a wrong type; the caller converts it to an error.
SerializedPlan DataOf(const json& from) {
  SerializedPlan plan;
  plan.target = from.at("target").get<std::string>();
  plan.module_digest = from.at("program").get<std::string>();
  plan.strict = from.at("strict").get<bool>();
  for (const json& one : from.at("computations")) {
    SerializedPlan::ComputationEntry& entry = plan.computations.emplace_back();
    entry.computation = one.at("computation").get<std::string>();
    entry.launch_groups = one.at("launch_groups").get<std::vector<std::vector<int>>>();
    for (const json& kernel : one.at("kernels"))
      entry.kernels.push_back({kernel.at("generator").get<std::string>(),
                               kernel.at("instrs").get<std::vector<std::string>>(),
                               kernel.at("roots").get<std::vector<std::string>>()});
  }
  return plan;
}

}  // namespace

std::string StructuralDigest(const Module& module) {
  return fmt::format("{:016x}", StructuralHash(module));
}

void AddPartitions(SerializedPlan& plan, const Module& module, const ModulePartition& partitions) {
  for (const auto& computation : module.computations()) {
    auto found = partitions.find(computation.get());
    if (found == partitions.end()) continue;
    Names names(*computation);
    SerializedPlan::ComputationEntry& entry = plan.computations.emplace_back();
    entry.computation = computation->name();
    entry.launch_groups = found->second.launch_groups;
    for (const PartitionRegion& region : found->second.regions) {
      SerializedPlan::Kernel& kernel = entry.kernels.emplace_back();
      kernel.generator = region.generator;
      for (const Instr* instr : region.instrs) kernel.instrs.push_back(names.Of(instr));
      for (const Instr* root : region.roots) kernel.roots.push_back(names.Of(root));
    }
  }
}

Result<ModulePartition> PartitionsOf(const SerializedPlan& plan, const Module& module) {
  if (std::string digest = StructuralDigest(module); digest != plan.module_digest)
    return NotOf("it was made for another program (hash " + plan.module_digest + ", this one has " +
                 digest + " after its passes)");
  ModulePartition partitions;
  for (const SerializedPlan::ComputationEntry& entry : plan.computations) {
    const auto& all = module.computations();
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& computation) {
      return computation->name() == entry.computation;
    });
    if (found == all.end())
      return NotOf("the program has no computation '" + entry.computation + "'");
    TOK_TRY(partitions[found->get()], PartitionOf(entry, **found));
  }
  return partitions;
}

std::string ToJson(const SerializedPlan& plan) {
  json entries = json::array();
  for (const SerializedPlan::ComputationEntry& entry : plan.computations)
    entries.push_back(JsonOf(entry));
  std::string skipped;
  for (Pass pass : plan.skip_passes)
    skipped += (skipped.empty() ? "" : ",") + std::string(InfoOf(pass).name);
  json out = {{"tokamak_plan", kPlanVersion},  {"target", plan.target},
              {"program", plan.module_digest}, {"passes", ToString(plan.passes)},
              {"skip_passes", skipped},        {"fusion", NameOf(plan.fusion_mode)},
              {"strict", plan.strict},         {"computations", std::move(entries)}};
  return JsonText(out, 1) + "\n";
}

Result<SerializedPlan> PlanFromJson(std::string_view text, const std::string& file) {
  auto bad = [&](const std::string& why) {
    return MakeError(ErrorCode::kOptionValue, "plan: " + file + " is not a plan: " + why);
  };
  json from = json::parse(text, nullptr, false);
  if (from.is_discarded()) return bad("it is not JSON");
  SerializedPlan plan;
  std::string passes, skipped, mode;
  try {
    if (from.at("tokamak_plan").get<int>() != kPlanVersion)
      return bad(fmt::format("expected version {}", kPlanVersion));
    plan = DataOf(from);
    passes = from.at("passes").get<std::string>();
    skipped = from.at("skip_passes").get<std::string>();
    mode = from.at("fusion").get<std::string>();
  } catch (const json::exception& error) {
    return bad(error.what());
  }
  std::optional<FusionMode> found = FusionModeFromName(mode);
  if (!found) return bad("it names the fusion mode '" + mode + "'");
  plan.fusion_mode = *found;
  TOK_TRY(plan.passes, ParsePipeline(passes));
  TOK_TRY(Pipeline skip, ParsePipelineUnchecked(skipped));
  for (const Step& step : skip) plan.skip_passes.push_back(step.pass);
  return plan;
}

}  // namespace tokamak
