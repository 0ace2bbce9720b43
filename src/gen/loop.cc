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

// Vectors per iteration that a schedule may have. Chosen: with two operands each, they take the 16
// vector registers of AVX2.
constexpr int64_t kCpuLoopMaxUnroll = 8;

// The loops of a kernel. A schedule chooses `lanes`: its vectors per iteration.
struct LoopNest {
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
  LoopBuilder(const FusedRegion& region, const Machine& machine, const LoopNest& nest,
              const std::string& name)
      : region_(region), machine_(machine), nest_(nest), b_(name), emitter_(b_, region) {
    const Dims& dims = DomainOf(*region_.roots[0]).dims();
    split_ = dims.size() - nest_.inner;
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
    return !nest_.cuts.empty() && (rows_ >= kLoopGridWanted || row_ < kLongRow);
  }

  static bool IsExact(const RowSegment& segment) {
    return segment.lanes * segment.block * segment.blocks == segment.end - segment.begin;
  }

  std::vector<RowSegment> RowSegments() const {
    std::vector<RowSegment> segments;
    std::vector<int64_t> ends = nest_.cuts;
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
    if (nest_.cuts.empty() || (nest_.has_rest && begin == 0)) return nest_.lanes;
    int64_t size = end - begin;
    return nest_.has_rest ? std::min(size & -size, machine_.Lanes(32))
                          : VectorWidthFor(size, machine_);
  }

  int64_t BlockOf(int64_t steps) const {
    if (IsWhole()) return steps;
    if (rows_ == 1) return nest_.cuts.empty() ? 1 : std::min(steps, kSegmentVectors);
    if (rows_ >= kLoopGridWanted || row_ < kLongRow) return steps;
    int64_t all = (row_ + nest_.lanes - 1) / nest_.lanes * rows_;
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
      if (nest_.inner == 1) inside = InteriorOfWindows(region_, DomainOf(*region_.roots[0]).dims());
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
  LoopNest nest_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  size_t split_ = 0;
  int64_t rows_ = 1, row_ = 1;
};

// Whether an index computed per lane or inner iteration needs a division.
bool DividesInside(const Kernel& kernel) {
  auto is_division = [](const ScalarNode& node) {
    return (node.prim == Prim::kDiv || node.prim == Prim::kRem) && node.type == ScalarType::kIndex;
  };
  if (std::ranges::none_of(kernel.nodes, is_division)) return false;
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
    if (is_division(node) && inside[i] && used[i]) return true;
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

int64_t RowOf(const FusedRegion& region, const LoopNest& nest) {
  const Dims& dims = DomainOf(*region.roots[0]).dims();
  return ProductOf(dims, dims.size() - nest.inner, dims.size());
}

// Builds the kernel with another loop nest; rejected if fewer operands can be updated in place.
std::optional<BuiltKernel> BuildOtherwise(const FusedRegion& region, const Machine& machine,
                                          const LoopNest& nest, const std::string& name,
                                          const BuiltKernel& whole) {
  BuildOutcome outcome = LoopBuilder(region, machine, nest, name).Build();
  if (!outcome.built || outcome.built->may_alias.size() < whole.may_alias.size())
    return std::nullopt;
  return std::move(outcome.built);
}

// Splits rows into segments, if it helps. As the functions below, sets `nest` if it builds a
// kernel.
std::optional<BuiltKernel> BuildSegments(const FusedRegion& region, const Machine& machine,
                                         LoopNest& nest, const std::string& name,
                                         const BuiltKernel& whole) {
  int64_t row = RowOf(region, nest);
  if (row < kLeastCutVectors * machine.Lanes(32) || !HasSegments(region)) return std::nullopt;
  std::vector<int64_t> cuts = LoopBuilder(region, machine, nest, name).FindCuts();
  if (cuts.empty() || cuts.size() > kMaxCuts) return std::nullopt;
  // In-place or large roots: keep vectors aligned and write nothing twice. The vector around a cut
  // then selects per lane.
  bool aligned = row % nest.lanes == 0 &&
                 (!whole.may_alias.empty() || region.roots[0]->shape().ByteSize() >= kLargeBytes);
  LoopNest next = nest;
  next.cuts = AlignedCuts(cuts, aligned ? nest.lanes : 1, row);
  if (next.cuts.empty()) return std::nullopt;
  std::optional<BuiltKernel> built = BuildOtherwise(region, machine, next, name, whole);
  if (built &&
      built->kernel.nodes.size() > std::max(kLoopFewNodes, kMaxGrowth * whole.kernel.nodes.size()))
    return std::nullopt;
  nest = next;
  return built;
}

// Full vectors for rows that they do not divide. The last vector overlaps the one before, or, if
// that would prevent updating in place, the remainder gets its own segment.
std::optional<BuiltKernel> BuildFullVectors(const FusedRegion& region, const Machine& machine,
                                            LoopNest& nest, const std::string& name,
                                            const BuiltKernel& whole) {
  // Vectors per row from which this pays off. Chosen: the overlap recomputes at most a fifth.
  constexpr int64_t kFewSteps = 4;
  int64_t row = RowOf(region, nest);
  int64_t full = machine.Lanes(32), lanes = full * InterleaveFactor(machine);
  while (lanes > full && row < kFewSteps * lanes) lanes /= 2;
  if (nest.lanes >= full || row < kFewSteps * lanes) return std::nullopt;
  LoopNest next = nest;
  next.lanes = lanes;
  next.has_rest = !whole.may_alias.empty();
  if (next.has_rest) next.cuts = {row / lanes * lanes};
  std::optional<BuiltKernel> built = BuildOtherwise(region, machine, next, name, whole);
  if (built) nest = next;
  return built;
}

// Kernel values. A longer body exceeds the reorder window of a core, so iterations do not overlap
// and two vectors leave stalls. Four are 17% faster (measured with 48 transcendental functions).
constexpr size_t kLongBody = 512;

std::optional<BuiltKernel> BuildFourVectors(const FusedRegion& region, const Machine& machine,
                                            LoopNest& nest, const std::string& name,
                                            const BuiltKernel& whole) {
  int64_t row = RowOf(region, nest);
  if (nest.lanes != kRegistersOfVector * machine.Lanes(32) || row % (2 * nest.lanes) != 0 ||
      whole.kernel.nodes.size() < kLongBody)
    return std::nullopt;
  LoopNest next = nest;
  next.lanes *= 2;
  std::optional<BuiltKernel> built = BuildOtherwise(region, machine, next, name, whole);
  if (built) nest = next;
  return built;
}

// The kernel of a loop nest, with segments or other vectors if they help; `nest` becomes the one
// that was built.
BuildOutcome BuildNest(const FusedRegion& region, const Machine& machine, LoopNest& nest,
                       const std::string& name) {
  BuildOutcome outcome = LoopBuilder(region, machine, nest, name).Build();
  if (!outcome.built) return outcome;
  for (auto* build : {&BuildSegments, &BuildFullVectors, &BuildFourVectors})
    if (std::optional<BuiltKernel> built = build(region, machine, nest, name, *outcome.built)) {
      outcome.built = std::move(built);
      break;
    }
  return outcome;
}

// The preferred kernel, and its loop nest.
BuildOutcome BuildPreferred(const FusedRegion& region, const Machine& machine, LoopNest& nest,
                            const std::string& name) {
  const Dims& dims = DomainOf(*region.roots[0]).dims();
  BuildOutcome flat, last;
  LoopNest flat_nest, last_nest;
  size_t rank = dims.size();
  for (size_t inner = rank; inner + (rank == 0 ? 1 : 0) > 0; --inner) {
    int64_t row = ProductOf(dims, rank - inner, rank);
    // A dimension of size 1 changes nothing.
    if (inner < rank && (dims[rank - inner - 1] == 1 || row < kLoopLeastRow) && flat.built)
      continue;
    nest = {inner, VectorWidthFor(row, machine)};
    BuildOutcome outcome = BuildNest(region, machine, nest, name);
    if (!outcome.built || !DividesInside(outcome.built->kernel)) return outcome;
    (flat.built ? last_nest : flat_nest) = nest;
    (flat.built ? last : flat) = std::move(outcome);
    if (rank == 0) break;
  }
  nest = last.built ? last_nest : flat_nest;
  return last.built ? std::move(last) : std::move(flat);
}

Schedule ScheduleOf(const LoopNest& nest, const Machine& machine) {
  int64_t vector = std::min(nest.lanes, machine.Lanes(32));
  return {.kind = GeneratorKind::kLoop,
          .vector = vector,
          .unroll = nest.lanes / vector,
          .staging = Staging::kMemory};
}

// Why the schedule does not fit a preferred loop nest; empty if it does.
std::string WhyNotNest(const Schedule& to, const LoopNest& preferred, int64_t row,
                       const Machine& machine) {
  auto is_power = [](int64_t x) { return FloorPowerOfTwo(x) == x; };
  if (to.tile_columns != 1 || to.staging != Staging::kMemory)
    return "tile, staging: elements are in memory without tiles";
  if (!is_power(to.vector) || to.vector > machine.Lanes(32))
    return "vector: not a power of two up to " + std::to_string(machine.Lanes(32));
  if (!is_power(to.unroll) || to.unroll > kCpuLoopMaxUnroll)
    return "unroll: not a power of two up to " + std::to_string(kCpuLoopMaxUnroll);
  if (to.vector < machine.Lanes(32) && to.unroll > 1) return "unroll: 1 for shorter vectors";
  if (to.vector * to.unroll > row) return "vector: longer than a row of " + std::to_string(row);
  return preferred.cuts.empty() ? "" : "unroll: its rows are cut into segments";
}

}  // namespace

BuildOutcome BuildElementwise(const FusedRegion& region, const Schedule* schedule,
                              const Machine& machine, const std::string& name) {
  if (std::string why = WhyNoLoopKernel(region); !why.empty()) return {std::nullopt, why};
  LoopNest nest;
  BuildOutcome outcome = BuildPreferred(region, machine, nest, name);
  if (!outcome.built) return outcome;
  outcome.built->schedule = ScheduleOf(nest, machine);
  if (schedule == nullptr || *schedule == outcome.built->schedule) return outcome;
  if (std::string why = WhyNotNest(*schedule, nest, RowOf(region, nest), machine); !why.empty())
    return {std::nullopt, why};
  nest.lanes = schedule->vector * schedule->unroll;
  std::optional<BuiltKernel> built = BuildOtherwise(region, machine, nest, name, *outcome.built);
  if (!built) return {std::nullopt, "vector: fewer results could overwrite operands"};
  built->schedule = *schedule;
  return {std::move(built), ""};
}

std::vector<Schedule> LoopSchedules(const FusedRegion& region, const Machine& machine) {
  std::vector<Schedule> all = TransposeSchedules(region, machine);
  LoopNest nest;
  if (!WhyNoLoopKernel(region).empty() || !BuildPreferred(region, machine, nest, "probe").built)
    return all;
  const Schedule first = ScheduleOf(nest, machine);
  auto add = [&](int64_t vector, int64_t unroll) {
    Schedule next = first;
    next.vector = vector;
    next.unroll = unroll;
    if (next == first || WhyNotNest(next, nest, RowOf(region, nest), machine).empty())
      all.push_back(next);
  };
  add(first.vector, first.unroll);
  add(first.vector, 2 * first.unroll);
  if (first.unroll > 1)
    add(first.vector, first.unroll / 2);
  else if (first.vector > 1)
    add(first.vector / 2, 1);
  return all;
}

}  // namespace tokamak
