#include "kernel/simulate.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "kernel/sim_teams.h"

namespace tokamak {
namespace {

// The arrays of all kernels of a launch, arguments first.
struct LaunchArrays {
  Kernel kernel;  // has nothing but arrays
  std::vector<SimArgument> arguments;
  std::vector<uint32_t> copies;
  std::vector<std::vector<uint32_t>> numbers;  // by part: where its arrays are among them
};

LaunchArrays ArraysOf(std::span<const SimPart> parts, std::span<const TeamSimulator> simulators) {
  LaunchArrays all;
  all.numbers.resize(parts.size());
  for (bool arguments : {true, false}) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const Kernel& kernel = *parts[p].kernel;
      for (size_t i = 0; i < kernel.arrays.size(); ++i) {
        if ((i < kernel.ArgumentCount()) != arguments) continue;
        all.numbers[p].push_back(static_cast<uint32_t>(all.kernel.arrays.size()));
        all.kernel.arrays.push_back(kernel.arrays[i]);
        all.copies.push_back(simulators[p].program().copies[i]);
        if (arguments) all.arguments.push_back(parts[p].arguments[i]);
      }
    }
  }
  return all;
}

// In which order the teams of a launch run. A random one is made without a list of it: by steps
// that share no factor with their number.
class TeamOrder {
 public:
  TeamOrder(uint64_t teams, const SimOptions& options) : teams_(teams) {
    if (!options.seed || teams == 0) return;
    SplitMix64 draw(*options.seed);
    at_ = draw.Next() % teams;
    do step_ = draw.Next() % teams + 1;
    while (std::gcd(step_, teams) != 1);
  }
  bool IsDone() const { return done_ == teams_; }
  uint64_t team() const { return at_; }
  void Advance() {
    ++done_;
    at_ = (at_ + step_) % teams_;
  }

 private:
  uint64_t teams_, step_ = 1, at_ = 0, done_ = 0;
};

Error LaunchError(const Kernel& kernel, const std::string& what) {
  return MakeError(ErrorCode::kKernelLaunch, fmt::format("kernel {}: {}", kernel.name, what));
}

Status CheckLaunch(const Kernel& kernel, std::span<const SimArgument> arguments,
                   std::span<const int64_t> extents) {
  if (arguments.size() != kernel.ArgumentCount())
    return LaunchError(
        kernel, fmt::format("{} arguments, it takes {}", arguments.size(), kernel.ArgumentCount()));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].elements < kernel.arrays[i].size)
      return LaunchError(
          kernel, fmt::format("argument {} has {} elements, it needs {}", kernel.arrays[i].name,
                              arguments[i].elements, kernel.arrays[i].size));
  if (extents.size() != kernel.extents.size())
    return LaunchError(
        kernel, fmt::format("{} extents, it takes {}", extents.size(), kernel.extents.size()));
  for (size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = kernel.extents[i];
    if (extents[i] < extent.minimum || extents[i] > extent.maximum ||
        extents[i] % extent.multiple_of != 0)
      return LaunchError(kernel, fmt::format("extent {} is {}, it was built for {}..{}, multiples "
                                             "of {}",
                                             extent.name, extents[i], extent.minimum,
                                             extent.maximum, extent.multiple_of));
  }
  return Ok();
}

// What the launch alone decides: values of constants and extents.
std::vector<Bits> LaunchValues(const Kernel& kernel, std::span<const int64_t> extents) {
  std::vector<Bits> values(kernel.nodes.size());
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.prim == Prim::kConst) values[i] = node.bits;
    if (node.prim == Prim::kExtent) values[i] = static_cast<Bits>(extents[node.bits]);
    if (node.arity() == 0) continue;
    Bits operands[3] = {};
    for (size_t k = 0; k < static_cast<size_t>(node.arity()); ++k)
      operands[k] = values[static_cast<size_t>(node.operands[k])];
    ScalarType from = kernel.node(node.operands[0]).type;
    values[i] = EvaluatePrim(node.prim, node.type, from, operands).value_or(0);
  }
  return values;
}

}  // namespace

Result<SimReport> SimulateKernel(const Kernel& kernel, std::span<const SimArgument> arguments,
                                 std::span<const int64_t> extents, SimOptions options) {
  SimPart part{&kernel, arguments, extents};
  return SimulatePack({&part, 1}, options);
}

Result<SimReport> SimulatePack(std::span<const SimPart> parts, SimOptions options) {
  for (const SimPart& part : parts)
    TOK_RETURN_IF_ERROR(CheckLaunch(*part.kernel, part.arguments, part.extents));
  std::vector<TeamSimulator> simulators;
  simulators.reserve(parts.size());
  uint64_t teams = 0;
  uint32_t threads = 1;
  for (const SimPart& part : parts) {
    TeamSimulator& simulator = simulators.emplace_back(*part.kernel, options);
    std::vector<Bits> values = LaunchValues(*part.kernel, part.extents);
    std::vector<int64_t> grid;
    for (const SimProgram::Parallel& loop : simulator.program().grid)
      grid.push_back(static_cast<int64_t>(values[static_cast<size_t>(loop.extent)]));
    if (!simulator.CountTeams(std::move(grid)) || simulator.teams() > kMaxTeams - teams)
      return MakeError(ErrorCode::kKernelSteps,
                       fmt::format("kernel {}: more than {} teams", part.kernel->name, kMaxTeams));
    teams += simulator.teams();
    threads = std::max(threads, simulator.threads());
  }
  LaunchArrays arrays = ArraysOf(parts, simulators);
  SimMemory memory(arrays.kernel, arrays.arguments, arrays.copies, threads);
  std::vector<uint64_t> ends;  // of the teams of each part
  for (size_t i = 0; i < parts.size(); ++i) {
    uint64_t first = ends.empty() ? 0 : ends.back();
    simulators[i].Begin(memory, arrays.numbers[i], first, parts[i].extents);
    ends.push_back(first + simulators[i].teams());
  }
  for (TeamOrder order(teams, options); !order.IsDone(); order.Advance()) {
    auto at = static_cast<size_t>(std::ranges::upper_bound(ends, order.team()) - ends.begin());
    uint64_t first = at == 0 ? 0 : ends[at - 1];
    if (!simulators[at].RunTeam(order.team() - first)) return simulators[at].Fault();
  }
  SimReport report;
  for (const TeamSimulator& simulator : simulators) report.steps += simulator.steps();
  for (size_t i = 0; i < arrays.arguments.size(); ++i)
    report.unwritten.push_back(memory.Unwritten(static_cast<uint32_t>(i)));
  return report;
}

}  // namespace tokamak
