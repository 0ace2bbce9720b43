// The CPU sort generator: sorts with any comparator, one line at a time, by the interpreter's merge
// sort (so that comparators that are not an order give the same result), with positions in
// registers:
//
//   for each line (grid)
//     positions of its elements, in order
//     for widths 1, 2, 4 ... (serial)
//       for each position of the output (serial): the lesser head of two runs
//     the elements at these positions
//
// Sorts by keys are calls of the runtime, which are faster.

#include <algorithm>
#include <array>

#include "gen/generator.h"
#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/sorting_network.h"

namespace tokamak {
namespace {

// Elements: a line's positions, double-buffered, fit in local memory. Chosen.
constexpr int64_t kLongestLine = 8192;

class SortBuilder {
 public:
  SortBuilder(const FusedRegion& region, const std::string& name)
      : region_(region), sort_(LineSortOf(*region.roots[0])), b_(name), emitter_(b_, region) {}

  BuildOutcome Build() {
    int64_t length = sort_.length;
    order_ = b_.Local("order", ScalarType::kS32, Space::kRegisters, 2 * length);
    heads_ = b_.Local("heads", ScalarType::kS32, Space::kRegisters, 2);
    int64_t grid_size = sort_.lines;
    int64_t passes = 0;
    while ((int64_t{1} << passes) < length) ++passes;
    b_.For("g", LoopRole::kGrid, b_.Index(sort_.lines), [&](Scalar line) {
      b_.For("i", LoopRole::kSerial, b_.Index(length),
             [&](Scalar i) { b_.Store(order_, i, i.As(ScalarType::kS32)); });
      b_.For("p", LoopRole::kSerial, b_.Index(passes), [&](Scalar pass) {
        Scalar width = b_.Index(1) << pass;
        Scalar from = pass % b_.Index(2) * b_.Index(length);
        b_.For("o", LoopRole::kSerial, b_.Index(length),
               [&](Scalar out) { Merge(line, width, from, out); });
      });
      Scalar done = b_.Index(passes % 2 * length);
      b_.For("i", LoopRole::kSerial, b_.Index(length), [&](Scalar i) { Move(line, done, i); });
    });
    return FinishRegionKernel(b_, emitter_, region_, grid_size, false);
  }

 private:
  Scalar PositionAt(Scalar index) { return b_.Read(order_, index).As(ScalarType::kIndex); }
  Scalar Head(int64_t side) { return b_.Read(heads_, b_.Index(side)).As(ScalarType::kIndex); }
  void SetHead(int64_t side, Scalar value) {
    b_.Store(heads_, b_.Index(side), value.As(ScalarType::kS32));
  }

  // One element of the merged runs. `from`: which half of the positions holds the runs.
  void Merge(Scalar line, Scalar width, Scalar from, Scalar out) {
    Scalar length = b_.Index(sort_.length), pair = width * b_.Index(2);
    Scalar start = out - out % pair;
    Scalar middle = LesserOf(start + width, length), end = LesserOf(start + pair, length);
    b_.If(out == start, [&] {
      SetHead(0, start);
      SetHead(1, middle);
    });
    Scalar left = Head(0), right = Head(1), last = b_.Index(sort_.length - 1);
    Scalar x = PositionAt(from + LesserOf(right, last)),
           y = PositionAt(from + LesserOf(left, last));
    std::optional<Scalar> less = Less(line, x, y);
    if (!less || !emitter_.failure().empty())
      return emitter_.Fail("sort: its computation has no scalar formula");
    Scalar none_left = left >= middle, some_right = right < end;
    Scalar take_right = none_left | (some_right & *less);
    Scalar to = length - from;  // the other half
    b_.Store(order_, to + out, Choose(take_right, x, y).As(ScalarType::kS32));
    SetHead(0, Choose(take_right, left, left + b_.Index(1)));
    SetHead(1, Choose(take_right, right + b_.Index(1), right));
  }

  std::optional<Scalar> Less(Scalar line, Scalar x, Scalar y) {
    std::vector<Element> elements;
    for (const Instr* operand : sort_.instr->operands()) {
      elements.push_back(emitter_.At(*operand, ElementAt(line, x)));
      elements.push_back(emitter_.At(*operand, ElementAt(line, y)));
    }
    return ComesBefore(b_, sort_, elements);
  }

  void Move(Scalar line, Scalar from, Scalar i) {
    Scalar position = PositionAt(from + i);
    for (size_t k = 0; k < sort_.instr->operand_count(); ++k)
      emitter_.Store(*sort_.instr, k, ElementAt(line, i),
                     emitter_.At(*sort_.instr->operand(k), ElementAt(line, position)));
  }

  Coordinates ElementAt(Scalar line, Scalar position) {
    return CoordinatesInLine(b_, sort_, line, position);
  }

  const FusedRegion& region_;
  LineSort sort_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ArrayId order_{}, heads_{};
};

// Short lines in registers (sorting_network.h): vector lanes are adjacent lines.
class NetworkSortBuilder {
 public:
  NetworkSortBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        sort_(LineSortOf(*region.roots[0])),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    SortingNetwork network(b_, emitter_, sort_);
    int64_t inner = ProductOf(sort_.dims, sort_.along + 1, sort_.dims.size());
    int64_t run = inner > 1 ? inner : sort_.lines, lanes = LanesOf();
    while (lanes > run) lanes /= 2;
    int64_t vectors = (run + lanes - 1) / lanes, grid = sort_.lines / run * vectors;
    b_.For("g", LoopRole::kGrid, b_.Index(grid), [&](Scalar g) {
      // The last vector of a run ends with the run and may overlap.
      Scalar first = LesserOf(g % b_.Index(vectors) * b_.Index(lanes), b_.Index(run - lanes));
      first = g / b_.Index(vectors) * b_.Index(run) + first;
      if (lanes == 1) return network.Sort(first);
      b_.For("l", LoopRole::kVector, b_.Index(lanes),
             [&](Scalar lane) { network.Sort(first + lane); });
    });
    return FinishRegionKernel(b_, emitter_, region_, grid, /*writes_once=*/false);
  }

 private:
  int64_t LanesOf() const {
    int64_t bytes = 1;
    for (const Instr* operand : sort_.instr->operands())
      bytes = std::max(bytes, BytesOf(ComputeType(operand->shape().type())));
    return machine_.Lanes(8 * bytes);
  }

  const FusedRegion& region_;
  const Machine& machine_;
  LineSort sort_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

}  // namespace

std::optional<std::string> WhyNoSortKernel(const Instr& sort, const Machine& machine) {
  if (machine.is_gpu()) return gpu::WhyNoSortKernel(sort);
  if (std::optional<std::string> why = WhyNoComparatorCode(sort)) return why;
  if (LineSortOf(sort).length > kLongestLine)
    return "sort: a line exceeds the registers, and the comparator is not an order of keys";
  return std::nullopt;
}

BuildOutcome BuildSort(const FusedRegion& region, const Machine& machine, const std::string& name) {
  if (region.instrs.size() != 1 || region.roots.size() != 1)
    return {std::nullopt, "a sort is not fused with other instructions"};
  if (IsNetworkSort(*region.roots[0])) return NetworkSortBuilder(region, machine, name).Build();
  return SortBuilder(region, name).Build();
}

}  // namespace tokamak
