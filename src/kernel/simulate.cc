#include "kernel/simulate.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "kernel/sim_blocks.h"

namespace tokamak {
namespace {

// The arrays of all kernels of a launch, arguments first.
struct LaunchArrays {
  Kernel kernel;  // only its arrays are used
  std::vector<SimArgument> arguments;
  std::vector<uint32_t> copies;
  std::vector<std::vector<uint32_t>> numbers;  // per kernel: indices of its arrays among them
};

LaunchArrays ArraysOf(std::span<const SimLaunch> entries,
                      std::span<const BlockSimulator> simulators) {
  LaunchArrays all;
  all.numbers.resize(entries.size());
  for (bool arguments : {true, false}) {
    for (size_t p = 0; p < entries.size(); ++p) {
      const Kernel& kernel = *entries[p].kernel;
      for (size_t i = 0; i < kernel.arrays.size(); ++i) {
        if ((i < kernel.ArgumentCount()) != arguments) continue;
        all.numbers[p].push_back(static_cast<uint32_t>(all.kernel.arrays.size()));
        all.kernel.arrays.push_back(kernel.arrays[i]);
        all.copies.push_back(simulators[p].program().copies[i]);
        if (arguments) all.arguments.push_back(entries[p].arguments[i]);
      }
    }
  }
  return all;
}

// The order in which the blocks of a launch run. A random order needs no table: it advances by a
// step that is coprime to the number of blocks.
class BlockOrder {
 public:
  BlockOrder(uint64_t blocks, const SimOptions& options) : blocks_(blocks) {
    if (!options.seed || blocks == 0) return;
    SplitMix64 draw(*options.seed);
    at_ = draw.Next() % blocks;
    do step_ = draw.Next() % blocks + 1;
    while (std::gcd(step_, blocks) != 1);
  }
  bool IsDone() const { return done_ == blocks_; }
  uint64_t block() const { return at_; }
  void Advance() {
    ++done_;
    at_ = (at_ + step_) % blocks_;
  }

 private:
  uint64_t blocks_, step_ = 1, at_ = 0, done_ = 0;
};

Error LaunchError(const Kernel& kernel, const std::string& what) {
  return MakeError(ErrorCode::kKernelLaunch, fmt::format("kernel {}: {}", kernel.name, what));
}

Status CheckLaunch(const Kernel& kernel, std::span<const SimArgument> arguments,
                   std::span<const int64_t> extents) {
  if (arguments.size() != kernel.ArgumentCount())
    return LaunchError(
        kernel, fmt::format("{} arguments, expected {}", arguments.size(), kernel.ArgumentCount()));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].elements < kernel.arrays[i].size)
      return LaunchError(
          kernel, fmt::format("argument {} has {} elements, it needs {}", kernel.arrays[i].name,
                              arguments[i].elements, kernel.arrays[i].size));
  if (extents.size() != kernel.extents.size())
    return LaunchError(
        kernel, fmt::format("{} extents, expected {}", extents.size(), kernel.extents.size()));
  for (size_t i = 0; i < extents.size(); ++i) {
    const LaunchExtent& extent = kernel.extents[i];
    if (extents[i] < extent.minimum || extents[i] > extent.maximum ||
        extents[i] % extent.multiple_of != 0)
      return LaunchError(kernel, fmt::format("extent {} is {}, it was built for {}..{}, multiples "
                                             "of {}",
                                             extent.name, extents[i], extent.minimum,
                                             extent.maximum, extent.multiple_of));
  }
  return Ok();
}

// Evaluates the values that depend on constants and launch extents only.
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
  SimLaunch entry{&kernel, arguments, extents};
  return SimulateHorizontal({&entry, 1}, options);
}

Result<SimReport> SimulateHorizontal(std::span<const SimLaunch> entries, SimOptions options) {
  for (const SimLaunch& entry : entries)
    TOK_RETURN_IF_ERROR(CheckLaunch(*entry.kernel, entry.arguments, entry.extents));
  std::vector<BlockSimulator> simulators;
  simulators.reserve(entries.size());
  uint64_t blocks = 0;
  uint32_t threads = 1;
  for (const SimLaunch& entry : entries) {
    BlockSimulator& simulator = simulators.emplace_back(*entry.kernel, options);
    std::vector<Bits> values = LaunchValues(*entry.kernel, entry.extents);
    std::vector<int64_t> grid;
    for (const SimProgram::Parallel& loop : simulator.program().grid)
      grid.push_back(static_cast<int64_t>(values[static_cast<size_t>(loop.extent)]));
    if (!simulator.CountBlocks(std::move(grid)) ||
        simulator.blocks() > kMaxSimulatedBlocks - blocks)
      return MakeError(
          ErrorCode::kKernelSteps,
          fmt::format("kernel {}: more than {} blocks", entry.kernel->name, kMaxSimulatedBlocks));
    blocks += simulator.blocks();
    threads = std::max(threads, simulator.threads());
  }
  LaunchArrays arrays = ArraysOf(entries, simulators);
  SimMemory memory(arrays.kernel, arrays.arguments, arrays.copies, threads);
  std::vector<uint64_t> ends;  // per kernel: end of its block numbers
  for (size_t i = 0; i < entries.size(); ++i) {
    uint64_t first = ends.empty() ? 0 : ends.back();
    simulators[i].Begin(memory, arrays.numbers[i], first, entries[i].extents);
    ends.push_back(first + simulators[i].blocks());
  }
  for (BlockOrder order(blocks, options); !order.IsDone(); order.Advance()) {
    auto at = static_cast<size_t>(std::ranges::upper_bound(ends, order.block()) - ends.begin());
    uint64_t first = at == 0 ? 0 : ends[at - 1];
    if (!simulators[at].SimulateBlock(order.block() - first)) return simulators[at].TakeError();
  }
  SimReport report;
  for (const BlockSimulator& simulator : simulators) report.steps += simulator.steps();
  for (size_t i = 0; i < arrays.arguments.size(); ++i)
    report.unwritten.push_back(memory.CountUnwritten(static_cast<uint32_t>(i)));
  return report;
}

}  // namespace tokamak
