// The loop generator: every element of the roots by itself.
//
// The elements are counted row-major. The last dimensions are one inner loop, cut into vectors; the
// dimensions before them are the grid. As many dimensions are taken into the inner loop as leave no
// division in it: an elementwise kernel is one flat loop, whatever its rank, and one that reads a
// transposed or broadcast array keeps the loops that it needs. A row that is no multiple of the
// vector ends with a vector that overlaps the one before it: its elements are written twice, alike.

#include <algorithm>

#include "gen/roots.h"

namespace tokamak {
namespace {

// A grid of fewer iterations is cut finer, when they are long.
constexpr int64_t kGridWanted = 256, kLongRow = 4096;

struct Schedule {
  size_t inner = 0;  // dimensions of the domain that the inner loop runs over
  int64_t lanes = 1;
};

class LoopBuilder {
 public:
  LoopBuilder(const Region& region, const Schedule& schedule, const std::string& name)
      : region_(region), schedule_(schedule), b_(name), emitter_(b_, region) {}

  BuildOutcome Build() {
    const Dims& dims = DomainOf(*region_.roots[0]).dims();
    split_ = dims.size() - schedule_.inner;
    rows_ = ProductOf(dims, 0, split_);
    row_ = ProductOf(dims, split_, dims.size());
    int64_t lanes = schedule_.lanes, steps = (row_ + lanes - 1) / lanes;
    bool exact = row_ % lanes == 0;
    int64_t block = steps;
    if (rows_ == 1) {
      block = 1;
    } else if (rows_ < kGridWanted && row_ >= kLongRow) {
      block = std::max<int64_t>(1, steps * rows_ / kGridWanted);
      if (exact)
        while (steps % block != 0) --block;
    }
    int64_t blocks = (steps + block - 1) / block;
    int64_t grid = rows_ * blocks;
    b_.For("g", LoopRole::kGrid, b_.Index(grid), [&](Scalar g) {
      Scalar row = g / b_.Index(blocks), first = g % b_.Index(blocks) * b_.Index(block);
      auto step = [&](Scalar k) {
        Scalar begin = (first + k) * b_.Index(lanes);
        if (!exact) begin = LesserOf(begin, b_.Index(row_ - lanes));
        if (lanes == 1) return Body(row, begin);
        b_.For("l", LoopRole::kVector, b_.Index(lanes),
               [&](Scalar lane) { Body(row, begin + lane); });
      };
      if (block == 1) return step(b_.Index(0));
      b_.For("k", LoopRole::kSerial, b_.Index(block), step);
    });
    return FinishLoop(b_, emitter_, region_, grid, exact);
  }

 private:
  // All roots at one element of the domain.
  void Body(Scalar row, Scalar inner) {
    const Dims& dims = DomainOf(*region_.roots[0]).dims();
    Dims outer_dims(dims.begin(), dims.begin() + static_cast<int64_t>(split_));
    Dims inner_dims(dims.begin() + static_cast<int64_t>(split_), dims.end());
    Coordinates at = Delinearized(b_, row, outer_dims);
    Coordinates rest = Delinearized(b_, inner, inner_dims);
    at.insert(at.end(), rest.begin(), rest.end());
    Scalar linear = row * b_.Index(row_) + inner;
    StoreRoots(b_, emitter_, region_, at, linear);
  }

  const Region& region_;
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

// Lanes for rows of `row` elements: no more than there are, and such as divide the row if that
// costs no more than half of a vector. Long rows take two vectors at a time: what is computed of
// one waits for itself, step by step, and the other fills the time.
int64_t LanesFor(int64_t row, const Machine& machine) {
  int64_t vector = std::min(machine.Lanes(32), PowerBelow(row));
  if (row >= 8 * vector)
    if (row % (2 * vector) == 0 || row >= kLongRow) vector *= 2;
  for (int64_t fewer = vector; fewer >= 1 && 2 * fewer >= std::min(vector, machine.Lanes(32));
       fewer /= 2)
    if (row % fewer == 0) return fewer;
  return vector;
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
    BuildOutcome outcome = LoopBuilder(region, {inner, LanesFor(row, machine)}, name).Build();
    if (!outcome.built || !DividesInside(outcome.built->kernel)) return outcome;
    (flat.built ? last : flat) = std::move(outcome);
    if (rank == 0) break;
  }
  return last.built ? std::move(last) : std::move(flat);
}

}  // namespace tokamak
