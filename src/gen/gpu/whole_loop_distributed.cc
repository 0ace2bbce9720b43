// GPU kernels for fused loops whose elements interact only through dots: recurrent networks. A
// block, or a thread-block cluster if one block has too few registers for the weights, runs some
// points (rows of the batch). Its threads distribute the elements of these points and keep their
// slices of the weights in registers for all iterations. The code of a dot is in
// gen/whole_loop_distributed.cc.

#include <algorithm>
#include <bit>

#include "cost/rates.h"
#include "cost/units.h"
#include "gen/gpu/gpu.h"
#include "gen/whole_loop.h"
#include "kernel/cluster.h"

namespace tokamak::gpu {
namespace {

// Elements per point, at least. Chosen: fewer do not fill a warp. Elements per warp, at most.
// Chosen: each keeps a row of weights in registers.
constexpr int64_t kMinElements = 32, kMaxUnits = 8;
// Maximum sums per lane; registers per thread for everything but weights and sums; maximum
// registers per thread. Chosen: weights, sums and the rest stay below the CUDA limit of 255 without
// spills.
constexpr int64_t kMaxSums = 64, kOtherRegisters = 48, kDistributedMaxRegisters = 240;
// Copies of the carried values in shared memory: one is read while the next is written (structure
// of gen/whole_loop_distributed.cc). Bytes of a sum, which is an f32.
constexpr int64_t kCarriedCopies = 2, kSumBytes = kRegisterBytes;
// Cost model of one iteration. Instructions per warp besides multiply-adds and reductions, and
// cycles of exposed latency: estimates. kSchedulers: warp schedulers per SM (hardware).
constexpr double kOtherInstrs = 200, kLatencyCycles = 300;
constexpr double kSchedulers = 4;
// Microseconds per clock cycle, about 1.8 GHz; GPUs have similar clocks. The model counts cycles
// because the rates in machine files are fitted to kernels with many threads: with those it picks
// slower shapes (RNN 48x192: 0.42 ms instead of 0.36).
constexpr double kCycleMicros = 0.00055;
// Cycles that a shuffle occupies the shared-memory unit, which all warps of an SM share, and the
// fraction of that time which nothing overlaps. Estimates.
constexpr double kShuffleCycles = 2, kExposedFraction = 0.5;
// Fraction that a second cluster on the same SMs adds to the time of an iteration. An estimate.
constexpr double kSharedSmPenalty = 0.5;
// Elements per shared-memory load of a lane (hardware: 16 bytes of f32); bytes included in
// cluster_us, with which calibration measured it.
constexpr double kWide = 4, kClusterBarrierBytes = 4096;

struct ThreadMapShape {
  int64_t blocks = 1, threads = 0;  // per cluster; per block
  int64_t units = 1, rows = 1;      // elements and points per warp
};

// Chooses how elements and points are distributed over clusters, blocks and warps.
class CooperativeLoopTiler {
 public:
  CooperativeLoopTiler(const WholeLoopRegion& region, const Machine& machine)
      : region_(region), machine_(machine), rates_(RatesOf(machine)) {}

  BuildOutcome Build(const std::string& name) {
    if (std::string why = OnIteration(); !why.empty()) return {std::nullopt, why};
    std::optional<ThreadMapShape> shape = Choose();
    if (!shape) return {std::nullopt, "its weights exceed the registers of a cluster"};
    return Write(*shape, name);
  }

 private:
  std::string OnIteration() {
    const LoopIndependence& form = region_.independence;
    if (!region_.trip_count) return "its trip count is unknown";
    for (size_t i = 0; i < form.carries.size(); ++i) {
      const CarryForm& carry = form.carries[i];
      if (carry.kind != CarryKind::kHeld || carry.IsUniform()) continue;
      int64_t own = 1;
      for (size_t d = 0; d < carry.axes.size(); ++d)
        if (carry.axes[d] < 0) own *= region_.loop.init(i)->shape().dim(d);
      elements_ = std::max(elements_, own);
    }
    if (elements_ < kMinElements) return "it carries too few elements per point";
    for (const auto& [dot, axes] : form.dots)
      if (std::string why = Add(*dot); !why.empty()) return why;
    if (products_.empty()) return "it contains no dot";
    return "";
  }

  std::string Add(const Instr& dot) {
    std::optional<WholeLoopMatVec> product = MatVecOf(region_.independence, dot);
    const DotAttrs& attrs = dot.attrs<DotAttrs>();
    ScalarType sum = ComputeType(AccumulatorElementType(dot.shape().type()));
    if (!product || dot.parent() != region_.loop.body || !attrs.lhs_batch.empty() ||
        BytesOf(sum) != 4 || !IsFloat(sum))
      return "it contains a dot of another form";
    if (std::string why = WhyNotInvariantMatrix(region_, *product); !why.empty()) return why;
    if (product->terms % elements_ != 0 || product->results % elements_ != 0 ||
        product->terms % kWarpSize != 0)
      return "its dots have other sizes than its carried values";
    products_.push_back(*product);
    return "";
  }

  // The candidate with the lowest cost per iteration.
  std::optional<ThreadMapShape> Choose() const {
    std::optional<ThreadMapShape> best;
    double least = 0;
    int64_t points = region_.independence.Points();
    for (int64_t blocks = 1; blocks <= MostBlocks(); blocks *= 2)
      for (int64_t units = 1; units <= kMaxUnits; units *= 2)
        for (int64_t rows = 1; rows * units <= kWarpSize && rows < 2 * points; rows *= 2) {
          if (elements_ % (units * blocks) != 0) continue;
          ThreadMapShape shape{blocks, elements_ / units / blocks * kWarpSize, units, rows};
          std::optional<double> micros = MicrosOf(shape);
          if (!micros || (best && *micros >= least)) continue;
          best = shape;
          least = *micros;
        }
    return best;
  }

  int64_t MostBlocks() const {
    return std::min(static_cast<int64_t>(rates_.cluster_blocks), kMaxClusterBlocks);
  }

  // Time of one iteration over all clusters; nullopt if registers or shared memory do not suffice.
  std::optional<double> MicrosOf(const ThreadMapShape& shape) const {
    if (shape.threads > kMaxThreadsPerBlock) return std::nullopt;
    // One block suffices: no cluster.
    if (shape.blocks > 1 && shape.threads * shape.blocks <= kMaxThreadsPerBlock)
      return std::nullopt;
    int64_t thread_registers = 0, sums = 0, bytes = 0;
    double instrs = kOtherInstrs, shared = 0;
    int64_t positions = shape.units * shape.rows;
    for (const WholeLoopMatVec& product : products_) {
      int64_t each = product.results / elements_,
              held = shape.units * each * product.terms / kWarpSize;
      thread_registers += held;
      sums = std::max(sums, positions * each);
      bytes += kSumBytes * shape.rows * product.terms;
      double read = static_cast<double>(product.terms / kWarpSize * shape.rows);
      auto adds = static_cast<double>(
          each * (positions - 1 + std::countr_zero(static_cast<uint64_t>(kWarpSize / positions))));
      instrs += static_cast<double>(held * shape.rows) + read / kWide + 2 * adds;
      shared += read + kShuffleCycles * adds;
    }
    thread_registers += sums + kOtherRegisters;
    auto beside = static_cast<int64_t>(rates_.registers) / (thread_registers * shape.threads);
    if (sums > kMaxSums || thread_registers > kDistributedMaxRegisters || beside == 0 ||
        static_cast<double>(kCarriedCopies * bytes) > rates_.shared_bytes)
      return std::nullopt;
    double warps = static_cast<double>(shape.threads / kWarpSize);
    double busy = std::ceil(warps / kSchedulers) * instrs + kExposedFraction * warps * shared;
    return ((busy + kLatencyCycles) * kCycleMicros + ClusterBarrierUs(shape, bytes)) *
           Waves(shape, beside);
  }

  // Barriers of all dots; `bytes`: received by each block.
  double ClusterBarrierUs(const ThreadMapShape& shape, int64_t bytes) const {
    auto count = static_cast<double>(products_.size());
    if (shape.blocks == 1) return count * rates_.barrier_us;
    double more = static_cast<double>(bytes) - count * kClusterBarrierBytes;
    return count * rates_.cluster_us + more / rates_.cluster_bytes_ns / kNsPerUs;
  }

  // Time of all clusters relative to one cluster alone; `beside` clusters run concurrently on the
  // same SMs.
  double Waves(const ThreadMapShape& shape, int64_t beside) const {
    int64_t cores = machine_.cores;
    if (shape.blocks > 1 && rates_.cluster_sms > 0)
      cores = std::min(cores, static_cast<int64_t>(rates_.cluster_sms));
    int64_t clusters = CeilDiv(region_.independence.Points(), shape.rows);
    int64_t at_once = std::max<int64_t>(cores / shape.blocks, 1);
    int64_t layers = CeilDiv(clusters, at_once) * CeilDiv(shape.blocks, cores);
    auto waves = static_cast<double>(CeilDiv(layers, beside));
    return waves * (1 + kSharedSmPenalty * static_cast<double>(std::min(layers, beside) - 1));
  }

  BuildOutcome Write(const ThreadMapShape& shape, const std::string& name) const {
    KernelBuilder b(name, Dialect::kGpu);
    WholeLoopKernel kernel(b, region_);
    int64_t count = region_.independence.Points(), grid = CeilDiv(count, shape.rows);
    int64_t same = kWarpSize / (shape.units * shape.rows);  // lanes per element
    auto thread = [&](Scalar g, Scalar block, Scalar t) {
      Scalar lane = t % b.Index(kWarpSize), position = lane / b.Index(same);
      Scalar warp = block * b.Index(shape.threads / kWarpSize) + t / b.Index(kWarpSize);
      Scalar first = warp * b.Index(shape.units), row = position % b.Index(shape.rows);
      Scalar element = first + position / b.Index(shape.rows);
      Scalar member = lane % b.Index(same);
      kernel.SetThreadGroup(
          {.threads = same, .points = 1, .member = member, .point_in_block = b.Index(0)});
      kernel.SetThreadMapping({.elements_per_point = elements_,
                               .warp_elements = shape.units,
                               .warp_points = shape.rows,
                               .element = element,
                               .first_element = first,
                               .point_in_block = row,
                               .lane = lane,
                               .iteration = {}});
      // All threads must reach the barriers: the last point may be run several times.
      Scalar wanted = g * b.Index(shape.rows) + row, linear = LesserOf(wanted, b.Index(count - 1));
      if (count % shape.rows != 0) kernel.SetStorePredicate(wanted < b.Index(count));
      kernel.Run(Delinearized(b, linear, region_.independence.sizes),
                 (linear == b.Index(0)) & (element == b.Index(0)) & (member == b.Index(0)));
    };
    b.For("cluster", LoopRole::kGrid, b.Index(grid), [&](Scalar g) {
      auto threads = [&](Scalar block) {
        b.For("t", LoopRole::kThread, b.Index(shape.threads),
              [&](Scalar t) { thread(g, block, t); });
      };
      if (shape.blocks == 1) return threads(b.Index(0));
      b.For("block", LoopRole::kThread, b.Index(shape.blocks), threads);
    });
    return kernel.Finish(grid, /*writes_once=*/false);
  }

  const WholeLoopRegion& region_;
  const Machine& machine_;
  const Rates& rates_;
  int64_t elements_ = 0;
  std::vector<WholeLoopMatVec> products_;
};

}  // namespace

BuildOutcome BuildDistributedWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                                       const std::string& name) {
  return CooperativeLoopTiler(region, machine).Build(name);
}

}  // namespace tokamak::gpu
