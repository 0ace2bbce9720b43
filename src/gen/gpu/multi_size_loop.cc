// GPU loops over roots of different sizes: the smallest, and others whose size is a multiple of it,
// such as a concatenation of rows next to a value computed from one row. A thread takes a vector of
// adjacent elements of the smallest root and computes everything stacked there: common values are
// computed once, and the operand of a concatenate is known at compile time.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

// Elements per element of the smallest root. Chosen: bounds the code.
constexpr int64_t kMaxStacked = 32;

int64_t CountOf(const Instr& root) {
  return root.shape().ElementCount();
}

int64_t SmallestOf(const FusedRegion& region) {
  int64_t count = INT64_MAX;
  for (const Instr* root : region.roots) count = std::min(count, CountOf(*root));
  return count;
}

class StackedBuilder {
 public:
  StackedBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region), machine_(machine), b_(name, Dialect::kGpu), emitter_(b_, region) {}

  BuildOutcome Build() {
    count_ = SmallestOf(region_);
    lanes_ = VectorWidthFor(region_, machine_, count_, count_);
    int64_t vectors = count_ / lanes_;
    int64_t threads = BlockSizeFor(vectors, kBlockThreads, kFewBlockThreads, machine_);
    int64_t grid = ForThreads(b_, vectors, threads, [&](Scalar vector) {
      Scalar inside = LesserOf(vector, b_.Index(vectors - 1));
      ForLanes(b_, lanes_, [&](Scalar lane) { Element(inside * b_.Index(lanes_) + lane); });
    });
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, grid, /*writes_once=*/true);
    if (outcome.built) FinalizeGpuKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  // Computes everything stacked at one index, then stores it.
  void Element(Scalar index) {
    struct Ready {
      const Instr* root;
      Scalar linear;
      tokamak::Element value;
    };
    std::vector<Ready> ready;
    for (const Instr* root : region_.roots) {
      for (int64_t i = 0; i < CountOf(*root) / count_; ++i) {
        Scalar linear = b_.Index(i * count_) + index;
        Coordinates at = Delinearized(b_, linear, root->shape().dims());
        ready.push_back({root, linear, emitter_.At(*root, at)});
      }
    }
    for (const Ready& r : ready) emitter_.StoreLinear(*r.root, 0, r.linear, r.value);
  }

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  int64_t count_ = 1, lanes_ = 1;
};

}  // namespace

std::string WhyNotMultiSize(const FusedRegion& region) {
  int64_t stacked = 0;
  for (const Instr* root : region.roots)
    if (!root->shape().IsArray() || IsSliceUpdate(*root))
      return "roots of several sizes must be arrays";
  int64_t count = SmallestOf(region);
  for (const Instr* root : region.roots) {
    if (CountOf(*root) % count != 0) return "its roots have different numbers of elements";
    stacked += CountOf(*root) / count;
  }
  return stacked > kMaxStacked ? "its roots have very different numbers of elements" : "";
}

BuildOutcome BuildMultiSizeLoop(const FusedRegion& region, const Machine& machine,
                                const std::string& name) {
  if (std::string why = WhyNotMultiSize(region); !why.empty()) return {std::nullopt, why};
  return StackedBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
