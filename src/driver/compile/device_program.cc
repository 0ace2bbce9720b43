#include "driver/compile/device_program.h"

#include <algorithm>

#include "backend/cuda/gpu.h"
#include "driver/compile/device_calls.h"
#include "driver/compile/device_loops.h"

namespace tokamak {
namespace {

// Bytes: a separate launch for the first iteration pays only if it eliminates a long copy (chosen).
constexpr int64_t kLeastBytesLeftOut = 16 << 20;

// Why the device's library cannot run a call; empty if it can.
std::string WhyNotOnDevice(const cuda::DeviceCall& call, const Target& target) {
  if (target.device == nullptr) return "";
  auto loaded = static_cast<cuda::Gpu*>(target.device)->LoadCall(call);
  return loaded.ok() ? "" : loaded.error().message;
}

bool SelectCall(const Instr& instr, const Target& target, DecisionLog& log) {
  std::optional<cuda::DeviceCall> call = DeviceCallOf(instr);
  if (!call) return false;
  std::string why = WhyNotOnDevice(*call, target);
  log.Add({.pass = "device",
           .rule = why.empty() ? "device.call" : "host.call",
           .subject = LabelOf(instr),
           .origins = instr.origins(),
           .because = why.empty() ? "a library of the device computes it" : why});
  return why.empty();
}

// Eliminates copies that initialize carried values directly before a loop.
void LeaveOutCopies(const LoweredProgram& program, std::vector<RunStep>& steps) {
  for (size_t at = 0; at < steps.size(); ++at) {
    RunStep& loop = steps[at];
    if (loop.kind != StepKind::kWhile || !program.IsPersistent(loop)) {
      for (std::vector<RunStep>& block : loop.blocks) LeaveOutCopies(program, block);
      continue;
    }
    std::optional<uint64_t> iterations = TripCountOf(loop, program);
    if (!iterations || *iterations < 2) continue;
    std::vector<BufferSlice>& first = loop.first_slices;
    for (size_t i = at; i-- > 0 && steps[i].kind == StepKind::kCopy;) {
      RunStep& copy = steps[i];
      if (copy.bytes < kLeastBytesLeftOut) continue;
      bool is_last = std::none_of(
          steps.begin() + static_cast<int64_t>(i) + 1, steps.begin() + static_cast<int64_t>(at),
          [&](const RunStep& later) { return !later.left_out && MustFollow(later, copy); });
      if (!is_last) continue;
      const std::vector<BufferSlice> slices =
          first.empty() ? LoopLaunchOf(loop, program).slices : first;
      std::optional<std::vector<BufferSlice>> without = WithoutCopy(loop, program, slices, copy);
      if (!without) continue;
      first = std::move(*without);
      copy.left_out = true;
    }
  }
}

}  // namespace

void FitToDevice(LoweredProgram& program, const Target& target, DecisionLog& log) {
  for (const Instr* call : program.call_instrs)
    program.device_calls.push_back(SelectCall(*call, target, log));
  for (const Instr* host : program.host_instrs)
    program.device_hosts.push_back(SelectCall(*host, target, log));
  LeaveOutCopies(program, program.steps);
}

}  // namespace tokamak
