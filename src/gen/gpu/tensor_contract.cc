// The kernel of a dot by asynchronous multiplies (tensor_tiling.h has the structure and the terms):
//
//   producer (tensor_operands.cc)             warpgroup
//     for each tile of the block                for each tile of the block
//       for each panel along K                    sums = 0
//         wait empty[stage]                       for each panel along K
//         expect the bytes of both operands         wait full[stage]
//         copy both to the stage                    start sums += lhs * rhs of the stage
//                                                   wait for the multiply of the panel before
//                                                   arrive at empty of that panel's stage
//                                                 compute and store the consumers
//                                                 (tensor_results.h)
//
// Warpgroups that alternate have every second tile each. One waits for its `turn` before it waits
// for panels: the phases of `full` are numbered modulo two, so it must not be two phases behind.
// The copies run ahead by `stages` panels, over the ends of tiles, so while the warpgroups store
// the results of a tile, the panels of the next one are already coming. Panels beyond the operands
// are zeros.

#include "gen/gpu/tensor_contract.h"

#include "gen/dot_operand.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/tensor_epilogue.h"
#include "gen/gpu/tensor_operands.h"
#include "gen/gpu/tensor_results.h"
#include "gen/gpu/warp_roles.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kWarpsOfGroup = kWarpgroupThreads / kWarpSize;

class TensorContract {
 public:
  TensorContract(const FusedRegion& region, const Instr& dot, const TensorTiling& tiling,
                 const std::string& name)
      : region_(region),
        dot_(dot),
        dot_dims_(dot),
        t_(tiling),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        operands_(b_, emitter_, region, dot, dot_dims_, tiling),
        results_({b_, emitter_, region, dot, dot_dims_, tiling}) {}

  BuildOutcome Build() {
    Declare();
    BuildOutcome outcome = BuildWarpRoles(
        b_, emitter_, region_, {t_.blocks, t_.threads()},
        [&](Scalar block, Scalar t) {
          block_ = block;
          thread_ = t;
        },
        [&](bool produces) { produces ? operands_.Produce(block_, thread_) : Consume(); });
    if (outcome.built && !t_.window) FindResultAliases(region_, dot_, *outcome.built);
    return outcome;
  }

 private:
  void Declare() {
    operands_.Declare();
    sums_ = b_.Local("sums", t_.form.SumType(), Space::kRegisters, t_.AccumulatorsPerThread());
    if (t_.Alternates()) turn_ = b_.Mbarriers("turn", t_.warpgroups, kWarpsOfGroup);
    results_.Declare();
  }

  // Calls body(number of the tile among those of the block) for each tile of the block, with its
  // position set; for every `step`-th tile from `first` on.
  template <typename Body>
  void ForTiles(Scalar first, int64_t step, Body&& body) {
    Scalar count = (b_.Index(t_.tiles() + t_.blocks - 1) - block_) / b_.Index(t_.blocks);
    if (step > 1) count = (count + b_.Index(step - 1) - first) / b_.Index(step);
    b_.For("i", LoopRole::kSerial, count, [&](Scalar j) {
      Scalar i = step > 1 ? j * b_.Index(step) + first : j;
      position_ = TilePositionOf(t_, dot_dims_, block_ + i * b_.Index(t_.blocks));
      body(i, j);
    });
  }

  // ---- warpgroups

  void Consume() {
    if (t_.warpgroups > 1)
      b_.LimitRegisters(ConsumerRegisters(t_.consumers(), operands_.ProducerRegisters()));
    consumer_ = ConsumerOf(b_, thread_);
    lane_ = consumer_ % b_.Index(kWarpSize);
    group_ = consumer_ / b_.Index(kWarpgroupThreads);
    bool alternates = t_.Alternates();
    ForTiles(alternates ? group_ : b_.Index(0), alternates ? t_.warpgroups : 1,
             [&](Scalar i, Scalar j) {
               results_.Begin({position_, j}, consumer_, GroupOfTile());
               // The turn for tile j is the phase j of group 1, and j - 1 of group 0.
               if (alternates)
                 b_.Wait(turn_, group_, (j + b_.Index(1) - group_) % b_.Index(t_.warpgroups));
               MakeSums(i);
               if (emitter_.failure().empty()) results_.Store(sums_);
             });
    results_.Finish(consumer_);
  }

  void MakeSums(Scalar i) {
    b_.For("s", LoopRole::kUnrolled, b_.Index(t_.AccumulatorsPerThread()),
           [&](Scalar s) { b_.Store(sums_, s, b_.Constant(t_.form.SumType(), 0)); });
    operands_.Multiply(sums_, i, GroupOfTile(), lane_, [&] {
      if (!t_.Alternates()) return;
      b_.Barrier(BarrierScope::kWarp);
      b_.If(lane_ == b_.Index(0), [&] { b_.Arrive(turn_, b_.Index(t_.warpgroups - 1) - group_); });
    });
  }

  // The number of the warpgroup among those that share the tile.
  Scalar GroupOfTile() { return t_.Alternates() ? b_.Index(0) : group_; }

  const FusedRegion& region_;
  const Instr& dot_;
  DotDimensions dot_dims_;
  const TensorTiling& t_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  TensorOperands operands_;
  TensorResults results_;
  ArrayId sums_{}, turn_{};
  DotPosition position_;
  Scalar block_, thread_, consumer_, group_, lane_;
};

}  // namespace

BuildOutcome BuildTensorContract(const FusedRegion& region, const Instr& dot,
                                 const TensorTiling& tiling, const std::string& name) {
  return TensorContract(region, dot, tiling, name).Build();
}

}  // namespace tokamak::gpu
