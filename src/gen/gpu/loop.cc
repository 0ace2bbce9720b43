// The loop of a GPU: every element of the roots by itself. A thread takes a vector of neighbours,
// which is one access of 16 bytes where the arrays allow it; neighbouring threads take neighbouring
// vectors; a block takes several times as many as it has threads, all loads of a thread in flight.
// Coordinates come from divisions by constants, which are multiplications there.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kThreads = 256, kFewThreads = 64;
// Vectors of a thread, when there are enough for all multiprocessors many times over.
constexpr int64_t kUnroll = 2, kMuchWork = 16 * 2048;

class LoopBuilder {
 public:
  LoopBuilder(const Region& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        dims_(DomainOf(*region.roots[0]).dims()),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    int64_t count = ProductOf(dims_, 0, dims_.size());
    lanes_ = LanesFor(region_, machine_, count, count);
    vectors_ = count / lanes_;
    // The last dimensions that hold whole vectors.
    split_ = dims_.size();
    row_ = 1;
    while (split_ > 0 && (row_ == 1 || row_ % lanes_ != 0)) row_ *= dims_[--split_];
    int64_t threads = kThreads;
    while (threads > kFewThreads && vectors_ < threads * machine_.cores) threads /= 2;
    threads = std::min(threads, vectors_);
    int64_t unroll = vectors_ >= machine_.cores * kMuchWork ? kUnroll : 1;
    int64_t grid = CeilDiv(vectors_, threads * unroll);
    b_.For("block", LoopRole::kGrid, b_.Index(grid), [&](Scalar g) {
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        if (unroll == 1) return Vector(g * b_.Index(threads) + t);
        b_.For("u", LoopRole::kUnrolled, b_.Index(unroll), [&](Scalar u) {
          Vector(g * b_.Index(threads * unroll) + u * b_.Index(threads) + t);
        });
      });
    });
    BuildOutcome outcome = FinishLoop(b_, emitter_, region_, grid, /*exact=*/true);
    if (outcome.built) FinishKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  void Vector(Scalar vector) {
    b_.If(vector < b_.Index(vectors_), [&] {
      Dims outer(dims_.begin(), dims_.begin() + static_cast<int64_t>(split_));
      Dims inner(dims_.begin() + static_cast<int64_t>(split_), dims_.end());
      outer.push_back(row_ / lanes_);
      Coordinates at = Delinearized(b_, vector, outer);
      Scalar first = at.back() * b_.Index(lanes_);
      at.pop_back();
      ForLanes(b_, lanes_, [&](Scalar lane) {
        Coordinates all = at, rest = Delinearized(b_, first + lane, inner);
        all.insert(all.end(), rest.begin(), rest.end());
        StoreRoots(b_, emitter_, region_, all, vector * b_.Index(lanes_) + lane);
      });
    });
  }

  const Region& region_;
  const Machine& machine_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t lanes_ = 1, vectors_ = 1, row_ = 1;
  size_t split_ = 0;
};

}  // namespace

BuildOutcome BuildLoop(const Region& region, const Machine& machine, const std::string& name) {
  if (std::string why = WhyNoLoop(region); !why.empty()) return {std::nullopt, why};
  return LoopBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
