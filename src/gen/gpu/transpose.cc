// The transpose of a GPU: a loop that reads an input along another dimension than it writes. A
// block takes a tile of 32 x 32: reads it along the input's own rows into team memory, one column
// wider so that no two threads meet in a bank, and writes it along the result's rows.

#include <algorithm>
#include <cstdlib>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/strides.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kTile = 32, kRows = 8;  // a block has kTile * kRows threads
constexpr size_t kMostTiles = 8;          // of as many inputs

class TransposeBuilder {
 public:
  TransposeBuilder(const Region& region, size_t across, const std::vector<LoadStrides>& turned,
                   const std::string& name)
      : region_(region),
        across_(across),
        turned_(turned),
        dims_(region.roots[0]->shape().dims()),
        last_(dims_.size() - 1),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    Dims grid = dims_;
    grid[across_] = CeilDiv(dims_[across_], kTile);
    grid[last_] = CeilDiv(dims_[last_], kTile);
    int64_t blocks = ProductOf(grid, 0, grid.size());
    for (const LoadStrides& load : turned_)
      tiles_.push_back(b_.Local("tile", StorageType(load.input->shape().type()), Space::kTeam,
                                kTile * (kTile + 1)));
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      Coordinates at = Delinearized(b_, g, grid);
      at[across_] = at[across_] * b_.Index(kTile);
      at[last_] = at[last_] * b_.Index(kTile);
      b_.For("y", LoopRole::kThread, b_.Index(kRows), [&](Scalar y) {
        b_.For("x", LoopRole::kThread, b_.Index(kTile), [&](Scalar x) { Turn(at, x, y); });
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
    at[across_] = at[across_] + along_across;
    at[last_] = at[last_] + along_last;
    return at;
  }
  Scalar IsInside(const Coordinates& at) {
    return (at[across_] < b_.Index(dims_[across_])) & (at[last_] < b_.Index(dims_[last_]));
  }
  // Where an input is read for the element at coordinates.
  Scalar IndexOf(const LoadStrides& load, const Coordinates& at) {
    Scalar index = b_.Index(load.base);
    for (size_t d = 0; d < at.size(); ++d) index = index + at[d] * b_.Index(load.strides[d]);
    return index;
  }

  void Turn(const Coordinates& tile_at, Scalar x, Scalar y) {
    ForRows(y, [&](Scalar r) {
      Coordinates at = Shifted(tile_at, x, r);
      b_.If(IsInside(at), [&] {
        for (size_t i = 0; i < turned_.size(); ++i)
          b_.Store(tiles_[i], r * b_.Index(kTile + 1) + x,
                   emitter_.LoadStored(*turned_[i].input, IndexOf(turned_[i], at)));
      });
    });
    b_.Barrier(Scope::kBlock);
    ForRows(y, [&](Scalar r) {
      Coordinates at = Shifted(tile_at, r, x);
      b_.If(IsInside(at), [&] {
        for (size_t i = 0; i < turned_.size(); ++i) {
          const Instr& input = *turned_[i].input;
          Element stored{b_.Read(tiles_[i], x * b_.Index(kTile + 1) + r), {}};
          emitter_.Provide(input, IndexOf(turned_[i], at),
                           FromStorage(b_, input.shape().type(), stored));
        }
        StoreRoots(b_, emitter_, region_, at, Linearized(b_, at, dims_));
      });
    });
  }

  const Region& region_;
  size_t across_;  // the dimension along which the inputs' elements are neighbours
  const std::vector<LoadStrides>& turned_;
  const Dims& dims_;
  size_t last_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  std::vector<ArrayId> tiles_;
};

// The loads that go through tiles: those whose elements are neighbours along the dimension and
// apart along the last one. Another load of such an input would be read by the way around.
std::vector<LoadStrides> TurnedLoads(const Region& region, const Dims& dims, size_t across) {
  std::vector<LoadStrides> turned, loads = StridesOfLoads(region, dims);
  for (const LoadStrides& load : loads) {
    bool is_only = std::count_if(loads.begin(), loads.end(), [&](const LoadStrides& other) {
                     return other.input == load.input;
                   }) == 1;
    if (load.is_linear && is_only && !IsComplex(load.input->shape().type()) &&
        std::abs(load.strides[across]) == 1 && std::abs(load.strides.back()) > 1 &&
        turned.size() < kMostTiles)
      turned.push_back(load);
  }
  return turned;
}

}  // namespace

BuildOutcome BuildTranspose(const Region& region, const Machine&, const std::string& name) {
  const Dims& dims = region.roots[0]->shape().dims();
  for (const Instr* root : region.roots)
    if (root->shape().dims() != dims || IsSliceUpdate(*root))
      return {std::nullopt, "its roots have different shapes"};
  Across across = FindAcross(region, dims);
  if (across.input == nullptr) return {std::nullopt, "it reads no input across"};
  std::vector<LoadStrides> turned = TurnedLoads(region, dims, across.dimension);
  if (turned.empty() || dims[across.dimension] < kRows || dims.back() < kRows)
    return {std::nullopt, "its tiles would be too small, or too many"};
  return TransposeBuilder(region, across.dimension, turned, name).Build();
}

}  // namespace tokamak::gpu
