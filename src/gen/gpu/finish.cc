#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/gpu/used_values.h"
#include "kernel/range.h"

namespace tokamak::gpu {
namespace {

// Bytes. Every device allocation and every value in an arena is aligned to this. Chosen: a multiple
// of the widest access (16 bytes) and of two memory sectors, at little padding.
constexpr int64_t kAlignment = 64;
// Elements of an access, 16 bytes of 2-byte elements (hardware).
constexpr int64_t kMaxVectorWidth = 8;
// Operations per element in units of ops.def above which vectors have at most kVectorOfManyFlops
// elements. Chosen: each lane needs registers of its own, and arithmetic, not memory, is the limit.
constexpr int64_t kManyFlops = 64, kVectorOfManyFlops = 2;

bool IndicesFit32(const Kernel& kernel) {
  UsedValues used(kernel);
  RangeTable ranges;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (!used[i] || kernel.nodes[i].type != ScalarType::kIndex) continue;
    Range range = ranges.Of(kernel, ValueId{static_cast<uint32_t>(i)});
    if (range.low < INT32_MIN || range.high > INT32_MAX) return false;
  }
  return true;
}

}  // namespace

int64_t VectorWidthFor(const FusedRegion& region, const Machine& machine, int64_t row_length,
                       int64_t count) {
  int64_t bytes = 1, flops = 0;
  auto look = [&](const Shape& shape) {
    if (shape.ElementCount() >= count) bytes = std::max(bytes, BytesOf(StorageType(shape.type())));
  };
  for (const Instr* input : region.inputs) look(input->shape());
  for (const Instr* root : region.roots)
    for (const Shape& part : ResultShapesOf(root->shape())) look(part);
  for (const Instr* instr : region.instrs) flops += instr->info().flops_per_element;
  int64_t lanes = std::min(machine.Lanes(8 * bytes), kMaxVectorWidth);
  if (flops > kManyFlops) lanes = std::min(lanes, kVectorOfManyFlops);
  while (row_length % lanes != 0) lanes /= 2;
  return lanes;
}

int64_t CeilPowerOfTwo(int64_t x) {
  int64_t power = 1;
  while (power < x) power *= 2;
  return power;
}

int64_t BlockSizeFor(int64_t count, int64_t max_threads, int64_t min_threads,
                     const Machine& machine) {
  int64_t threads = max_threads;
  while (threads > min_threads && count < threads * machine.cores) threads /= 2;
  return std::min(threads, count);
}

void FinalizeGpuKernel(Kernel& kernel) {
  for (size_t i = 0; i < kernel.ArgumentCount(); ++i)
    kernel.arrays[i].alignment = std::max(kernel.arrays[i].alignment, kAlignment);
  kernel.index_bits = IndicesFit32(kernel) ? 32 : 64;
}

BuildOutcome FinishBlockKernel(KernelBuilder& b, const ElementEmitter& emitter,
                               const FusedRegion& region, int64_t grid) {
  if (!emitter.failure().empty()) return {std::nullopt, emitter.failure()};
  BuiltKernel built;
  built.grid = grid;
  built.kernel = b.Finish();
  FinalizeGpuKernel(built.kernel);
  built.arguments = ArgumentsOf(region);
  return {std::move(built), ""};
}

}  // namespace tokamak::gpu
