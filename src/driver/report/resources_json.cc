// Where the steps are in the roofline of the machine, and the occupancy of GPU kernels: from the
// work of each kernel and the rates that its cost is made from.

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "cost/occupancy.h"
#include "cost/rates.h"
#include "driver/report/page_data.h"

namespace tokamak {
namespace {

using nlohmann::json;

constexpr double kOpsOfMultiplyAdd = 2;  // operations (definition)

// Arithmetic operations per counted operation of a pipe; 0: not arithmetic (loads, branches).
double ArithmeticOf(Pipe pipe) {
  switch (pipe) {
    case Pipe::kMultiply:
    case Pipe::kMultiply64:
    case Pipe::kMultiply16:
    case Pipe::kTensor:
      return kOpsOfMultiplyAdd;
    case Pipe::kSimple:
    case Pipe::kInteger:
    case Pipe::kDivide:
    case Pipe::kDivide64:
    case Pipe::kRoot:
    case Pipe::kRoot64:
    case Pipe::kConvert:
    case Pipe::kScalar:
      return 1;
    default:
      return 0;
  }
}

// Elements per counted operation: on a CPU a vector register counts as one.
double LanesOf(Pipe pipe, const Machine& machine) {
  constexpr int64_t kBits = 32, kWideBits = 64, kNarrowBits = 16;
  if (machine.is_gpu() || pipe == Pipe::kScalar) return 1;
  bool is_wide = pipe == Pipe::kDivide64 || pipe == Pipe::kRoot64 || pipe == Pipe::kMultiply64;
  int64_t bits = is_wide ? kWideBits : pipe == Pipe::kMultiply16 ? kNarrowBits : kBits;
  return static_cast<double>(machine.Lanes(bits));
}

double OpsOf(const Work& work, const Machine& machine) {
  double ops = 0;
  for (size_t i = 0; i < kPipes; ++i)
    ops +=
        work.ops[i] * ArithmeticOf(static_cast<Pipe>(i)) * LanesOf(static_cast<Pipe>(i), machine);
  return ops;
}

// The most operations per nanosecond of each pipe that may bound a program.
json ComputeRoofs(const Machine& machine, const Rates& rates) {
  json roofs = json::array();
  auto cores = static_cast<double>(std::max<int64_t>(machine.cores, 1));
  auto add = [&](Pipe pipe, const char* name) {
    double ns = rates.ns[static_cast<size_t>(pipe)];
    if (ns <= 0) return;
    roofs.push_back(
        {{"name", name}, {"ops_ns", ArithmeticOf(pipe) * LanesOf(pipe, machine) * cores / ns}});
  };
  if (machine.async_multiply) add(Pipe::kTensor, "tensor cores, 16 bits");
  if (machine.dots_bf16 || machine.matrix_tiles) add(Pipe::kMultiply16, "16-bit multiply-add");
  add(Pipe::kMultiply, "multiply-add");
  add(Pipe::kSimple, "add, multiply");
  return roofs;
}

// The bandwidth of large arrays, and of arrays that fit half of a cache.
json MemoryRoofs(const Rates& rates) {
  json roofs = json::array();
  auto add = [&](const char* name, double bytes) {
    Bandwidth at = BandwidthAt(rates.all, bytes);
    roofs.push_back({{"name", name}, {"bytes_ns", std::max({at.read, at.write, at.copy})}});
  };
  constexpr double kFits = 0.5;     // of a cache: half of it is the working set
  constexpr double kExceeds = 1e3;  // times the last cache: memory alone
  add("memory", rates.l3_bytes * kExceeds);
  add("L2 cache", rates.l2_bytes * kFits);
  return roofs;
}

json StepOf(const StepReport& step, const Machine& machine, const Rates& rates) {
  if (!step.work) return nullptr;
  json entry = {{"ops", OpsOf(*step.work, machine)}, {"threads", step.work->threads}};
  if (!machine.is_gpu() || step.kernels.empty()) return entry;
  Occupancy occupancy = OccupancyOf(*step.work, rates);
  entry["occupancy"] = {{"threads", occupancy.threads},
                        {"blocks", occupancy.blocks},
                        {"limit", occupancy.limit},
                        {"grid", step.work->tasks}};
  return entry;
}

}  // namespace

json ResourcesOf(const CompileReport& report) {
  const Machine& machine = report.machine();
  const Rates& rates = RatesOf(machine);
  json steps = json::array();
  for (const StepReport& step : report.steps) steps.push_back(StepOf(step, machine, rates));
  return {{"compute", ComputeRoofs(machine, rates)},
          {"memory", MemoryRoofs(rates)},
          {"sms", machine.is_gpu() ? json(machine.cores) : json(nullptr)},
          {"steps", std::move(steps)}};
}

}  // namespace tokamak
