#include "driver/compile/all_kernels.h"

#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "explain/decision.h"

namespace tokamak {
namespace {

// Instructions that the error lists (chosen: fits a terminal).
constexpr size_t kMaxNamed = 8;

}  // namespace

bool BelongsToHost(const Instr& instr) {
  if (instr.op() == Op::kCustomCall) {
    const CustomCallAttrs& attrs = instr.attrs<CustomCallAttrs>();
    return attrs.has_side_effect || IsHostCall(attrs.target);
  }
  return instr.info().Is(kSideEffect);
}

Status CheckAllKernels(const LoweredProgram& program, const Module& module) {
  const Instr* first = nullptr;
  std::string message;
  std::vector<std::string> others;
  size_t count = 0;
  for (size_t i = 0; i < program.host_instrs.size(); ++i) {
    const Instr& instr = *program.host_instrs[i];
    if (BelongsToHost(instr)) continue;
    if (i < program.device_hosts.size() && program.device_hosts[i]) continue;
    ++count;
    std::string text = LabelOf(instr) + " (" + program.host_reasons[i] + ")";
    if (first == nullptr) {
      first = &instr;
      message = std::string(instr.info().name) + ": '" + LabelOf(instr) +
                "' has no kernel: " + program.host_reasons[i];
    } else if (others.size() < kMaxNamed) {
      others.push_back("also " + text);
    }
  }
  if (first == nullptr) return Ok();
  Error error = MakeError(ErrorCode::kNoKernel, message, SpanOf(*first));
  AddOrigins(error, *first, module);
  for (std::string& other : others) error.notes.push_back(std::move(other));
  if (count > others.size() + 1)
    error.notes.push_back("and " + std::to_string(count - others.size() - 1) + " more");
  return error;
}

}  // namespace tokamak
