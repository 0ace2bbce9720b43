// A while as one kernel of a GPU whose elements meet in products alone: recurrent networks. A team
// runs some places (rows of a batch), and its threads share out their elements: several blocks, a
// cluster, where one has too few registers for the matrices.

#include <algorithm>
#include <bit>

#include "cost/rates.h"
#include "gen/gpu/gpu.h"
#include "gen/rounds.h"
#include "kernel/cluster.h"

namespace tokamak::gpu {
namespace {

// Fewer elements than this a place are not worth a warp's while.
constexpr int64_t kLeastElements = 32;
// Sums of a lane; registers of a thread for all but matrices and sums.
constexpr int64_t kMostSums = 64, kOtherWords = 48, kSpreadMostWords = 240;
// Instructions of a warp's round that neither multiply nor add up, and cycles in which it waits for
// itself.
constexpr double kOtherInstrs = 200, kWaits = 300;
constexpr double kSchedulers = 4;
// The rates of machine files are fitted to kernels of many threads; here single cycles count, and
// GPUs have much the same.
constexpr double kCycleMicros = 0.00055;
// Cycles in which the unit that all warps share for team memory has one shuffle; how much of its
// time nothing else fills.
constexpr double kShuffleCycles = 2, kAlone = 0.5;
// What a team that shares its multiprocessors with another one adds to the time of a round.
constexpr double kBeside = 0.5;
// Elements that a lane reads at once, at best; bytes of which cluster_us knows.
constexpr double kWide = 4, kBytesOfMeeting = 4096;

struct SpreadShape {
  int64_t blocks = 1, threads = 0;  // of a team; of a block
  int64_t units = 1, rows = 1;      // elements and places of a warp
};

// Whether a value is the same in all rounds and for all places, and cheap to look up.
bool IsFixed(const WhileLoop& loop, const IndependentLoop& form, const Instr& value) {
  if (value.op() == Op::kConstant) return true;
  if (value.op() == Op::kParameter) {
    for (size_t i = 0; i < loop.size(); ++i)
      if (loop.in_body(i) == &value) return form.carries[i].kind == CarryKind::kStays;
    return false;
  }
  bool moves = value.op() == Op::kTranspose || value.op() == Op::kReshape ||
               value.op() == Op::kSlice || value.op() == Op::kConvert;
  return moves && IsFixed(loop, form, *value.operand(0));
}

// What is spread over a team.
class Spreader {
 public:
  Spreader(const RoundsRegion& region, const Machine& machine)
      : region_(region), machine_(machine), rates_(RatesOf(machine)) {}

  BuildOutcome Build(const std::string& name) {
    if (std::string why = Look(); !why.empty()) return {std::nullopt, why};
    std::optional<SpreadShape> shape = Choose();
    if (!shape) return {std::nullopt, "its matrices are more than the registers of a cluster hold"};
    return Write(*shape, name);
  }

 private:
  std::string Look() {
    const IndependentLoop& form = region_.form;
    if (!region_.rounds) return "its rounds are not known";
    for (size_t i = 0; i < form.carries.size(); ++i) {
      const CarryForm& carry = form.carries[i];
      if (carry.kind != CarryKind::kHeld || carry.IsShared()) continue;
      int64_t own = 1;
      for (size_t d = 0; d < carry.axes.size(); ++d)
        if (carry.axes[d] < 0) own *= region_.loop.init(i)->shape().dim(d);
      elements_ = std::max(elements_, own);
    }
    if (elements_ < kLeastElements) return "it carries few elements a place";
    for (const auto& [dot, axes] : form.dots)
      if (std::string why = Add(*dot); !why.empty()) return why;
    if (products_.empty()) return "it multiplies nothing";
    return "";
  }

  std::string Add(const Instr& dot) {
    std::optional<RoundsProduct> product = LargeProductOf(region_.form, dot);
    const DotAttrs& attrs = dot.attrs<DotAttrs>();
    ScalarType sum = ComputeType(WideType(dot.shape().type()));
    if (!product || dot.parent() != region_.loop.body || !attrs.lhs_batch.empty() ||
        BytesOf(sum) != 4 || !IsFloat(sum))
      return "a product in it is of another kind";
    size_t from = product->vector == 0
                      ? dot.operand(0)->shape().dims().size() - attrs.lhs_contracting.size()
                      : 0;
    size_t to = product->vector == 0
                    ? product->axes->size()
                    : dot.operand(0)->shape().dims().size() - attrs.lhs_contracting.size();
    for (size_t d = from; d < to; ++d)
      if ((*product->axes)[d] >= 0) return "the matrix of a product differs by place";
    if (!IsFixed(region_.loop, region_.form, *dot.operand(1 - product->vector)))
      return "the matrix of a product changes";
    if (product->taps % elements_ != 0 || product->sums % elements_ != 0 ||
        product->taps % kWarp != 0)
      return "products have other sizes than what it carries";
    products_.push_back(*product);
    return "";
  }

  // The cheapest; what a round takes decides.
  std::optional<SpreadShape> Choose() const {
    std::optional<SpreadShape> best;
    double least = 0;
    int64_t places = region_.form.Places();
    for (int64_t blocks = 1; blocks <= MostBlocks(); blocks *= 2)
      for (int64_t units : {1, 2, 4, 8})
        for (int64_t rows = 1; rows * units <= kWarp && rows < 2 * places; rows *= 2) {
          if (elements_ % (units * blocks) != 0) continue;
          SpreadShape shape{blocks, elements_ / units / blocks * kWarp, units, rows};
          std::optional<double> micros = MicrosOf(shape);
          if (!micros || (best && *micros >= least)) continue;
          best = shape;
          least = *micros;
        }
    return best;
  }

  int64_t MostBlocks() const {
    return std::min(static_cast<int64_t>(rates_.cluster_blocks), kMostBlocks);
  }

  // Of all teams in one round; nothing when registers or memory do not suffice.
  std::optional<double> MicrosOf(const SpreadShape& shape) const {
    if (shape.threads > kMostBlockThreads) return std::nullopt;
    // A team that one block could run is one block.
    if (shape.blocks > 1 && shape.threads * shape.blocks <= kMostBlockThreads) return std::nullopt;
    int64_t words = 0, sums = 0, bytes = 0;
    double instrs = kOtherInstrs, shared = 0;
    int64_t positions = shape.units * shape.rows;
    for (const RoundsProduct& product : products_) {
      int64_t each = product.sums / elements_, held = shape.units * each * product.taps / kWarp;
      words += held;
      sums = std::max(sums, positions * each);
      bytes += 4 * shape.rows * product.taps;
      double read = static_cast<double>(product.taps / kWarp * shape.rows);
      auto adds = static_cast<double>(
          each * (positions - 1 + std::countr_zero(static_cast<uint64_t>(kWarp / positions))));
      instrs += static_cast<double>(held * shape.rows) + read / kWide + 2 * adds;
      shared += read + kShuffleCycles * adds;
    }
    words += sums + kOtherWords;
    auto beside = static_cast<int64_t>(rates_.registers) / (words * shape.threads);
    if (sums > kMostSums || words > kSpreadMostWords || beside == 0 ||
        static_cast<double>(2 * bytes) > rates_.team_bytes)
      return std::nullopt;
    double warps = static_cast<double>(shape.threads / kWarp);
    double busy = std::ceil(warps / kSchedulers) * instrs + kAlone * warps * shared;
    return ((busy + kWaits) * kCycleMicros + MeetingMicros(shape, bytes)) * Turns(shape, beside);
  }

  // Of all products; `bytes`: what each block is sent.
  double MeetingMicros(const SpreadShape& shape, int64_t bytes) const {
    auto count = static_cast<double>(products_.size());
    if (shape.blocks == 1) return count * rates_.barrier_us;
    double more = static_cast<double>(bytes) - count * kBytesOfMeeting;
    return count * rates_.cluster_us + more / rates_.cluster_bytes_ns / 1000;
  }

  // How many times as long all teams take as one that is alone; so many have room beside each
  // other.
  double Turns(const SpreadShape& shape, int64_t beside) const {
    int64_t cores = machine_.cores;
    if (shape.blocks > 1 && rates_.cluster_cores > 0)
      cores = std::min(cores, static_cast<int64_t>(rates_.cluster_cores));
    int64_t teams = CeilDiv(region_.form.Places(), shape.rows);
    int64_t at_once = std::max<int64_t>(cores / shape.blocks, 1);
    int64_t layers = CeilDiv(teams, at_once) * CeilDiv(shape.blocks, cores);
    auto waves = static_cast<double>(CeilDiv(layers, beside));
    return waves * (1 + kBeside * static_cast<double>(std::min(layers, beside) - 1));
  }

  BuildOutcome Write(const SpreadShape& shape, const std::string& name) const {
    KernelBuilder b(name, Dialect::kGpu);
    RoundsKernel kernel(b, region_);
    int64_t count = region_.form.Places(), grid = CeilDiv(count, shape.rows);
    int64_t same = kWarp / (shape.units * shape.rows);  // lanes of one element
    auto thread = [&](Scalar g, Scalar block, Scalar t) {
      Scalar lane = t % b.Index(kWarp), position = lane / b.Index(same);
      Scalar warp = block * b.Index(shape.threads / kWarp) + t / b.Index(kWarp);
      Scalar first = warp * b.Index(shape.units), row = position % b.Index(shape.rows);
      Scalar element = first + position / b.Index(shape.rows);
      Scalar member = lane % b.Index(same);
      kernel.ShareOut({.threads = same, .places = 1, .member = member, .slot = b.Index(0)});
      kernel.Spread({.elements = elements_,
                     .units = shape.units,
                     .rows = shape.rows,
                     .element = element,
                     .first_element = first,
                     .row = row,
                     .lane = lane,
                     .round = {}});
      // All threads come to the meetings: the last place may be run several times.
      Scalar wanted = g * b.Index(shape.rows) + row, linear = LesserOf(wanted, b.Index(count - 1));
      if (count % shape.rows != 0) kernel.WriteWhere(wanted < b.Index(count));
      kernel.Run(Delinearized(b, linear, region_.form.sizes),
                 (linear == b.Index(0)) & (element == b.Index(0)) & (member == b.Index(0)));
    };
    b.For("team", LoopRole::kGrid, b.Index(grid), [&](Scalar g) {
      auto threads = [&](Scalar block) {
        b.For("t", LoopRole::kThread, b.Index(shape.threads),
              [&](Scalar t) { thread(g, block, t); });
      };
      if (shape.blocks == 1) return threads(b.Index(0));
      b.For("block", LoopRole::kThread, b.Index(shape.blocks), threads);
    });
    return kernel.Finish(grid, /*exact=*/false);
  }

  const RoundsRegion& region_;
  const Machine& machine_;
  const Rates& rates_;
  int64_t elements_ = 0;
  std::vector<RoundsProduct> products_;
};

}  // namespace

BuildOutcome BuildSpreadRounds(const RoundsRegion& region, const Machine& machine,
                               const std::string& name) {
  return Spreader(region, machine).Build(name);
}

}  // namespace tokamak::gpu
