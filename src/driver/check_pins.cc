#include "driver/check_pins.h"

#include <algorithm>

#include "driver/program_facts.h"

namespace tokamak {
namespace {

bool IsMember(const Pin& pin, const std::string& label) {
  return std::any_of(pin.members.begin(), pin.members.end(),
                     [&](const Instr* member) { return LabelOf(*member) == label; });
}

// The record with the reason of the rejection, as "rule: reason".
std::string RejectionOf(const Pin& pin, const DecisionLog& log) {
  std::string rule;
  for (const Decision& decision : log.all()) {
    if (decision.verdict != Verdict::kRejected) continue;
    bool is_about =
        decision.rule == "fusion.pin"
            ? decision.because.starts_with(pin.said + ": ") && IsMember(pin, decision.subject)
            : IsMember(pin, decision.subject) && IsMember(pin, decision.other);
    if (!is_about) continue;
    if (decision.rule == "fusion.pin") return decision.because.substr(pin.said.size() + 2);
    rule = std::string(decision.rule);
    if (!decision.because.empty()) rule += ": " + decision.because;
  }
  return rule.empty() ? "no reason is recorded" : rule;
}

// "add.1 is in kernel k, mul.2 in kernel l".
std::string HomesOf(const Pin& pin, const LoweredProgram& program) {
  // Instructions that the message lists (chosen).
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(pin.members.size(), kShown); ++i) {
    std::string home = "no kernel";
    for (size_t k = 0; k < program.sources.size(); ++k) {
      const std::vector<const Instr*>& instrs = program.sources[k].region.instrs;
      if (std::find(instrs.begin(), instrs.end(), pin.members[i]) == instrs.end()) continue;
      home = "kernel " + program.kernels[k].name;
      break;
    }
    text += (i == 0 ? "" : ", ") + LabelOf(*pin.members[i]) + " is in " + home;
  }
  if (pin.members.size() > kShown)
    text += " and " + std::to_string(pin.members.size() - kShown) + " more";
  return text;
}

}  // namespace

Status CheckPins(const LoweredProgram& program, const Module& module, const Pins& pins,
                 const DecisionLog& log) {
  for (const Pin& pin : pins.all()) {
    if (pin.kind != PinKind::kRequire) continue;
    bool holds =
        std::any_of(program.sources.begin(), program.sources.end(),
                    [&](const KernelSource& source) { return HoldsAll(source.region, pin); });
    if (holds) continue;
    const Instr& first = *pin.members[0];
    Error error =
        MakeError(ErrorCode::kOptionValue,
                  "fusion: " + pin.said + " cannot hold: " + RejectionOf(pin, log), SpanOf(first));
    error.notes.push_back(HomesOf(pin, program));
    AddOrigins(error, first, module);
    return error;
  }
  return Ok();
}

}  // namespace tokamak
