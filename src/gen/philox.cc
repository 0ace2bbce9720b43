// The CPU loop of a region with Philox random bits. One counter yields the bits of several adjacent
// elements, which are computed together and cached in registers until they are used:
//
//   for each chunk of elements (grid)
//     for each counter (lanes): its words
//     for each vector of elements, for each lane: all roots

#include <algorithm>

#include "gen/random_bits.h"
#include "gen/roots.h"

namespace tokamak {
namespace {

class PhiloxBuilder {
 public:
  PhiloxBuilder(const FusedRegion& region, const Instr& random, const Machine& machine,
                const std::string& name)
      : region_(region),
        random_(random),
        lanes_(machine.Lanes(32)),
        chunk_(lanes_ * ElementsPerPhiloxBlock(random)),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    int64_t count = random_.shape().ElementCount(), per = ElementsPerPhiloxBlock(random_);
    if (count % chunk_ != 0) return {std::nullopt, "its size is not a multiple of the chunk"};
    const Dims& dims = DomainOf(*region_.roots[0]).dims();
    ScalarType type = ComputeType(random_.shape().type());
    ArrayId words = b_.Local("words", type, Space::kRegisters, chunk_);
    b_.For("g", LoopRole::kGrid, b_.Index(count / chunk_), [&](Scalar g) {
      RandomStateWords state = emitter_.RandomState(random_);
      b_.For("c", LoopRole::kVector, b_.Index(lanes_), [&](Scalar c) {
        std::array<Element, kPhiloxWords> made =
            PhiloxBlock(b_, random_, state, g * b_.Index(lanes_) + c);
        for (int64_t i = 0; i < per; ++i)
          b_.Store(words, c * b_.Index(per) + b_.Index(i), made[static_cast<size_t>(i)][0]);
      });
      b_.For("v", LoopRole::kUnrolled, b_.Index(per), [&](Scalar v) {
        b_.For("l", LoopRole::kVector, b_.Index(lanes_), [&](Scalar l) {
          Scalar own = v * b_.Index(lanes_) + l, linear = g * b_.Index(chunk_) + own;
          Coordinates index = Delinearized(b_, linear, random_.shape().dims());
          emitter_.Bind(random_, 0, index, {b_.Read(words, own), {}});
          StoreRoots(b_, emitter_, region_, Delinearized(b_, linear, dims), linear);
        });
      });
    });
    return FinishRegionKernel(b_, emitter_, region_, count / chunk_, true);
  }

 private:
  const FusedRegion& region_;
  const Instr& random_;
  int64_t lanes_, chunk_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

}  // namespace

BuildOutcome BuildPhilox(const FusedRegion& region, const Machine& machine,
                         const std::string& name) {
  const Instr* random = nullptr;
  for (const Instr* instr : region.instrs) {
    if (instr->op() != Op::kRngBitGenerator || !IsPhilox(*instr)) continue;
    if (random != nullptr) return {std::nullopt, "it has two states"};
    random = instr;
  }
  if (random == nullptr) return {std::nullopt, "it has no such random bits"};
  if (std::string why = WhyNoLoopKernel(region); !why.empty()) return {std::nullopt, why};
  int64_t count = random->shape().ElementCount();
  for (const Instr* root : region.roots)
    if (IsSliceUpdate(*root) || root->shape().ElementCount() != count)
      return {std::nullopt, "its roots have another number of elements"};
  return PhiloxBuilder(region, *random, machine, name).Build();
}

}  // namespace tokamak
