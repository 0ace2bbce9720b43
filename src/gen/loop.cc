// The loop generator: every element of the roots by itself.
//
// The elements are counted row-major. The last dimensions are one inner loop, cut into vectors; the
// dimensions before them are the grid. As many dimensions are taken into the inner loop as leave no
// division in it: an elementwise kernel is one flat loop, whatever its rank, and one that reads a
// transposed or broadcast array keeps the loops that it needs. A row that is no multiple of the
// vector ends with a vector that overlaps the one before it: its elements are written twice, alike.
//
// Where an element of what is padded or concatenated comes from depends on its place in the row:
// the row is cut there, and each piece has loops of its own, in which ranges leave nothing to
// decide.

#include <algorithm>

#include "gen/cuts.h"
#include "gen/roots.h"
#include "gen/window.h"

namespace tokamak {
namespace {

// A grid of fewer iterations is cut finer, when they are long.
constexpr int64_t kLoopGridWanted = 256, kLongRow = 4096;
// So many steps of a row do not feel one more, where one has to overlap anyhow.
constexpr int64_t kLoopManySteps = 16;

struct Schedule {
  size_t inner = 0;  // dimensions of the domain that the inner loop runs over
  int64_t lanes = 1;
  std::vector<int64_t> cuts = {};  // of the inner loop, ascending, none at its ends
  // What is left of the row behind the only cut is taken in as few lanes as come out even: nothing
  // is written twice.
  bool has_rest = false;
};

// Lanes for rows of `row` elements: no more than there are, and such as divide the row if that
// costs no more than half of a vector. Long rows take two vectors at a time: what is computed of
// one waits for itself, step by step, and the other fills the time; of short ones four (Neoverse
// V1: Black-Scholes 1.28 times as fast, dropout 1.58).
int64_t LanesFor(int64_t row, const Machine& machine) {
  int64_t vector = std::min(machine.Lanes(32), PowerBelow(row));
  bool is_short = machine.HasShortVectors();
  int64_t together = row < (is_short ? 2 : 8) * vector ? 1 : VectorsTogether(machine);
  auto costs = [&] {
    int64_t lanes = together * vector;
    return row % lanes != 0 && row < (row % vector == 0 ? kLongRow : kLoopManySteps * lanes);
  };
  while (together > 1 && costs()) together /= 2;
  vector *= together;
  for (int64_t fewer = vector; fewer >= 1 && 2 * fewer >= std::min(vector, machine.Lanes(32));
       fewer /= 2)
    if (row % fewer == 0) return fewer;
  return vector;
}

class LoopBuilder {
 public:
  LoopBuilder(const Region& region, const Machine& machine, const Schedule& schedule,
              const std::string& name)
      : region_(region), machine_(machine), schedule_(schedule), b_(name), emitter_(b_, region) {
    const Dims& dims = DomainOf(*region_.roots[0]).dims();
    split_ = dims.size() - schedule_.inner;
    rows_ = ProductOf(dims, 0, split_);
    row_ = ProductOf(dims, split_, dims.size());
  }

  BuildOutcome Build() {
    std::vector<Piece> pieces = Pieces();
    bool exact = true;
    for (const Piece& piece : pieces) exact = exact && IsExact(piece);
    int64_t blocks = pieces.back().first + pieces.back().blocks;
    b_.For("g", LoopRole::kGrid, b_.Index(rows_ * blocks), [&](Scalar g) {
      Scalar row = g / b_.Index(blocks), at = g % b_.Index(blocks);
      for (const Piece& piece : pieces) {
        // All pieces of a row, or the one that this block is of.
        Scalar own = IsWhole() ? b_.Index(0) : at - b_.Index(piece.first);
        b_.If((b_.Index(0) <= own) & (own < b_.Index(piece.blocks)), [&] {
          Run(piece, row, LesserOf(GreaterOf(own, b_.Index(0)), b_.Index(piece.blocks - 1)));
        });
      }
    });
    return FinishLoop(b_, emitter_, region_, rows_ * blocks, exact);
  }

  // Where a row is to be cut: looks at a kernel that has one plain loop through it.
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
  // A part of the row. Its vectors are taken `block` at a time.
  struct Piece {
    int64_t begin, end, lanes, block, blocks;
    int64_t first;  // blocks of the pieces before it
  };

  // The grid's iterations are whole rows, all pieces of each.
  bool IsWhole() const {
    return !schedule_.cuts.empty() && (rows_ >= kLoopGridWanted || row_ < kLongRow);
  }

  static bool IsExact(const Piece& piece) {
    return piece.lanes * piece.block * piece.blocks == piece.end - piece.begin;
  }

  std::vector<Piece> Pieces() const {
    std::vector<Piece> pieces;
    std::vector<int64_t> ends = schedule_.cuts;
    ends.push_back(row_);
    int64_t begin = 0, first = 0;
    for (int64_t end : ends) {
      int64_t lanes = LanesOf(begin, end);
      int64_t steps = (end - begin + lanes - 1) / lanes, block = BlockOf(steps);
      if ((end - begin) % lanes == 0)
        while (steps % block != 0) --block;
      pieces.push_back({begin, end, lanes, block, (steps + block - 1) / block, first});
      if (!IsWhole()) first += pieces.back().blocks;
      begin = end;
    }
    return pieces;
  }

  int64_t LanesOf(int64_t begin, int64_t end) const {
    if (schedule_.cuts.empty() || (schedule_.has_rest && begin == 0)) return schedule_.lanes;
    int64_t size = end - begin;
    return schedule_.has_rest ? std::min(size & -size, machine_.Lanes(32))
                              : LanesFor(size, machine_);
  }

  int64_t BlockOf(int64_t steps) const {
    if (IsWhole()) return steps;
    if (rows_ == 1) return schedule_.cuts.empty() ? 1 : std::min(steps, kLoopGridWanted / 4);
    if (rows_ >= kLoopGridWanted || row_ < kLongRow) return steps;
    int64_t all = (row_ + schedule_.lanes - 1) / schedule_.lanes * rows_;
    return std::clamp<int64_t>(all / kLoopGridWanted, 1, steps);
  }

  // One block of a piece.
  void Run(const Piece& piece, Scalar row, Scalar number) {
    Scalar first = number * b_.Index(piece.block);
    auto step = [&](Scalar k) {
      Scalar begin = (first + k) * b_.Index(piece.lanes) + b_.Index(piece.begin);
      if (!IsExact(piece)) begin = LesserOf(begin, b_.Index(piece.end - piece.lanes));
      if (piece.lanes == 1) return Body(row, begin, false);
      auto vector = [&](bool inside) {
        b_.For("l", LoopRole::kVector, b_.Index(piece.lanes),
               [&](Scalar lane) { Body(row, begin + lane, inside); });
      };
      std::optional<std::pair<int64_t, int64_t>> inside;
      if (schedule_.inner == 1)
        inside = InsideOfWindows(region_, DomainOf(*region_.roots[0]).dims());
      if (!inside || inside->second - inside->first + 1 < piece.lanes) return vector(false);
      // Windows that reach over the ends of rows there are asked for each tap; others are not.
      Scalar between = (b_.Index(inside->first) <= begin) &
                       (begin <= b_.Index(inside->second - piece.lanes + 1));
      b_.If(
          between, [&] { vector(true); }, [&] { vector(false); }, false);
    };
    if (piece.block == 1) return step(b_.Index(0));
    b_.For("k", LoopRole::kSerial, b_.Index(piece.block), step);
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
    emitter_.AssumeInside(inside ? at.back() : Scalar(), dims);
    StoreRoots(b_, emitter_, region_, at, linear);
  }

  const Region& region_;
  const Machine& machine_;
  Schedule schedule_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  size_t split_ = 0;
  int64_t rows_ = 1, row_ = 1;
};

// Whether an index that is computed for each lane or inner step takes a division.
bool DividesInside(const Kernel& kernel) {
  std::vector<bool> inside(kernel.nodes.size());  // depends on a loop that is not the grid's
  std::vector<bool> used(kernel.nodes.size());
  std::vector<const Block*> blocks = {&kernel.body};
  std::vector<ValueId> open;
  while (!blocks.empty()) {
    const Block* block = blocks.back();
    blocks.pop_back();
    for (const Stmt& stmt : *block) {
      for (const Block* inner : {&stmt.head, &stmt.body, &stmt.otherwise}) blocks.push_back(inner);
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
      // A flat loop is the grid's: there too every vector would divide.
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

// Pieces of a row that are worth code of their own, and how much longer it may be for them.
constexpr size_t kMaxCuts = 8, kMaxGrowth = 3, kLoopFewNodes = 400;
constexpr int64_t kLargeBytes = int64_t{32} << 20;

bool HasPieces(const Region& region) {
  return std::ranges::any_of(region.instrs, [](const Instr* instr) {
    return instr->op() == Op::kPad || instr->op() == Op::kConcatenate;
  });
}

int64_t RowOf(const Region& region, const Schedule& schedule) {
  const Dims& dims = DomainOf(*region.roots[0]).dims();
  return ProductOf(dims, dims.size() - schedule.inner, dims.size());
}

// The kernel by another schedule, if as much of it is made in place.
std::optional<BuiltKernel> BuildOtherwise(const Region& region, const Machine& machine,
                                          const Schedule& schedule, const std::string& name,
                                          const BuiltKernel& whole) {
  BuildOutcome outcome = LoopBuilder(region, machine, schedule, name).Build();
  if (!outcome.built || outcome.built->in_place.size() < whole.in_place.size()) return std::nullopt;
  return std::move(outcome.built);
}

// The same rows in pieces, where that helps.
std::optional<BuiltKernel> BuildPieces(const Region& region, const Machine& machine,
                                       Schedule schedule, const std::string& name,
                                       const BuiltKernel& whole) {
  int64_t row = RowOf(region, schedule);
  if (row < 2 * machine.Lanes(32) || !HasPieces(region)) return std::nullopt;
  std::vector<int64_t> cuts = LoopBuilder(region, machine, schedule, name).FindCuts();
  if (cuts.empty() || cuts.size() > kMaxCuts) return std::nullopt;
  // Vectors that stay as they are stay aligned, and none is written twice: for what is made in
  // place or is too large for the caches. What lies around a cut then decides for each lane.
  bool aligned = row % schedule.lanes == 0 &&
                 (!whole.in_place.empty() || region.roots[0]->shape().ByteSize() >= kLargeBytes);
  schedule.cuts = AlignedCuts(cuts, aligned ? schedule.lanes : 1, row);
  if (schedule.cuts.empty()) return std::nullopt;
  std::optional<BuiltKernel> built = BuildOtherwise(region, machine, schedule, name, whole);
  if (built &&
      built->kernel.nodes.size() > std::max(kLoopFewNodes, kMaxGrowth * whole.kernel.nodes.size()))
    return std::nullopt;
  return built;
}

// Rows that no full vector divides, in full vectors: the last one overlaps the one before it or,
// where that would cost being made in place, what is left is taken apart.
std::optional<BuiltKernel> BuildFullVectors(const Region& region, const Machine& machine,
                                            Schedule schedule, const std::string& name,
                                            const BuiltKernel& whole) {
  constexpr int64_t kFewSteps = 4;
  int64_t row = RowOf(region, schedule);
  int64_t full = machine.Lanes(32), lanes = full * VectorsTogether(machine);
  while (lanes > full && row < kFewSteps * lanes) lanes /= 2;
  if (schedule.lanes >= full || row < kFewSteps * lanes) return std::nullopt;
  schedule.lanes = lanes;
  schedule.has_rest = !whole.in_place.empty();
  if (schedule.has_rest) schedule.cuts = {row / lanes * lanes};
  return BuildOtherwise(region, machine, schedule, name, whole);
}

// A body of so many values is longer than what a core looks ahead: it works on one round at a
// time, and two vectors wait for themselves. Four are 17 % faster (48 transcendental functions).
constexpr size_t kLongBody = 512;

std::optional<BuiltKernel> BuildFourVectors(const Region& region, const Machine& machine,
                                            Schedule schedule, const std::string& name,
                                            const BuiltKernel& whole) {
  int64_t row = RowOf(region, schedule);
  if (schedule.lanes != 2 * machine.Lanes(32) || row % (2 * schedule.lanes) != 0 ||
      whole.kernel.nodes.size() < kLongBody)
    return std::nullopt;
  schedule.lanes *= 2;
  return BuildOtherwise(region, machine, schedule, name, whole);
}

}  // namespace

BuildOutcome BuildLoop(const Region& region, const Machine& machine, const std::string& name) {
  if (std::string why = WhyNoLoop(region); !why.empty()) return {std::nullopt, why};
  const Dims& dims = DomainOf(*region.roots[0]).dims();
  BuildOutcome flat, last;
  size_t rank = dims.size();
  for (size_t inner = rank; inner + (rank == 0 ? 1 : 0) > 0; --inner) {
    int64_t row = ProductOf(dims, rank - inner, rank);
    // A dimension of 1 changes nothing; rows of a few elements are no rows.
    if (inner < rank && (dims[rank - inner - 1] == 1 || row < 4) && flat.built) continue;
    Schedule schedule{inner, LanesFor(row, machine)};
    BuildOutcome outcome = LoopBuilder(region, machine, schedule, name).Build();
    if (outcome.built) {
      if (auto pieces = BuildPieces(region, machine, schedule, name, *outcome.built))
        outcome.built = std::move(pieces);
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
