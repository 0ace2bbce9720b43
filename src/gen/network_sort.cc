// Sorts of short lines in registers (sorting_network.h), for CPUs and GPUs.
//
//   CPU, and lines along a major dimension: adjacent lines are vector lanes
//   GPU, lines along the minor dimension: a thread loads as many adjacent lines as form whole
//   vectors, and sorts them one after another

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/sort_schedule.h"
#include "gen/sorting_network.h"

namespace tokamak {
namespace {

class NetworkSortBuilder {
 public:
  NetworkSortBuilder(const FusedRegion& region, const SortSchedule& schedule,
                     const Machine& machine, const std::string& name)
      : region_(region),
        schedule_(schedule),
        sort_(LineSortOf(*region.roots[0])),
        is_gpu_(machine.is_gpu()),
        b_(name, is_gpu_ ? Dialect::kGpu : Dialect::kCpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    std::optional<SortingNetwork::Vectors> vectors;
    int64_t inner = ProductOf(sort_.dims, sort_.along + 1, sort_.dims.size());
    bool lines_are_lanes = !is_gpu_ || inner > 1;
    if (!lines_are_lanes) vectors = {schedule_.lines, schedule_.vector};
    SortingNetwork network(b_, emitter_, sort_, vectors);
    int64_t lanes = lines_are_lanes ? schedule_.lines : 1;
    auto sort = [&](Scalar first) {
      gpu::ForLanes(b_, lanes, [&](Scalar lane) { network.Sort(first + lane); });
    };
    int64_t tasks = is_gpu_ ? ForThreads(sort) : ForVectors(inner > 1 ? inner : sort_.lines, sort);
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, tasks, /*writes_once=*/false);
    if (is_gpu_ && outcome.built) gpu::FinalizeGpuKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  // Calls body(first line). The lines of a thread divide the lines.
  template <typename Body>
  int64_t ForThreads(Body&& body) {
    int64_t own = sort_.lines / schedule_.lines;
    return gpu::ForThreads(b_, own, schedule_.threads, [&](Scalar index) {
      body(LesserOf(index, b_.Index(own - 1)) * b_.Index(schedule_.lines));
    });
  }

  // The last vector of a run of adjacent lines ends with the run and may overlap.
  template <typename Body>
  int64_t ForVectors(int64_t run, Body&& body) {
    int64_t lanes = schedule_.lines, vectors = CeilDiv(run, lanes);
    int64_t grid = sort_.lines / run * vectors;
    b_.For("g", LoopRole::kGrid, b_.Index(grid), [&](Scalar g) {
      Scalar first = LesserOf(g % b_.Index(vectors) * b_.Index(lanes), b_.Index(run - lanes));
      body(g / b_.Index(vectors) * b_.Index(run) + first);
    });
    return grid;
  }

  const FusedRegion& region_;
  SortSchedule schedule_;
  LineSort sort_;
  bool is_gpu_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

}  // namespace

BuildOutcome BuildNetworkSort(const FusedRegion& region, const SortSchedule& schedule,
                              const Machine& machine, const std::string& name) {
  return NetworkSortBuilder(region, schedule, machine, name).Build();
}

}  // namespace tokamak
