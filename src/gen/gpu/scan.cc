// The scans of a GPU.
//
// Any of them: a thread goes along a row, or along some that lie side by side, in order. Threads of
// a warp have neighbouring rows.
//
//   for each element of the rows, in order (serial, some at a time, so that loads are in flight)
//     one element, and what is carried on
//
// One op that any grouping suits, along rows that lie one after the other (sums, maxima ...): a row
// has threads side by side, a part of a warp to a block.
//
//   for each stretch of the row that the threads hold (serial)
//     each thread folds its vector, in order
//     what comes before a thread: of the threads of its warp by shuffles, of the warps before it
//       through team memory, and of the stretches before, which is carried
//     each thread writes its vector

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/reducer.h"
#include "gen/scan_elements.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kScanThreads = 256, kScanFewThreads = 64, kScanMostThreads = 1024;
// Threads of a multiprocessor that keep memory busy.
constexpr int64_t kThreadsWanted = 512;
// Elements in flight of a thread that goes in order.
constexpr int64_t kScanUnroll = 4;
// Stretches of a row, for which a warp is enough when there are many rows.
constexpr int64_t kScanWarpSteps = 8;
// Rows side by side that fill what memory gives at once: those are a thread's each.
constexpr int64_t kManyInner = 8;

// The op of a scan that threads may share; nothing of others.
std::optional<Op> SharedOp(const Scan& scan) {
  std::optional<Cumulation> cumulation = CumulationOf(*scan.instr);
  if (!cumulation || scan.inner >= kManyInner) return std::nullopt;
  ElementType type = scan.instr->operand(0)->shape().type();
  // Sums of these are rounded after every element, as the interpreter does, which costs them much.
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
      // (1 + 0i) * x is not x where x is infinite.
      return IsComplex(type) ? std::nullopt : std::optional(cumulation->op);
    default:
      return std::nullopt;
  }
}

class ScanBuilder {
 public:
  ScanBuilder(const Region& region, const Scan& scan, const Machine& machine,
              const std::string& name)
      : region_(region),
        scan_(scan),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, region, scan),
        rows_(scan.outer * scan.inner) {}

  BuildOutcome Build() {
    op_ = SharedOp(scan_);
    int64_t grid = op_ ? Shared() : InOrder();
    return FinishTeams(b_, emitter_, region_, grid);
  }

 private:
  // ---- a thread for some rows

  int64_t InOrder() {
    int64_t count = rows_ * scan_.length;
    lanes_ = LanesFor(region_, machine_, scan_.inner, count);
    while (lanes_ > 1 && rows_ / lanes_ < kThreadsWanted * machine_.cores) lanes_ /= 2;
    int64_t vectors = rows_ / lanes_;
    int64_t threads = ThreadsFor(vectors, kScanThreads, kScanFewThreads, machine_);
    return ForThreads(b_, vectors, threads, [&](Scalar vector) { Rows(vector); });
  }

  void Rows(Scalar vector) {
    Carries carries(b_, scan_, lanes_);
    Dims dims = {scan_.outer, scan_.inner / lanes_};
    Coordinates at = Delinearized(b_, vector, dims);
    auto inner = [&](Scalar lane) { return at[1] * b_.Index(lanes_) + lane; };
    ForLanes(b_, lanes_,
             [&](Scalar lane) { carries.Write(lane, elements_.First(at[0], inner(lane))); });
    auto step = [&](Scalar t) {
      Scalar along = scan_.is_reverse ? b_.Index(scan_.length - 1) - t : t;
      ForLanes(b_, lanes_,
               [&](Scalar lane) { Step(carries, lane, elements_.At(at[0], along, inner(lane))); });
    };
    int64_t rounds = scan_.length / kScanUnroll, next = rounds * kScanUnroll;
    if (rounds > 0)
      b_.For("k", LoopRole::kSerial, b_.Index(rounds), [&](Scalar k) {
        b_.For("u", LoopRole::kUnrolled, b_.Index(kScanUnroll),
               [&](Scalar u) { step(k * b_.Index(kScanUnroll) + u); });
      });
    if (next < scan_.length)
      b_.For("k", LoopRole::kSerial, b_.Index(scan_.length - next),
             [&](Scalar k) { step(k + b_.Index(next)); });
    if (!elements_.StoresLast()) return;
    ForLanes(b_, lanes_,
             [&](Scalar lane) { elements_.StoreLast(at[0], inner(lane), carries.Read(lane)); });
  }

  void Step(Carries& carries, Scalar lane, const Coordinates& at) {
    std::vector<Element> inputs = elements_.Inputs(at);
    std::vector<Element> results = elements_.Apply(inputs, carries.Read(lane), /*wide=*/false);
    if (results.empty()) return;
    carries.Write(lane, {results.begin() + static_cast<int64_t>(scan_.outputs), results.end()});
    elements_.Store(at, results);
  }

  // ---- threads that share a row

  int64_t Shared() {
    type_ = scan_.instr->operand(0)->shape().type();
    lanes_ = scan_.inner == 1 ? LanesFor(region_, machine_, scan_.length, rows_ * scan_.length) : 1;
    vectors_ = scan_.length / lanes_;
    threads_ = std::min(kWarp, PowerAbove(vectors_));
    while (threads_ < kScanMostThreads && threads_ < vectors_ &&
           (vectors_ > threads_ * kScanWarpSteps || threads_ < kWarp) &&
           rows_ * threads_ < kThreadsWanted * machine_.cores)
      threads_ *= 2;
    block_rows_ = std::min(std::max<int64_t>(1, kScanThreads / threads_), PowerAbove(rows_));
    while (block_rows_ > 1 && rows_ < block_rows_ * machine_.cores) block_rows_ /= 2;
    int64_t blocks = CeilDiv(rows_, block_rows_);
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      auto row = [&](Scalar r) {
        b_.For("t", LoopRole::kThread, b_.Index(threads_), [&](Scalar t) {
          block_row_ = r;
          thread_ = t;
          SharedRow(LesserOf(g * b_.Index(block_rows_) + r, b_.Index(rows_ - 1)));
        });
      };
      if (block_rows_ == 1) return row(b_.Index(0));
      b_.For("r", LoopRole::kThread, b_.Index(block_rows_), row);
    });
    return blocks;
  }

  void SharedRow(Scalar row) {
    outer_ = row / b_.Index(scan_.inner);
    inner_ = row % b_.Index(scan_.inner);
    Scalar zero = b_.Index(0);
    Carries carries(b_, scan_, 1);
    carries.Write(zero, elements_.First(outer_, inner_));
    for (size_t part = 0; part < (IsComplex(type_) ? 2u : 1u); ++part) {
      ScalarType type = ComputeType(type_);
      own_[part] = b_.Local("own", type, Space::kRegisters, lanes_);
      // Twice, so that a stretch is written while slow warps still read the one before.
      if (threads_ > kWarp)
        warps_[part] = b_.Local("warps", type, Space::kTeam, 2 * block_rows_ * threads_ / kWarp);
    }
    int64_t steps = CeilDiv(vectors_, threads_), unroll = threads_ <= kWarp ? kScanUnroll : 1;
    unroll = std::min(unroll, steps);
    int64_t rounds = steps / unroll, next = rounds * unroll;
    if (rounds == 1 && unroll == 1) {
      Stretch(carries, zero);
    } else {
      b_.For("k", LoopRole::kSerial, b_.Index(rounds), [&](Scalar k) {
        if (unroll == 1) return Stretch(carries, k);
        b_.For("u", LoopRole::kUnrolled, b_.Index(unroll),
               [&](Scalar u) { Stretch(carries, k * b_.Index(unroll) + u); });
      });
    }
    for (; next < steps; ++next) Stretch(carries, b_.Index(next));
    if (!elements_.StoresLast()) return;
    b_.If(thread_ == zero,
          [&] { elements_.StoreLast(outer_, inner_, {Narrow(carries.Read(zero)[0])}); });
  }

  // A vector of each thread.
  void Stretch(Carries& carries, Scalar step) {
    if (!emitter_.fault().empty()) return;
    Scalar number = step * b_.Index(threads_) + thread_;
    Scalar inside = LesserOf(number, b_.Index(vectors_ - 1));
    Scalar is_inside = number < b_.Index(vectors_);
    Element none = NeutralOf(b_, *op_, WideType(type_));
    ForLanes(b_, lanes_, [&](Scalar lane) {
      Element x = elements_.Inputs(Place(inside, lane))[0];
      if (vectors_ % threads_ != 0) x = Chosen(is_inside, x, none);
      SetOwn(lane, x);
    });
    // The sums of the thread's own elements, in the order of the scan.
    std::vector<Element> own;
    for (int64_t i = 0; i < lanes_; ++i) {
      Element x = Own(b_.Index(InOrderLane(i)));
      own.push_back(i == 0 ? x : Joined(own.back(), x));
    }
    Scalar zero = b_.Index(0);
    Element before = none, total = own.back();
    JoinLanes(before, total);
    Element carried = carries.Read(zero)[0], last = carried;
    if (threads_ > kWarp) {
      JoinWarps(step, total, carried, last);
    } else {
      last = Joined(carried, total);
    }
    carries.Write(zero, {last});
    before = Joined(carried, before);
    // What a scan gives of its own element, or of those before it alone.
    bool with_own = CumulationOf(*scan_.instr)->with_own;
    for (int64_t i = 0; i < lanes_; ++i) {
      Element value = before;
      if (with_own || i > 0) value = Joined(before, own[static_cast<size_t>(with_own ? i : i - 1)]);
      SetOwn(b_.Index(InOrderLane(i)), value);
    }
    b_.If(is_inside, [&] {
      ForLanes(b_, lanes_,
               [&](Scalar lane) { elements_.Store(Place(inside, lane), {Narrow(Own(lane))}); });
    });
  }

  // Vectors are counted from the end of a row whose scan begins there; lanes are as in memory.
  Coordinates Place(Scalar vector, Scalar lane) {
    if (scan_.is_reverse) vector = b_.Index(vectors_ - 1) - vector;
    return elements_.At(outer_, vector * b_.Index(lanes_) + lane, inner_);
  }
  int64_t InOrderLane(int64_t i) const { return scan_.is_reverse ? lanes_ - 1 - i : i; }

  // `total`: of all threads of a warp that share the row; `before`: of those before this one.
  void JoinLanes(Element& before, Element& total) {
    for (int64_t apart = 1; apart < std::min(threads_, kWarp); apart *= 2) {
      Element other = total;
      for (Scalar& part : other)
        if (part.ok()) part = b_.Shuffle(part, b_.Index(apart));
      Scalar is_later = thread_ / b_.Index(apart) % b_.Index(2) == b_.Index(1);
      before = Chosen(is_later, Joined(other, before), before);
      total = Joined(total, other);
    }
  }

  // `carried`: with the warps before this one; `last`: with all of them.
  void JoinWarps(Scalar step, Element total, Element& carried, Element& last) {
    int64_t warps = threads_ / kWarp;
    Scalar warp = thread_ / b_.Index(kWarp), lane = thread_ % b_.Index(kWarp);
    Scalar from = (step % b_.Index(2) * b_.Index(block_rows_) + block_row_) * b_.Index(warps);
    b_.If(lane == b_.Index(0), [&] {
      for (size_t part = 0; part < 2; ++part)
        if (total[part].ok()) b_.Store(warps_[part], from + warp, total[part]);
    });
    b_.Barrier(Scope::kBlock);
    for (int64_t w = 0; w < warps; ++w) {
      Element of_warp = total;
      for (size_t part = 0; part < 2; ++part)
        if (total[part].ok()) of_warp[part] = b_.Read(warps_[part], from + b_.Index(w));
      last = Joined(last, of_warp);
      if (w + 1 < warps) carried = Chosen(b_.Index(w) < warp, last, carried);
    }
  }

  // Earlier and later elements of a row.
  Element Joined(Element earlier, Element later) {
    std::vector<Element> results = elements_.Apply({later}, {earlier}, /*wide=*/true);
    return results.empty() ? earlier : results[1];
  }
  Element Chosen(Scalar condition, Element yes, Element no) {
    for (size_t part = 0; part < 2; ++part)
      if (yes[part].ok()) yes[part] = Choose(condition, yes[part], no[part]);
    return yes;
  }
  Element Narrow(Element wide) { return ConvertElement(b_, WideType(type_), type_, wide); }
  Element Own(Scalar lane) {
    Element value{b_.Read(own_[0], lane), {}};
    if (IsComplex(type_)) value[1] = b_.Read(own_[1], lane);
    return value;
  }
  void SetOwn(Scalar lane, Element value) {
    b_.Store(own_[0], lane, value[0]);
    if (IsComplex(type_)) b_.Store(own_[1], lane, value[1]);
  }

  const Region& region_;
  const Scan& scan_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScanElements elements_;
  int64_t rows_, lanes_ = 1, vectors_ = 1, threads_ = 1, block_rows_ = 1;
  // Of threads that share a row.
  std::optional<Op> op_;
  ElementType type_{};
  std::array<ArrayId, 2> own_{}, warps_{};
  Scalar outer_, inner_, block_row_, thread_;
};

}  // namespace

bool IsShared(const Scan& scan) {
  return SharedOp(scan).has_value();
}

BuildOutcome BuildScan(const Region& region, const Machine& machine, const std::string& name) {
  Scan scan;
  if (std::string why = FindScan(region, scan); !why.empty()) return {std::nullopt, why};
  return ScanBuilder(region, scan, machine, name).Build();
}

}  // namespace tokamak::gpu
