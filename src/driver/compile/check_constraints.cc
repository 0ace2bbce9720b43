#include "driver/compile/check_constraints.h"

#include <algorithm>

#include "driver/compile/program_facts.h"

namespace tokamak {
namespace {

bool IsMember(const FusionConstraint& constraint, const std::string& label) {
  return std::any_of(constraint.members.begin(), constraint.members.end(),
                     [&](const Instr* member) { return LabelOf(*member) == label; });
}

// The record with the reason of the rejection, as "rule: reason".
std::string RejectionOf(const FusionConstraint& constraint, const DecisionLog& log) {
  std::string rule;
  for (const Decision& decision : log.all()) {
    if (decision.verdict != Verdict::kRejected) continue;
    bool is_about =
        decision.rule == "fusion.pin"
            ? decision.because.starts_with(constraint.source_text + ": ") &&
                  IsMember(constraint, decision.subject)
            : IsMember(constraint, decision.subject) && IsMember(constraint, decision.other);
    if (!is_about) continue;
    if (decision.rule == "fusion.pin")
      return decision.because.substr(constraint.source_text.size() + 2);
    rule = std::string(decision.rule);
    if (!decision.because.empty()) rule += ": " + decision.because;
  }
  return rule.empty() ? "no reason is recorded" : rule;
}

// "add.1 is in kernel k, mul.2 in kernel l".
std::string HomesOf(const FusionConstraint& constraint, const LoweredProgram& program) {
  // Instructions that the message lists (chosen).
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(constraint.members.size(), kShown); ++i) {
    std::string home = "no kernel";
    for (size_t k = 0; k < program.sources.size(); ++k) {
      const std::vector<const Instr*>& instrs = program.sources[k].region.instrs;
      if (std::find(instrs.begin(), instrs.end(), constraint.members[i]) == instrs.end()) continue;
      home = "kernel " + program.kernels[k].name;
      break;
    }
    text += (i == 0 ? "" : ", ") + LabelOf(*constraint.members[i]) + " is in " + home;
  }
  if (constraint.members.size() > kShown)
    text += " and " + std::to_string(constraint.members.size() - kShown) + " more";
  return text;
}

}  // namespace

Status CheckConstraints(const LoweredProgram& program, const Module& module,
                        const FusionConstraints& constraints, const DecisionLog& log) {
  for (const FusionConstraint& constraint : constraints.all()) {
    if (constraint.kind != ConstraintKind::kRequireFused) continue;
    bool holds = std::any_of(
        program.sources.begin(), program.sources.end(),
        [&](const KernelSource& source) { return ComputesAll(source.region, constraint); });
    if (holds) continue;
    const Instr& first = *constraint.members[0];
    Error error = MakeError(
        ErrorCode::kOptionValue,
        "fusion: " + constraint.source_text + " cannot hold: " + RejectionOf(constraint, log),
        SpanOf(first));
    error.notes.push_back(HomesOf(constraint, program));
    AddOrigins(error, first, module);
    return error;
  }
  return Ok();
}

}  // namespace tokamak
