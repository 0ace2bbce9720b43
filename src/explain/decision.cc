#include "explain/decision.h"

#include <fmt/format.h>

namespace tokamak {

std::string LabelOf(const Instr& instr) {
  if (!instr.name().empty()) return instr.name();
  return fmt::format("{}.{}", instr.info().name, static_cast<uint32_t>(instr.id()));
}

std::string_view NameOf(Verdict verdict) {
  return verdict == Verdict::kAccepted ? "accepted" : "rejected";
}

std::string ToString(const Decision& decision) {
  std::string edge = decision.subject;
  if (!decision.other.empty()) edge += " -> " + decision.other;
  std::string line = fmt::format("{:<9} {} by {}", NameOf(decision.verdict), edge, decision.rule);
  if (decision.before_us != 0 || decision.after_us != 0)
    line += fmt::format("  {:.1f} us -> {:.1f} us", decision.before_us, decision.after_us);
  if (!decision.because.empty()) line += "  (" + decision.because + ")";
  return line;
}

}  // namespace tokamak
