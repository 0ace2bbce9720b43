// The transpose of a GPU: a loop that reads an input along another dimension than it writes. A
// block takes a square tile: reads it along the input's own rows into team memory, one column wider
// so that few threads meet in a bank, and writes it along the result's rows; vectors of neighbours
// on both sides where both are aligned.

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/strides.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kTransposeThreads = 256;  // of a block
constexpr size_t kMostTiles = 8;            // of as many inputs
constexpr int64_t kLeast = 8;               // of a side that is worth tiles

// Large tiles keep more bytes under way: of an H200's bandwidth for copies, 64 x 64 by vectors
// reaches 0.97 (0.94 element by element), 32 x 32 0.90. They need enough blocks for all
// multiprocessors, sides that fill them, and memory for several blocks.
struct Tiling {
  int64_t side = kSmall, lanes = 1;

  int64_t along() const { return side / lanes; }                  // threads along a row of a tile
  int64_t across() const { return kTransposeThreads / along(); }  // rows at a time
  int64_t rows() const { return side / across(); }                // of a thread
  int64_t elements() const { return side * (side + 1); }

  static constexpr int64_t kSmall = 32, kLarge = 64, kMostLanes = 4;
  static constexpr int64_t kTeamBytes = 48 << 10;
};

bool Fills(int64_t dim, int64_t side) {
  return dim >= side && (dim % side == 0 || dim >= 4 * side);
}

// A load that goes through a tile.
struct TurnedLoad : LoadStrides {
  bool is_only = true;  // of its input
};

// Neighbours that a thread reads and writes at once: all tiles and rows begin at a multiple.
int64_t LanesOf(const Region& region, const Machine& machine, size_t across,
                const std::vector<TurnedLoad>& turned) {
  const Dims& dims = region.roots[0]->shape().dims();
  int64_t row = std::gcd(dims[across], dims.back());
  int64_t lanes =
      std::min(LanesFor(region, machine, row, ProductOf(dims, 0, dims.size())), Tiling::kMostLanes);
  for (const LoadStrides& load : turned) {
    if (load.strides[across] != 1) return 1;
    lanes = std::gcd(lanes, load.base);
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != across) lanes = std::gcd(lanes, load.strides[d]);
  }
  return lanes;
}

Tiling TilingOf(const Region& region, const Machine& machine, size_t across,
                const std::vector<TurnedLoad>& turned) {
  const Dims& dims = region.roots[0]->shape().dims();
  Tiling large{.side = Tiling::kLarge, .lanes = LanesOf(region, machine, across, turned)};
  int64_t tiles = ProductOf(dims, 0, dims.size()) / (large.side * large.side), bytes = 0;
  for (const LoadStrides& load : turned)
    bytes += large.elements() * BytesOf(StorageType(load.input->shape().type()));
  bool fits = Fills(dims[across], large.side) && Fills(dims.back(), large.side) &&
              tiles >= 2 * machine.cores && bytes <= Tiling::kTeamBytes;
  return fits ? large : Tiling{};
}

class TransposeBuilder {
 public:
  TransposeBuilder(const Region& region, const Tiling& tiling, size_t across,
                   const std::vector<TurnedLoad>& turned, const std::string& name)
      : region_(region),
        tiling_(tiling),
        across_(across),
        turned_(turned),
        dims_(region.roots[0]->shape().dims()),
        last_(dims_.size() - 1),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    Dims grid = dims_;
    grid[across_] = CeilDiv(dims_[across_], tiling_.side);
    grid[last_] = CeilDiv(dims_[last_], tiling_.side);
    int64_t blocks = ProductOf(grid, 0, grid.size());
    for (const LoadStrides& load : turned_)
      tiles_.push_back(b_.Local("tile", StorageType(load.input->shape().type()), Space::kTeam,
                                tiling_.elements()));
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      Coordinates at = Delinearized(b_, g, grid);
      at[across_] = at[across_] * b_.Index(tiling_.side);
      at[last_] = at[last_] * b_.Index(tiling_.side);
      b_.For("y", LoopRole::kThread, b_.Index(tiling_.across()), [&](Scalar y) {
        b_.For("x", LoopRole::kThread, b_.Index(tiling_.along()),
               [&](Scalar x) { Turn(at, x * b_.Index(tiling_.lanes), y); });
      });
    });
    BuildOutcome outcome = FinishLoop(b_, emitter_, region_, blocks, /*exact=*/false);
    if (outcome.built) FinishKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  // Runs body for the rows of a tile that a thread has.
  template <typename Body>
  void ForRows(Scalar y, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(tiling_.rows()),
           [&](Scalar i) { body(i * b_.Index(tiling_.across()) + y); });
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

  // What index a place of a tile has in team memory.
  Scalar InTile(Scalar row, Scalar column) { return row * b_.Index(tiling_.side + 1) + column; }

  // The thread whose vectors begin at x of the rows of a tile.
  void Turn(const Coordinates& tile_at, Scalar x, Scalar y) {
    ForRows(y, [&](Scalar r) {
      b_.If(IsInside(Shifted(tile_at, x, r)), [&] {
        ForLanes(b_, tiling_.lanes, [&](Scalar lane) {
          Coordinates at = Shifted(tile_at, x + lane, r);
          for (size_t i = 0; i < turned_.size(); ++i)
            b_.Store(tiles_[i], InTile(r, x + lane),
                     emitter_.LoadStored(*turned_[i].input, IndexOf(turned_[i], at)));
        });
      });
    });
    b_.Barrier(Scope::kBlock);
    ForRows(y, [&](Scalar r) {
      b_.If(IsInside(Shifted(tile_at, r, x)), [&] {
        ForLanes(b_, tiling_.lanes, [&](Scalar lane) {
          Coordinates at = Shifted(tile_at, r, x + lane);
          for (size_t i = 0; i < turned_.size(); ++i) {
            const Instr& input = *turned_[i].input;
            Element stored{b_.Read(tiles_[i], InTile(x + lane, r)), {}};
            emitter_.Provide(input, IndexOf(turned_[i], at),
                             FromStorage(b_, input.shape().type(), stored), !turned_[i].is_only);
          }
          StoreRoots(b_, emitter_, region_, at, Linearized(b_, at, dims_));
        });
      });
    });
  }

  const Region& region_;
  Tiling tiling_;
  size_t across_;  // the dimension along which the inputs' elements are neighbours
  const std::vector<TurnedLoad>& turned_;
  const Dims& dims_;
  size_t last_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  std::vector<ArrayId> tiles_;
};

// The loads that go through tiles: those whose elements are neighbours along the dimension and
// apart along the last one. One of an input: others of it are read as they are.
std::vector<TurnedLoad> TurnedLoads(const Region& region, const Dims& dims, size_t across) {
  std::vector<LoadStrides> loads = StridesOfLoads(region, dims);
  std::vector<TurnedLoad> turned;
  for (const LoadStrides& load : loads) {
    auto of_input = [&](const LoadStrides& other) { return other.input == load.input; };
    if (load.is_linear && !IsComplex(load.input->shape().type()) &&
        std::abs(load.strides[across]) == 1 && std::abs(load.strides.back()) > 1 &&
        turned.size() < kMostTiles && std::none_of(turned.begin(), turned.end(), of_input))
      turned.push_back({load, std::count_if(loads.begin(), loads.end(), of_input) == 1});
  }
  return turned;
}

}  // namespace

BuildOutcome BuildTranspose(const Region& region, const Machine& machine, const std::string& name) {
  const Dims& dims = region.roots[0]->shape().dims();
  for (const Instr* root : region.roots)
    if (root->shape().dims() != dims || IsSliceUpdate(*root))
      return {std::nullopt, "its roots have different shapes"};
  Across across = FindAcross(region, dims);
  if (across.input == nullptr) return {std::nullopt, "it reads no input across"};
  std::vector<TurnedLoad> turned = TurnedLoads(region, dims, across.dimension);
  if (turned.empty() || dims[across.dimension] < kLeast || dims.back() < kLeast)
    return {std::nullopt, "its tiles would be too small, or too many"};
  Tiling tiling = TilingOf(region, machine, across.dimension, turned);
  return TransposeBuilder(region, tiling, across.dimension, turned, name).Build();
}

}  // namespace tokamak::gpu
