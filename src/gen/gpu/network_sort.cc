// Sorts of short lines on a GPU: a thread for each line, or for neighbouring ones, all elements in
// registers (line_network.h). Lines across rows are read side by side; of those along rows a thread
// reads as many as are vectors together.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/line_network.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kNetworkThreads = 256, kNetworkFewThreads = 64;
// Registers of all lines of a thread; of one line there may be more.
constexpr int64_t kNetworkMostWords = 32;
constexpr int64_t kMostLines = 4;

class NetworkSortBuilder {
 public:
  NetworkSortBuilder(const Region& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        sort_(LineSortOf(*region.roots[0])),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    Schedule();
    LineNetwork network(b_, emitter_, sort_, vectors_);
    int64_t own = vectors_ ? vectors_->lines : lanes_, vectors = sort_.lines / own;
    int64_t threads = ThreadsFor(vectors, kNetworkThreads, kNetworkFewThreads, machine_);
    int64_t blocks = ForThreads(b_, vectors, threads, [&](Scalar vector) {
      Scalar inside = LesserOf(vector, b_.Index(vectors - 1));
      ForLanes(b_, lanes_, [&](Scalar lane) { network.Sort(inside * b_.Index(own) + lane); });
    });
    BuildOutcome outcome = FinishLoop(b_, emitter_, region_, blocks, /*exact=*/false);
    if (outcome.built) FinishKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  void Schedule() {
    int64_t inner = ProductOf(sort_.dims, sort_.along + 1, sort_.dims.size());
    int64_t count = sort_.lines * sort_.length;
    int64_t words = LineNetwork::WordsOf(sort_);
    if (inner > 1) {
      lanes_ = LanesFor(region_, machine_, inner, count);
      while (lanes_ > 1 && lanes_ * words > kNetworkMostWords) lanes_ /= 2;
      return;
    }
    int64_t lines = 1, best = LanesFor(region_, machine_, sort_.lines * sort_.length, count);
    auto at_once = [&] { return LanesFor(region_, machine_, lines * sort_.length, count); };
    while (at_once() < best && lines < kMostLines && sort_.lines % (2 * lines) == 0 &&
           2 * lines * words <= kNetworkMostWords)
      lines *= 2;
    vectors_ = {lines, at_once()};
  }

  const Region& region_;
  const Machine& machine_;
  LineSort sort_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t lanes_ = 1;                            // lines across rows of a thread
  std::optional<LineNetwork::Vectors> vectors_;  // those along rows
};

}  // namespace

BuildOutcome BuildNetworkSort(const Region& region, const Machine& machine,
                              const std::string& name) {
  return NetworkSortBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
