// The CPU loop generator: each element of the roots independently.
//
// Elements are numbered row-major. The minor dimensions form one inner loop, cut into vectors; the
// major dimensions are the grid. The inner loop covers as many dimensions as possible without an
// index division in it: an elementwise kernel is one flat loop of any rank, and one that reads a
// transposed or broadcast array keeps the loops it needs. A row that is not a multiple of the
// vector length ends with a vector that overlaps the one before: its elements are written twice,
// with the same values.
//
// In pads and concatenates the source of an element depends on its index in the row. The row is
// split at these cut points (cuts.h) into segments with their own loops, in which range analysis
// resolves the conditions.

#include <algorithm>

#include "gen/cuts.h"
#include "gen/roots.h"
#include "gen/window.h"

namespace tokamak {
namespace {

// Grid iterations below which long rows are split. Chosen: several for each core of a large CPU.
// Elements of a long row. Chosen: a part of it, some 16 KiB, outweighs the cost of an iteration.
constexpr int64_t kLoopGridWanted = 256, kLongRow = 4096;
// Vectors of a row from which an additional, overlapping one is negligible. Chosen: at most 1/16 of
// the work. Vectors per grid iteration of a single row that is cut into segments. Chosen: they
// outweigh the comparisons with the cuts. Elements of the shortest row. Chosen: a vector of f32.
constexpr int64_t kLoopManySteps = 16, kSegmentVectors = 64, kLoopLeastRow = 4;
// Vectors of the shortest row that is cut into segments. Chosen: each segment has one at least.
constexpr int64_t kLeastCutVectors = 2;
// Ratio by which a divisor of the row may be smaller than a vector. Chosen: half-filled vectors
// cost as much as the remainder of a row that full vectors do not divide.
constexpr int64_t kNarrower = 2;

struct LoopSchedule {
  size_t inner = 0;  // dimensions of the domain that the inner loop covers
  int64_t lanes = 1;
  std::vector<int64_t> cuts = {};  // cut points of the inner loop, ascending, excluding its ends
  // The remainder of the row after the only cut uses the largest vector that divides it: nothing is
  // written twice.
  bool has_rest = false;
};

// Lanes for rows of `row` elements: at most `row`, and a divisor of it if that costs at most half a
// vector. Long rows process two vectors per iteration to overlap their dependence chains, four on
// machines with short vectors (Neoverse V1: Black-Scholes 1.28x, dropout 1.58x).
int64_t VectorWidthFor(int64_t row, const Machine& machine) {
  int64_t vector = std::min(machine.Lanes(32), FloorPowerOfTwo(row));
  // Vectors of a row from which several are processed per iteration, short or long ones. Chosen:
  // short ones overlap their chains at once; for long ones, the remainder of a row costs more.
  constexpr int64_t kShortVectors = 2, kLongVectors = 8;
  int64_t several = machine.HasShortVectors() ? kShortVectors : kLongVectors;
  int64_t together = row < several * vector ? 1 : InterleaveFactor(machine);
  auto costs = [&] {
    int64_t lanes = together * vector;
    return row % lanes != 0 && row < (row % vector == 0 ? kLongRow : kLoopManySteps * lanes);
  };
  while (together > 1 && costs()) together /= 2;
  vector *= together;
  for (int64_t fewer = vector;
       fewer >= 1 && kNarrower * fewer >= std::min(vector, machine.Lanes(32)); fewer /= 2)
    if (row % fewer == 0) return fewer;
  return vector;
}

class LoopBuilder {
 public:
  LoopBuilder(const FusedRegion& region, const Machine& machine, const LoopSchedule& schedule,
              const std::string& name)
      : region_(region), machine_(machine), schedule_(schedule), b_(name), emitter_(b_, region) {
    const Dims& dims = DomainOf(*region_.roots[0]).dims();
    split_ = dims.size() - schedule_.inner;
    rows_ = ProductOf(dims, 0, split_);
    row_ = ProductOf(dims, split_, dims.size());
  }

  BuildOutcome Build() {
    std::vector<RowSegment> segments = RowSegments();
    bool writes_once = true;
    for (const RowSegment& segment : segments) writes_once = writes_once && IsExact(segment);
    int64_t blocks = segments.back().first + segments.back().blocks;
    b_.For("g", LoopRole::kGrid, b_.Index(rows_ * blocks), [&](Scalar g) {
      Scalar row = g / b_.Index(blocks), at = g % b_.Index(blocks);
      for (const RowSegment& segment : segments) {
        // All segments of a row, or the one that this block belongs to.
        Scalar own = IsWhole() ? b_.Index(0) : at - b_.Index(segment.first);
        b_.If((b_.Index(0) <= own) & (own < b_.Index(segment.blocks)), [&] {
          Run(segment, row, LesserOf(GreaterOf(own, b_.Index(0)), b_.Index(segment.blocks - 1)));
        });
      }
    });
    return FinishRegionKernel(b_, emitter_, region_, rows_ * blocks, writes_once);
  }

  // The cut points of a row, found in a trial kernel with one plain loop over it.
  std::vector<int64_t> FindCuts() {
    ValueId variable = kNoValue;
    b_.For("g", LoopRole::kGrid, b_.Index(rows_), [&](Scalar row) {
      b_.For("i", LoopRole::kSerial, b_.Index(row_), [&](Scalar i) {
        variable = i.id();
        Body(row, i, false);
      });
    });
    return CutsOf(b_.kernel(), variable, row_);
  }

 private:
  // A segment of the row. A grid iteration processes `block` of its vectors.
  struct RowSegment {
    int64_t begin, end, lanes, block, blocks;
    int64_t first;  // blocks of the segments before it
  };

  // Whether a grid iteration processes a whole row with all its segments.
  bool IsWhole() const {
    return !schedule_.cuts.empty() && (rows_ >= kLoopGridWanted || row_ < kLongRow);
  }

  static bool IsExact(const RowSegment& segment) {
    return segment.lanes * segment.block * segment.blocks == segment.end - segment.begin;
  }

  std::vector<RowSegment> RowSegments() const {
    std::vector<RowSegment> segments;
    std::vector<int64_t> ends = schedule_.cuts;
    ends.push_back(row_);
    int64_t begin = 0, first = 0;
    for (int64_t end : ends) {
      int64_t lanes = LanesOf(begin, end);
      int64_t steps = (end - begin + lanes - 1) / lanes, block = BlockOf(steps);
      if ((end - begin) % lanes == 0)
        while (steps % block != 0) --block;
      segments.push_back({begin, end, lanes, block, (steps + block - 1) / block, first});
      if (!IsWhole()) first += segments.back().blocks;
      begin = end;
    }
    return segments;
  }

  int64_t LanesOf(int64_t begin, int64_t end) const {
    if (schedule_.cuts.empty() || (schedule_.has_rest && begin == 0)) return schedule_.lanes;
    int64_t size = end - begin;
    return schedule_.has_rest ? std::min(size & -size, machine_.Lanes(32))
                              : VectorWidthFor(size, machine_);
  }

  int64_t BlockOf(int64_t steps) const {
    if (IsWhole()) return steps;
    if (rows_ == 1) return schedule_.cuts.empty() ? 1 : std::min(steps, kSegmentVectors);
    if (rows_ >= kLoopGridWanted || row_ < kLongRow) return steps;
    int64_t all = (row_ + schedule_.lanes - 1) / schedule_.lanes * rows_;
    return std::clamp<int64_t>(all / kLoopGridWanted, 1, steps);
  }

  // One block of a segment.
  void Run(const RowSegment& segment, Scalar row, Scalar number) {
    Scalar first = number * b_.Index(segment.block);
    auto step = [&](Scalar k) {
      Scalar begin = (first + k) * b_.Index(segment.lanes) + b_.Index(segment.begin);
      if (!IsExact(segment)) begin = LesserOf(begin, b_.Index(segment.end - segment.lanes));
      if (segment.lanes == 1) return Body(row, begin, false);
      auto vector = [&](bool inside) {
        b_.For("l", LoopRole::kVector, b_.Index(segment.lanes),
               [&](Scalar lane) { Body(row, begin + lane, inside); });
      };
      std::optional<std::pair<int64_t, int64_t>> inside;
      if (schedule_.inner == 1)
        inside = InteriorOfWindows(region_, DomainOf(*region_.roots[0]).dims());
      if (!inside || inside->second - inside->first + 1 < segment.lanes) return vector(false);
      // Windows are checked per tap only near the ends of rows.
      Scalar between = (b_.Index(inside->first) <= begin) &
                       (begin <= b_.Index(inside->second - segment.lanes + 1));
      b_.If(
          between, [&] { vector(true); }, [&] { vector(false); }, false);
    };
    if (segment.block == 1) return step(b_.Index(0));
    b_.For("k", LoopRole::kSerial, b_.Index(segment.block), step);
  }

  // All roots at one element of the domain.
  void Body(Scalar row, Scalar inner, bool inside) {
    const Dims& dims = DomainOf(*region_.roots[0]).dims();
    Dims outer_dims(dims.begin(), dims.begin() + static_cast<int64_t>(split_));
    Dims inner_dims(dims.begin() + static_cast<int64_t>(split_), dims.end());
    Coordinates at = Delinearized(b_, row, outer_dims);
    Coordinates rest = Delinearized(b_, inner, inner_dims);
    at.insert(at.end(), rest.begin(), rest.end());
    Scalar linear = row * b_.Index(row_) + inner;
    emitter_.AssumeTapsInBounds(inside ? at.back() : Scalar(), dims);
    StoreRoots(b_, emitter_, region_, at, linear);
  }

  const FusedRegion& region_;
  const Machine& machine_;
  LoopSchedule schedule_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  size_t split_ = 0;
  int64_t rows_ = 1, row_ = 1;
};

// Whether an index computed per lane or inner iteration needs a division.
bool DividesInside(const Kernel& kernel) {
  std::vector<bool> inside(kernel.nodes.size());  // depends on a loop other than the grid
  std::vector<bool> used(kernel.nodes.size());
  std::vector<const StmtList*> blocks = {&kernel.body};
  std::vector<ValueId> open;
  while (!blocks.empty()) {
    const StmtList* block = blocks.back();
    blocks.pop_back();
    for (const Stmt& stmt : *block) {
      for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        blocks.push_back(inner);
      if (stmt.kind == StmtKind::kStore) open.insert(open.end(), {stmt.index, stmt.value});
    }
  }
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    if (used[static_cast<size_t>(id)]) continue;
    used[static_cast<size_t>(id)] = true;
    for (ValueId operand : kernel.operands(id)) open.push_back(operand);
  }
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.prim == Prim::kLoop) {
      const Loop& loop = kernel.loop(node.loop());
      // In a flat loop the grid is the inner loop: every vector would divide.
      bool is_flat = loop.role == LoopRole::kGrid && kernel.body.size() == 1 &&
                     kernel.body[0].body.size() == 1 &&
                     (kernel.body[0].body[0].kind != StmtKind::kFor ||
                      kernel.loop(kernel.body[0].body[0].loop).role == LoopRole::kVector);
      inside[i] = loop.role != LoopRole::kGrid || is_flat;
    }
    for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)}))
      if (inside[static_cast<size_t>(operand)]) inside[i] = true;
    bool divides =
        (node.prim == Prim::kDiv || node.prim == Prim::kRem) && node.type == ScalarType::kIndex;
    if (divides && inside[i] && used[i]) return true;
  }
  return false;
}

// Code size (kernel values) below which the growth by segments does not matter. Chosen: it fits the
// L1 instruction cache of a core. Bytes of a root from which vectors stay aligned. Chosen: beyond
// the last-level cache of most machines, where a line written twice costs bandwidth.
constexpr size_t kLoopFewNodes = 400;
constexpr int64_t kLargeBytes = int64_t{32} << 20;

bool HasSegments(const FusedRegion& region) {
  return std::ranges::any_of(region.instrs, [](const Instr* instr) {
    return instr->op() == Op::kPad || instr->op() == Op::kConcatenate;
  });
}

int64_t RowOf(const FusedRegion& region, const LoopSchedule& schedule) {
  const Dims& dims = DomainOf(*region.roots[0]).dims();
  return ProductOf(dims, dims.size() - schedule.inner, dims.size());
}

// Builds the kernel with another schedule; rejected if fewer operands can be updated in place.
std::optional<BuiltKernel> BuildOtherwise(const FusedRegion& region, const Machine& machine,
                                          const LoopSchedule& schedule, const std::string& name,
                                          const BuiltKernel& whole) {
  BuildOutcome outcome = LoopBuilder(region, machine, schedule, name).Build();
  if (!outcome.built || outcome.built->may_alias.size() < whole.may_alias.size())
    return std::nullopt;
  return std::move(outcome.built);
}

// Splits rows into segments, if it helps.
std::optional<BuiltKernel> BuildSegments(const FusedRegion& region, const Machine& machine,
                                         LoopSchedule schedule, const std::string& name,
                                         const BuiltKernel& whole) {
  int64_t row = RowOf(region, schedule);
  if (row < kLeastCutVectors * machine.Lanes(32) || !HasSegments(region)) return std::nullopt;
  std::vector<int64_t> cuts = LoopBuilder(region, machine, schedule, name).FindCuts();
  if (cuts.empty() || cuts.size() > kMaxCuts) return std::nullopt;
  // In-place or large roots: keep vectors aligned and write nothing twice. The vector around a cut
  // then selects per lane.
  bool aligned = row % schedule.lanes == 0 &&
                 (!whole.may_alias.empty() || region.roots[0]->shape().ByteSize() >= kLargeBytes);
  schedule.cuts = AlignedCuts(cuts, aligned ? schedule.lanes : 1, row);
  if (schedule.cuts.empty()) return std::nullopt;
  std::optional<BuiltKernel> built = BuildOtherwise(region, machine, schedule, name, whole);
  if (built &&
      built->kernel.nodes.size() > std::max(kLoopFewNodes, kMaxGrowth * whole.kernel.nodes.size()))
    return std::nullopt;
  return built;
}

// Full vectors for rows that they do not divide. The last vector overlaps the one before, or, if
// that would prevent updating in place, the remainder gets its own segment.
std::optional<BuiltKernel> BuildFullVectors(const FusedRegion& region, const Machine& machine,
                                            LoopSchedule schedule, const std::string& name,
                                            const BuiltKernel& whole) {
  // Vectors per row from which this pays off. Chosen: the overlap recomputes at most a fifth.
  constexpr int64_t kFewSteps = 4;
  int64_t row = RowOf(region, schedule);
  int64_t full = machine.Lanes(32), lanes = full * InterleaveFactor(machine);
  while (lanes > full && row < kFewSteps * lanes) lanes /= 2;
  if (schedule.lanes >= full || row < kFewSteps * lanes) return std::nullopt;
  schedule.lanes = lanes;
  schedule.has_rest = !whole.may_alias.empty();
  if (schedule.has_rest) schedule.cuts = {row / lanes * lanes};
  return BuildOtherwise(region, machine, schedule, name, whole);
}

// Kernel values. A longer body exceeds the reorder window of a core, so iterations do not overlap
// and two vectors leave stalls. Four are 17% faster (measured with 48 transcendental functions).
constexpr size_t kLongBody = 512;

std::optional<BuiltKernel> BuildFourVectors(const FusedRegion& region, const Machine& machine,
                                            LoopSchedule schedule, const std::string& name,
                                            const BuiltKernel& whole) {
  int64_t row = RowOf(region, schedule);
  if (schedule.lanes != kRegistersOfVector * machine.Lanes(32) || row % (2 * schedule.lanes) != 0 ||
      whole.kernel.nodes.size() < kLongBody)
    return std::nullopt;
  schedule.lanes *= 2;
  return BuildOtherwise(region, machine, schedule, name, whole);
}

}  // namespace

BuildOutcome BuildElementwise(const FusedRegion& region, const Machine& machine,
                              const std::string& name) {
  if (std::string why = WhyNoLoopKernel(region); !why.empty()) return {std::nullopt, why};
  const Dims& dims = DomainOf(*region.roots[0]).dims();
  BuildOutcome flat, last;
  size_t rank = dims.size();
  for (size_t inner = rank; inner + (rank == 0 ? 1 : 0) > 0; --inner) {
    int64_t row = ProductOf(dims, rank - inner, rank);
    // A dimension of size 1 changes nothing.
    if (inner < rank && (dims[rank - inner - 1] == 1 || row < kLoopLeastRow) && flat.built)
      continue;
    LoopSchedule schedule{inner, VectorWidthFor(row, machine)};
    BuildOutcome outcome = LoopBuilder(region, machine, schedule, name).Build();
    if (outcome.built) {
      if (auto segments = BuildSegments(region, machine, schedule, name, *outcome.built))
        outcome.built = std::move(segments);
      else if (auto full = BuildFullVectors(region, machine, schedule, name, *outcome.built))
        outcome.built = std::move(full);
      else if (auto four = BuildFourVectors(region, machine, schedule, name, *outcome.built))
        outcome.built = std::move(four);
    }
    if (!outcome.built || !DividesInside(outcome.built->kernel)) return outcome;
    (flat.built ? last : flat) = std::move(outcome);
    if (rank == 0) break;
  }
  return last.built ? std::move(last) : std::move(flat);
}

}  // namespace tokamak
