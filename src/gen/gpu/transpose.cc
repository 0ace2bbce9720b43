// The transpose of a GPU: a loop that reads an input along another dimension than it writes. A
// block takes a tile of 32 x 32: reads it along the input's own rows into team memory, one column
// wider so that no two threads meet in a bank, and writes it along the result's rows.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/strides.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kTile = 32, kRows = 8;  // a block has kTile * kRows threads

class TransposeBuilder {
 public:
  TransposeBuilder(const Region& region, const Across& across, const std::string& name)
      : region_(region),
        across_(across),
        dims_(region.roots[0]->shape().dims()),
        last_(dims_.size() - 1),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    Dims grid = dims_;
    grid[across_.dimension] = CeilDiv(dims_[across_.dimension], kTile);
    grid[last_] = CeilDiv(dims_[last_], kTile);
    int64_t blocks = ProductOf(grid, 0, grid.size());
    ArrayId tile = b_.Local("tile", StorageType(across_.input->shape().type()), Space::kTeam,
                            kTile * (kTile + 1));
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      Coordinates at = Delinearized(b_, g, grid);
      at[across_.dimension] = at[across_.dimension] * b_.Index(kTile);
      at[last_] = at[last_] * b_.Index(kTile);
      b_.For("y", LoopRole::kThread, b_.Index(kRows), [&](Scalar y) {
        b_.For("x", LoopRole::kThread, b_.Index(kTile), [&](Scalar x) { Turn(at, tile, x, y); });
      });
    });
    BuildOutcome outcome = FinishLoop(b_, emitter_, region_, blocks, /*exact=*/false);
    if (outcome.built) FinishKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  // Runs body for the rows of a tile that a thread has: r of kTile, where the place is inside.
  template <typename Body>
  void ForRows(Scalar y, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(kTile / kRows),
           [&](Scalar i) { body(i * b_.Index(kRows) + y); });
  }

  Coordinates Shifted(const Coordinates& tile, Scalar along_across, Scalar along_last) {
    Coordinates at = tile;
    at[across_.dimension] = at[across_.dimension] + along_across;
    at[last_] = at[last_] + along_last;
    return at;
  }
  Scalar IsInside(const Coordinates& at) {
    return (at[across_.dimension] < b_.Index(dims_[across_.dimension])) &
           (at[last_] < b_.Index(dims_[last_]));
  }
  // Where the input is read for the element at coordinates.
  Scalar IndexOf(const Coordinates& at) {
    Scalar index = b_.Index(across_.base);
    for (size_t d = 0; d < at.size(); ++d) index = index + at[d] * b_.Index(across_.strides[d]);
    return index;
  }

  void Turn(const Coordinates& tile_at, ArrayId tile, Scalar x, Scalar y) {
    ForRows(y, [&](Scalar r) {
      Coordinates at = Shifted(tile_at, x, r);
      b_.If(IsInside(at), [&] {
        b_.Store(tile, r * b_.Index(kTile + 1) + x,
                 emitter_.LoadStored(*across_.input, IndexOf(at)));
      });
    });
    b_.Barrier(Scope::kBlock);
    ForRows(y, [&](Scalar r) {
      Coordinates at = Shifted(tile_at, r, x);
      b_.If(IsInside(at), [&] {
        Element stored{b_.Read(tile, x * b_.Index(kTile + 1) + r), {}};
        emitter_.Provide(*across_.input, IndexOf(at),
                         FromStorage(b_, across_.input->shape().type(), stored));
        StoreRoots(b_, emitter_, region_, at, Linearized(b_, at, dims_));
      });
    });
  }

  const Region& region_;
  const Across& across_;
  const Dims& dims_;
  size_t last_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

}  // namespace

BuildOutcome BuildTranspose(const Region& region, const Machine&, const std::string& name) {
  const Dims& dims = region.roots[0]->shape().dims();
  for (const Instr* root : region.roots)
    if (root->shape().dims() != dims || IsSliceUpdate(*root))
      return {std::nullopt, "its roots have different shapes"};
  Across across = FindAcross(region, dims);
  if (across.input == nullptr) return {std::nullopt, "it reads no input across"};
  // Another use of the input would be read by the way around.
  if (!across.is_only || IsComplex(across.input->shape().type()) ||
      dims[across.dimension] < kRows || dims.back() < kRows)
    return {std::nullopt, "its tiles would be too small, or too many"};
  return TransposeBuilder(region, across, name).Build();
}

}  // namespace tokamak::gpu
