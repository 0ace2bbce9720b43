// GPU scans.
//
// General scans: a thread scans a row, or several adjacent rows, in order. Threads of a warp have
// adjacent rows.
//
//   for each element of the rows, in order (serial, unrolled so that loads are in flight)
//     one step, update the carries
//
// Prefix scans with an associative op (sums, maxima ...) along contiguous rows: a group of threads,
// from part of a warp to a block, scans a row together.
//
//   for each segment of the row, one vector per thread (serial)
//     each thread scans its vector, in order
//     prefix over the preceding threads of its warp by shuffles, over the preceding warps through
//       shared memory, and the carry of the preceding segments
//     each thread stores its vector

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "gen/scan_elements.h"

namespace tokamak::gpu {
namespace {

// Elements in flight of a thread that scans in order. Chosen: with kThreadsWanted threads, four
// loads cover the memory latency, and they take few registers.
constexpr int64_t kScanUnroll = 4;
// Segments of a row up to which one warp suffices if there are many rows. Chosen: further segments
// wait for the carry of the one before, and the warps of a block scan several at once.
constexpr int64_t kScanWarpSteps = 8;
// Adjacent rows that fill a memory sector (hardware: 32 bytes, of f32): one thread per row.
constexpr int64_t kManyInner = 8;

// The op of a scan that a group of threads can compute together; nullopt otherwise.
std::optional<Op> BlockScanOp(const Scan& scan) {
  std::optional<PrefixScan> cumulation = PrefixScanOf(*scan.instr);
  if (!cumulation || scan.inner >= kManyInner) return std::nullopt;
  ElementType type = scan.instr->operand(0)->shape().type();
  // Sums of narrow floats are rounded after every element, as in the interpreter, which is
  // order-dependent and loses accuracy.
  bool narrow = IsReal(type) && InfoOf(type).bits < 32;
  switch (cumulation->op) {
    case Op::kAdd:
      return narrow ? std::nullopt : std::optional(cumulation->op);
    case Op::kMultiply:
      if (narrow) return std::nullopt;
      [[fallthrough]];
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      // (1 + 0i) * x is not x if x is infinite.
      return IsComplex(type) ? std::nullopt : std::optional(cumulation->op);
    default:
      return std::nullopt;
  }
}

class ScanBuilder {
 public:
  ScanBuilder(const FusedRegion& region, const Scan& scan, const Machine& machine,
              const std::string& name)
      : region_(region),
        scan_(scan),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, region, scan),
        rows_(scan.outer * scan.inner) {}

  BuildOutcome Build() {
    op_ = BlockScanOp(scan_);
    int64_t grid = op_ ? ScanByBlock() : InOrder();
    return FinishBlockKernel(b_, emitter_, region_, grid);
  }

 private:
  // ---- one thread per row or rows

  int64_t InOrder() {
    int64_t count = rows_ * scan_.length;
    lanes_ = VectorWidthFor(region_, machine_, scan_.inner, count);
    while (lanes_ > 1 && rows_ / lanes_ < kThreadsWanted * machine_.cores) lanes_ /= 2;
    int64_t vectors = rows_ / lanes_;
    int64_t threads = BlockSizeFor(vectors, kBlockThreads, kFewBlockThreads, machine_);
    return ForThreads(b_, vectors, threads, [&](Scalar vector) { Rows(vector); });
  }

  void Rows(Scalar vector) {
    ScanCarryRegisters carries(b_, scan_, lanes_);
    Dims dims = {scan_.outer, scan_.inner / lanes_};
    Coordinates at = Delinearized(b_, vector, dims);
    auto inner = [&](Scalar lane) { return at[1] * b_.Index(lanes_) + lane; };
    ForLanes(b_, lanes_, [&](Scalar lane) {
      carries.Write(lane, elements_.InitialCarries(at[0], inner(lane)));
    });
    auto step = [&](Scalar t) {
      Scalar along = scan_.is_reverse ? b_.Index(scan_.length - 1) - t : t;
      ForLanes(b_, lanes_, [&](Scalar lane) {
        elements_.Step(carries, lane, elements_.At(at[0], along, inner(lane)));
      });
    };
    ForSteps(b_, scan_.length, kScanUnroll, scan_.length / kScanUnroll, step);
    if (!elements_.HasFinalCarryOutput()) return;
    ForLanes(b_, lanes_, [&](Scalar lane) {
      elements_.StoreFinalCarries(at[0], inner(lane), carries.Read(lane));
    });
  }

  // ---- a group of threads per row

  int64_t ScanByBlock() {
    type_ = scan_.instr->operand(0)->shape().type();
    lanes_ = scan_.inner == 1
                 ? VectorWidthFor(region_, machine_, scan_.length, rows_ * scan_.length)
                 : 1;
    vectors_ = scan_.length / lanes_;
    threads_ = std::min(kWarpSize, CeilPowerOfTwo(vectors_));
    while (threads_ < kMaxThreadsPerBlock && threads_ < vectors_ &&
           (vectors_ > threads_ * kScanWarpSteps || threads_ < kWarpSize) &&
           rows_ * threads_ < kThreadsWanted * machine_.cores)
      threads_ *= 2;
    block_rows_ = std::min(std::max<int64_t>(1, kBlockThreads / threads_), CeilPowerOfTwo(rows_));
    while (block_rows_ > 1 && rows_ < block_rows_ * machine_.cores) block_rows_ /= 2;
    int64_t blocks = CeilDiv(rows_, block_rows_);
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      auto row = [&](Scalar r) {
        b_.For("t", LoopRole::kThread, b_.Index(threads_), [&](Scalar t) {
          block_row_ = r;
          thread_ = t;
          ScanRowByBlock(LesserOf(g * b_.Index(block_rows_) + r, b_.Index(rows_ - 1)));
        });
      };
      if (block_rows_ == 1) return row(b_.Index(0));
      b_.For("r", LoopRole::kThread, b_.Index(block_rows_), row);
    });
    return blocks;
  }

  void ScanRowByBlock(Scalar row) {
    outer_ = row / b_.Index(scan_.inner);
    inner_ = row % b_.Index(scan_.inner);
    Scalar zero = b_.Index(0);
    ScanCarryRegisters carries(b_, scan_, 1);
    carries.Write(zero, elements_.InitialCarries(outer_, inner_));
    for (size_t component = 0; component < (IsComplex(type_) ? 2u : 1u); ++component) {
      ScalarType type = ComputeType(type_);
      own_[component] = b_.Local("own", type, Space::kRegisters, lanes_);
      // Double-buffered: a segment is written while slow warps still read the previous one.
      if (threads_ > kWarpSize)
        warps_[component] =
            b_.Local("warps", type, Space::kShared, 2 * block_rows_ * threads_ / kWarpSize);
    }
    int64_t steps = CeilDiv(vectors_, threads_), unroll = threads_ <= kWarpSize ? kScanUnroll : 1;
    unroll = std::min(unroll, steps);
    int64_t iterations = steps / unroll, next = iterations * unroll;
    if (iterations == 1 && unroll == 1) {
      Segment(carries, zero);
    } else {
      b_.For("k", LoopRole::kSerial, b_.Index(iterations), [&](Scalar k) {
        if (unroll == 1) return Segment(carries, k);
        b_.For("u", LoopRole::kUnrolled, b_.Index(unroll),
               [&](Scalar u) { Segment(carries, k * b_.Index(unroll) + u); });
      });
    }
    for (; next < steps; ++next) Segment(carries, b_.Index(next));
    if (!elements_.HasFinalCarryOutput()) return;
    b_.If(thread_ == zero,
          [&] { elements_.StoreFinalCarries(outer_, inner_, {Narrow(carries.Read(zero)[0])}); });
  }

  // One vector per thread.
  void Segment(ScanCarryRegisters& carries, Scalar step) {
    if (!emitter_.failure().empty()) return;
    Scalar number = step * b_.Index(threads_) + thread_;
    Scalar inside = LesserOf(number, b_.Index(vectors_ - 1));
    Scalar is_inside = number < b_.Index(vectors_);
    Element none = NeutralOf(b_, *op_, AccumulatorElementType(type_));
    ForLanes(b_, lanes_, [&](Scalar lane) {
      Element x = elements_.Inputs(IndexOf(inside, lane))[0];
      if (vectors_ % threads_ != 0) x = Choose(is_inside, x, none);
      StoreElement(b_, own_, lane, x);
    });
    // Prefix sums of the thread's own elements, in scan order.
    std::vector<Element> own;
    for (int64_t i = 0; i < lanes_; ++i) {
      Element x = ReadElement(b_, own_, type_, b_.Index(InOrderLane(i)));
      own.push_back(i == 0 ? x : Joined(own.back(), x));
    }
    Scalar zero = b_.Index(0);
    Element before = none, total = own.back();
    JoinLanes(before, total);
    Element carried = carries.Read(zero)[0], last = carried;
    if (threads_ > kWarpSize) {
      JoinWarps(step, total, carried, last);
    } else {
      last = Joined(carried, total);
    }
    carries.Write(zero, {last});
    before = Joined(carried, before);
    // Inclusive or exclusive result.
    bool is_inclusive = PrefixScanOf(*scan_.instr)->is_inclusive;
    for (int64_t i = 0; i < lanes_; ++i) {
      Element value = before;
      if (is_inclusive || i > 0)
        value = Joined(before, own[static_cast<size_t>(is_inclusive ? i : i - 1)]);
      StoreElement(b_, own_, b_.Index(InOrderLane(i)), value);
    }
    b_.If(is_inside, [&] {
      ForLanes(b_, lanes_, [&](Scalar lane) {
        elements_.Store(IndexOf(inside, lane), {Narrow(ReadElement(b_, own_, type_, lane))});
      });
    });
  }

  // In a reverse scan vectors are numbered from the end of the row; lanes keep the order of memory.
  Coordinates IndexOf(Scalar vector, Scalar lane) {
    if (scan_.is_reverse) vector = b_.Index(vectors_ - 1) - vector;
    return elements_.At(outer_, vector * b_.Index(lanes_) + lane, inner_);
  }
  int64_t InOrderLane(int64_t i) const { return scan_.is_reverse ? lanes_ - 1 - i : i; }

  // `total`: over all threads of a warp that share the row; `before`: over the threads before this
  // one.
  void JoinLanes(Element& before, Element& total) {
    for (int64_t offset = 1; offset < std::min(threads_, kWarpSize); offset *= 2) {
      Element other = total;
      for (Scalar& part : other)
        if (part.ok()) part = b_.Shuffle(part, b_.Index(offset));
      Scalar is_later = thread_ / b_.Index(offset) % b_.Index(2) == b_.Index(1);
      before = Choose(is_later, Joined(other, before), before);
      total = Joined(total, other);
    }
  }

  // `carried`: including the warps before this one; `last`: including all warps.
  void JoinWarps(Scalar step, Element total, Element& carried, Element& last) {
    int64_t warps = threads_ / kWarpSize;
    Scalar warp = thread_ / b_.Index(kWarpSize), lane = thread_ % b_.Index(kWarpSize);
    Scalar from = (step % b_.Index(2) * b_.Index(block_rows_) + block_row_) * b_.Index(warps);
    b_.If(lane == b_.Index(0), [&] { StoreElement(b_, warps_, from + warp, total); });
    b_.Barrier(BarrierScope::kBlock);
    for (int64_t w = 0; w < warps; ++w) {
      last = Joined(last, ReadElement(b_, warps_, type_, from + b_.Index(w)));
      if (w + 1 < warps) carried = Choose(b_.Index(w) < warp, last, carried);
    }
  }

  // Combines earlier and later elements of a row.
  Element Joined(Element earlier, Element later) {
    std::vector<Element> results = elements_.Apply({later}, {earlier}, /*wide=*/true);
    return results.empty() ? earlier : results[1];
  }
  Element Narrow(Element wide) {
    return ConvertElement(b_, AccumulatorElementType(type_), type_, wide);
  }

  const FusedRegion& region_;
  const Scan& scan_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScanElements elements_;
  int64_t rows_, lanes_ = 1, vectors_ = 1, threads_ = 1, block_rows_ = 1;
  // State of the group scan.
  std::optional<Op> op_;
  ElementType type_{};
  ElementArrays own_{}, warps_{};
  Scalar outer_, inner_, block_row_, thread_;
};

}  // namespace

bool IsCooperativeScan(const Scan& scan) {
  return BlockScanOp(scan).has_value();
}

BuildOutcome BuildScan(const FusedRegion& region, const Machine& machine, const std::string& name) {
  Scan scan;
  if (std::string why = AnalyzeScan(region, scan); !why.empty()) return {std::nullopt, why};
  return ScanBuilder(region, scan, machine, name).Build();
}

}  // namespace tokamak::gpu
