// GPU sorts of short lines: one thread per line, or per few adjacent lines, with all elements in
// registers (sorting_network.h). Lines along a major dimension are read coalesced; of lines along
// the minor dimension a thread loads as many as form whole vectors.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/sorting_network.h"

namespace tokamak::gpu {
namespace {

// Registers for all lines of a thread (a single line may need more), and maximum lines per thread.
// Chosen.
constexpr int64_t kNetworkMaxRegisters = 32;
constexpr int64_t kMaxLines = 4;

class NetworkSortBuilder {
 public:
  NetworkSortBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        sort_(LineSortOf(*region.roots[0])),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    Schedule();
    SortingNetwork network(b_, emitter_, sort_, vectors_);
    int64_t own = vectors_ ? vectors_->lines : lanes_, vectors = sort_.lines / own;
    int64_t threads = BlockSizeFor(vectors, kBlockThreads, kFewBlockThreads, machine_);
    int64_t blocks = ForThreads(b_, vectors, threads, [&](Scalar vector) {
      Scalar inside = LesserOf(vector, b_.Index(vectors - 1));
      ForLanes(b_, lanes_, [&](Scalar lane) { network.Sort(inside * b_.Index(own) + lane); });
    });
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, blocks, /*writes_once=*/false);
    if (outcome.built) FinalizeGpuKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  void Schedule() {
    int64_t inner = ProductOf(sort_.dims, sort_.along + 1, sort_.dims.size());
    int64_t count = sort_.lines * sort_.length;
    int64_t thread_registers = SortingNetwork::RegistersFor(sort_);
    if (inner > 1) {
      lanes_ = VectorWidthFor(region_, machine_, inner, count);
      while (lanes_ > 1 && lanes_ * thread_registers > kNetworkMaxRegisters) lanes_ /= 2;
      return;
    }
    int64_t lines = 1, best = VectorWidthFor(region_, machine_, sort_.lines * sort_.length, count);
    auto vector_width = [&] {
      return VectorWidthFor(region_, machine_, lines * sort_.length, count);
    };
    while (vector_width() < best && lines < kMaxLines && sort_.lines % (2 * lines) == 0 &&
           2 * lines * thread_registers <= kNetworkMaxRegisters)
      lines *= 2;
    vectors_ = {lines, vector_width()};
  }

  const FusedRegion& region_;
  const Machine& machine_;
  LineSort sort_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t lanes_ = 1;                               // lines per thread along a major dimension
  std::optional<SortingNetwork::Vectors> vectors_;  // lines along the minor dimension
};

}  // namespace

BuildOutcome BuildNetworkSort(const FusedRegion& region, const Machine& machine,
                              const std::string& name) {
  return NetworkSortBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
