// Stable merge sorts with any comparator, for CPUs and GPUs.
//
//   positions of a line's elements in order; on GPUs also the compared elements, in shared memory
//   for widths 1, 2, 4 ... (serial)
//     each thread produces some merged positions: a binary search along the merge-path diagonal
//     finds where they start in both runs; then it takes the lesser head
//   store the elements at these positions
//
// A CPU has one thread per line, which needs no search. This is the interpreter's merge sort, so
// comparators that are not an order give the same result.
//
// Longer lines of GPUs whose halves are already sorted (passes/target/merge_sorts.h) are merged the
// same way from global memory to global memory. Whatever the comparator does, every position gets
// an element of its line.

#include <algorithm>
#include <bit>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/sort_schedule.h"

namespace tokamak {
namespace {

class MergeSortBuilder {
 public:
  MergeSortBuilder(const FusedRegion& region, const SortSchedule& schedule, const Machine& machine,
                   const std::string& name)
      : region_(region),
        schedule_(schedule),
        sort_(LineSortOf(*region.roots[0])),
        is_gpu_(machine.is_gpu()),
        b_(name, is_gpu_ ? Dialect::kGpu : Dialect::kCpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    heads_ = b_.Local("heads", ScalarType::kS32, Space::kRegisters, 2);
    int64_t tasks = is_gpu_ && schedule_.in_memory ? MergeHalves() : SortLines();
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, tasks, /*writes_once=*/false);
    if (is_gpu_ && outcome.built) gpu::FinalizeGpuKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  // Two adjacent runs of positions in a line.
  struct Runs {
    Scalar start, middle, end;
  };

  // ---- whole lines

  int64_t SortLines() {
    count_ = b_.Index(sort_.length);
    AddArrays();
    int64_t tasks = CeilDiv(sort_.lines, schedule_.lines);
    b_.For(is_gpu_ ? "block" : "g", LoopRole::kGrid, b_.Index(tasks), [&](Scalar task) {
      auto row = [&](Scalar r) {
        ForThreads([&](Scalar t) {
          row_ = r;
          thread_ = t;
          line_ = task * b_.Index(schedule_.lines) + r;
          // Line indices beyond the last are clamped to it.
          if (tasks * schedule_.lines > sort_.lines)
            line_ = LesserOf(line_, b_.Index(sort_.lines - 1));
          SortLine();
        });
      };
      if (schedule_.lines == 1) return row(b_.Index(0));
      b_.For("r", LoopRole::kThread, b_.Index(schedule_.lines), row);
    });
    return tasks;
  }

  template <typename Body>
  void ForThreads(Body&& body) {
    if (!is_gpu_) return body(b_.Index(0));
    b_.For("t", LoopRole::kThread, b_.Index(schedule_.threads), body);
  }
  void Barrier() {
    if (is_gpu_) b_.Barrier(BarrierScope::kBlock);
  }

  void AddArrays() {
    int64_t elements = schedule_.lines * schedule_.tile;
    Space space = is_gpu_ ? Space::kShared : Space::kRegisters;
    order_ = b_.Local("order", ScalarType::kS32, space, 2 * elements);
    if (schedule_.in_memory) return;
    for (size_t k = 0; k < sort_.instr->operand_count(); ++k) {
      ElementArrays& arrays = keys_.emplace_back();
      ElementType type = sort_.instr->operand(k)->shape().type();
      if (sort_.ComparatorUses(k)) arrays = LocalElements(b_, "keys", type, space, elements);
    }
  }

  void SortLine() {
    ForOwn([&](Scalar position) {
      Load(position);
      b_.Store(order_, InRow(position), position.As(ScalarType::kS32));
    });
    auto passes = std::bit_width(static_cast<uint64_t>(schedule_.tile - 1));
    b_.For("p", LoopRole::kSerial, b_.Index(passes), [&](Scalar pass) {
      Barrier();
      MergeRuns(pass);
    });
    Barrier();
    Scalar done = b_.Index(passes % 2);
    ForOwn([&](Scalar position) {
      auto move = [&] { Move(position, PositionAt(done, position)); };
      if (schedule_.tile == sort_.length) return move();
      b_.If(position < count_, move);
    });
  }

  // Positions of the line that a thread loads and stores.
  template <typename Body>
  void ForOwn(Body&& body) {
    b_.For("i", is_gpu_ ? LoopRole::kUnrolled : LoopRole::kSerial, b_.Index(schedule_.items),
           [&](Scalar i) { body(is_gpu_ ? i * b_.Index(schedule_.threads) + thread_ : i); });
  }

  void Load(Scalar position) {
    Scalar inside = LesserOf(position, count_ - b_.Index(1));
    for (size_t k = 0; k < keys_.size(); ++k) {
      if (!sort_.ComparatorUses(k)) continue;
      Element key = emitter_.At(*sort_.instr->operand(k), At(inside));
      if (!emitter_.failure().empty()) return;
      StoreElement(b_, keys_[k], InRow(position), key);
    }
  }

  // `half`: which of the two position buffers.
  Scalar InRow(Scalar position) { return row_ * b_.Index(schedule_.tile) + position; }
  Scalar InOrder(Scalar half, Scalar position) {
    return half * b_.Index(schedule_.lines * schedule_.tile) + InRow(position);
  }
  Scalar PositionAt(Scalar half, Scalar index) {
    Scalar inside = LesserOf(index, b_.Index(schedule_.tile - 1));
    return Bounded(b_.Read(order_, InOrder(half, inside)), schedule_.tile - 1);
  }

  void MergeRuns(Scalar pass) {
    Scalar width = b_.Index(1) << pass, half = pass % b_.Index(2);
    Scalar first = thread_ * b_.Index(schedule_.items);
    auto before = [&](Scalar x, Scalar y) {
      return Before(ComparedAt(PositionAt(half, x)), ComparedAt(PositionAt(half, y)));
    };
    if (is_gpu_) Search(RunsAt(first, width), LesserOf(first, count_), pass + b_.Index(1), before);
    b_.For("o", LoopRole::kSerial, b_.Index(schedule_.items), [&](Scalar o) {
      Scalar out = first + o;
      Runs own = RunsAt(out, width);
      // A thread merges several short runs.
      b_.If(out == own.start, [&] { SetHeads(own.start, own.middle); });
      Scalar from = Take(own, before);
      b_.Store(order_, InOrder(b_.Index(1) - half, out),
               PositionAt(half, from).As(ScalarType::kS32));
    });
  }

  // The runs of `width` elements that output position `out` is merged from.
  Runs RunsAt(Scalar out, Scalar width) {
    Scalar pair = width * b_.Index(2), start = out - out % pair;
    return {start, LesserOf(start + width, count_), LesserOf(start + pair, count_)};
  }

  // ---- sorted halves in global memory

  int64_t MergeHalves() {
    int64_t chunks = CeilDiv(sort_.length, schedule_.items), all = sort_.lines * chunks;
    return gpu::ForThreads(b_, all, std::min(schedule_.threads, all), [&](Scalar number) {
      line_ = number / b_.Index(chunks);
      MergeChunk(number % b_.Index(chunks) * b_.Index(schedule_.items));
    });
  }

  void MergeChunk(Scalar first) {
    Scalar length = b_.Index(sort_.length);
    auto before = [&](Scalar x, Scalar y) {
      Scalar last = b_.Index(sort_.length - 1);
      return Before(ComparedAt(LesserOf(x, last)), ComparedAt(LesserOf(y, last)));
    };
    Runs runs{b_.Index(0), b_.Index(sort_.length / 2), length};
    int64_t steps = 1 + std::bit_width(static_cast<uint64_t>(sort_.length / 2 - 1));
    Search(runs, first, b_.Index(steps), before);
    b_.For("o", LoopRole::kSerial, b_.Index(schedule_.items), [&](Scalar o) {
      b_.If(first + o < length, [&] { Move(first + o, Take(runs, before)); });
    });
  }

  // ---- merging

  // Sets the heads to where both runs start for the merged elements from `out` on.
  template <typename BeforeAt>
  void Search(const Runs& runs, Scalar out, Scalar steps, BeforeAt&& before) {
    Scalar one = b_.Index(1), done = GreaterOf(out - runs.start, b_.Index(0));
    Scalar least = GreaterOf(done - (runs.end - runs.middle), b_.Index(0));
    SetHeads(least, LesserOf(done, runs.middle - runs.start));
    b_.For("s", LoopRole::kSerial, steps, [&](Scalar) {
      Scalar low = Head(0), high = Head(1);
      Scalar middle = (low + high) / b_.Index(2);
      Scalar right = GreaterOf(runs.middle + done - one - middle, b_.Index(0));
      Scalar is_open = low < high, right_first = before(right, runs.start + middle);
      SetHeads(Choose(is_open & !right_first, middle + one, low),
               Choose(is_open & right_first, middle, high));
    });
    Scalar taken = Head(0);
    SetHeads(runs.start + taken, runs.middle + (done - taken));
  }

  // Takes the lesser head of both runs.
  template <typename BeforeAt>
  Scalar Take(const Runs& runs, BeforeAt&& before) {
    Scalar left = Head(0), right = Head(1), one = b_.Index(1);
    Scalar none_left = left >= runs.middle, some_right = right < runs.end;
    Scalar take_right = none_left | (some_right & before(right, left));
    SetHeads(Choose(take_right, left, left + one), Choose(take_right, right + one, right));
    return Choose(take_right, right, left);
  }

  Scalar Head(int64_t side) { return Bounded(b_.Read(heads_, b_.Index(side)), sort_.length); }
  void SetHeads(Scalar left, Scalar right) {
    b_.Store(heads_, b_.Index(0), left.As(ScalarType::kS32));
    b_.Store(heads_, b_.Index(1), right.As(ScalarType::kS32));
  }

  // On GPUs clamped, so that range analysis proves that indices fit in 32 bits.
  Scalar Bounded(Scalar position, int64_t last) {
    position = position.As(ScalarType::kIndex);
    if (!is_gpu_) return position;
    return LesserOf(GreaterOf(position, b_.Index(0)), b_.Index(last));
  }

  // ---- elements

  Coordinates At(Scalar position) { return CoordinatesInLine(b_, sort_, line_, position); }

  // The elements at a position of the line that the comparator uses.
  std::vector<Element> ComparedAt(Scalar position) {
    std::vector<Element> elements(sort_.instr->operand_count());
    for (size_t k = 0; k < elements.size(); ++k) {
      if (!sort_.ComparatorUses(k)) continue;
      const Instr& operand = *sort_.instr->operand(k);
      if (schedule_.in_memory) {
        elements[k] = emitter_.At(operand, At(position));
        continue;
      }
      elements[k] = ReadElement(b_, keys_[k], operand.shape().type(), InRow(position));
    }
    return elements;
  }

  void Move(Scalar to, Scalar from) {
    Scalar inside = LesserOf(from, b_.Index(sort_.length - 1));
    std::vector<Element> moved;
    for (const Instr* operand : sort_.instr->operands())
      moved.push_back(emitter_.At(*operand, At(inside)));
    for (size_t k = 0; k < moved.size(); ++k)
      if (emitter_.failure().empty()) emitter_.Store(*sort_.instr, k, At(to), moved[k]);
  }

  Scalar Before(const std::vector<Element>& x, const std::vector<Element>& y) {
    std::vector<Element> both;
    for (size_t k = 0; k < x.size(); ++k) {
      Element none = ConstantElement(b_, sort_.instr->operand(k)->shape().type(), 0);
      both.push_back(x[k][0].ok() ? x[k] : none);
      both.push_back(y[k][0].ok() ? y[k] : none);
    }
    std::optional<Scalar> before;
    if (emitter_.failure().empty()) before = ComesBefore(b_, sort_, both);
    if (before) return *before;
    emitter_.Fail("sort: its computation has no scalar formula");
    return b_.Constant(ScalarType::kPred, 0);
  }

  const FusedRegion& region_;
  SortSchedule schedule_;
  LineSort sort_;
  bool is_gpu_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ArrayId heads_{}, order_{};
  std::vector<ElementArrays> keys_;  // in shared memory
  Scalar line_, row_, thread_, count_;
};

}  // namespace

BuildOutcome BuildMergeSort(const FusedRegion& region, const SortSchedule& schedule,
                            const Machine& machine, const std::string& name) {
  return MergeSortBuilder(region, schedule, machine, name).Build();
}

}  // namespace tokamak
