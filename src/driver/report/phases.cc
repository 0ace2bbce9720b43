#include "driver/report/phases.h"

#include <algorithm>
#include <optional>

namespace tokamak {
namespace {

// The phase given by the names; nullopt if they give none. An instruction with several origins
// belongs to the earliest phase: later phases only read a forward value.
std::optional<Phase> NamedPhase(const Module& module, const Instr& instr) {
  std::optional<Phase> phase;
  for (const Origin* origin : module.origins().Of(instr.origins())) {
    std::string_view name = origin->op_name;
    std::optional<Phase> own;
    if (name.find("transpose(") != std::string_view::npos) {
      own = Phase::kBackward;
    } else if (name.find("jvp(") != std::string_view::npos) {
      own = Phase::kForward;
    }
    if (own && (!phase || *own < *phase)) phase = own;
  }
  return phase;
}

}  // namespace

std::string_view NameOf(Phase phase) {
  constexpr std::string_view kNames[] = {"forward", "backward", "update"};
  return kNames[static_cast<size_t>(phase)];
}

Phases::Phases(const Module& module) : module_(module) {
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->PostOrder()) phases_[instr] = Classify(*instr);
}

Phase Phases::Classify(const Instr& instr) const {
  if (std::optional<Phase> named = NamedPhase(module_, instr)) return *named;
  Phase latest = Phase::kForward;
  for (const Instr* operand : instr.operands()) latest = std::max(latest, Of(*operand));
  // For instructions that passes created without a name, only the operands are known.
  bool has_name = instr.origins() != OriginId::kNone;
  return has_name && latest == Phase::kBackward ? Phase::kUpdate : latest;
}

Phase Phases::Of(const Instr& instr) const {
  auto found = phases_.find(&instr);
  return found == phases_.end() ? Phase::kForward : found->second;
}

Phase Phases::Of(const std::vector<const Instr*>& roots) const {
  Phase latest = Phase::kForward;
  for (const Instr* root : roots) latest = std::max(latest, Of(*root));
  return latest;
}

}  // namespace tokamak
