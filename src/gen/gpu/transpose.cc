// GPU transposes: a loop that reads an input along another dimension than it writes. A block loads
// a square tile along the input's rows into shared memory, with rows padded by one element against
// bank conflicts, and writes it along the result's rows. Both sides use vector accesses if they are
// aligned.

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/strides.h"

namespace tokamak::gpu {
namespace {

// Inputs that go through tiles. Chosen: 8 tiles of 32 x 33 f32 take 33 of 48 KiB of shared memory.
constexpr size_t kMaxTiles = 8;
// Minimum side of an array, in elements: a memory sector of f32 (hardware: 32 bytes).
constexpr int64_t kMinSide = 8;
// Large tiles per SM from which they are used. Chosen: one block loads while another stores.
constexpr int64_t kLargeTilesPerSm = 2;

// Large tiles have more bytes in flight. Fraction of the copy bandwidth of an H200: 64 x 64 with
// vector accesses 0.97 (0.94 with scalar ones), 32 x 32 0.90. They require enough blocks for all
// SMs, sides that fill them, and shared memory for several blocks.
struct Tiling {
  int64_t side = kSmall, lanes = 1, threads = kBlockThreads;

  int64_t along() const { return side / lanes; }                // threads along a row of a tile
  int64_t transposed_dim() const { return threads / along(); }  // rows at a time
  int64_t rows() const { return side / transposed_dim(); }      // per thread
  int64_t elements() const { return side * (side + 1); }

  // Sides of tiles and maximum vector width, in elements. Chosen: a side of 32 is a warp; 64 has
  // more bytes in flight (above); 4 elements of f32 are the widest access.
  static constexpr int64_t kSmall = 32, kLarge = 64, kMaxLanes = 4;
};

bool Fills(int64_t dim, int64_t side) {
  // Tiles of a dimension from which a last, partial one is negligible. Chosen: it wastes at most a
  // fifth of the threads' work.
  constexpr int64_t kManyTiles = 4;
  return dim >= side && (dim % side == 0 || dim >= kManyTiles * side);
}

// A load that goes through a tile.
struct TransposedLoad : LoadStrides {
  bool is_only_load = true;  // the only load of its input
};

// Vector width of accesses: all tiles and rows start at a multiple of it.
int64_t LanesOf(const FusedRegion& region, const Machine& machine, size_t transposed_dim,
                const std::vector<TransposedLoad>& transposed) {
  const Dims& dims = region.roots[0]->shape().dims();
  int64_t row = std::gcd(dims[transposed_dim], dims.back());
  int64_t lanes = std::min(VectorWidthFor(region, machine, row, ProductOf(dims, 0, dims.size())),
                           Tiling::kMaxLanes);
  for (const LoadStrides& load : transposed) {
    if (load.strides[transposed_dim] != 1) return 1;
    lanes = std::gcd(lanes, load.base);
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != transposed_dim) lanes = std::gcd(lanes, load.strides[d]);
  }
  return lanes;
}

int64_t SharedBytesOf(const Tiling& tiling, const std::vector<TransposedLoad>& transposed) {
  int64_t bytes = 0;
  for (const LoadStrides& load : transposed)
    bytes += tiling.elements() * BytesOf(StorageType(load.input->shape().type()));
  return bytes;
}

Tiling PreferredTiling(const FusedRegion& region, const Machine& machine, size_t transposed_dim,
                       const std::vector<TransposedLoad>& transposed) {
  const Dims& dims = region.roots[0]->shape().dims();
  Tiling large{.side = Tiling::kLarge,
               .lanes = LanesOf(region, machine, transposed_dim, transposed)};
  int64_t tiles = ProductOf(dims, 0, dims.size()) / (large.side * large.side);
  bool fits = Fills(dims[transposed_dim], large.side) && Fills(dims.back(), large.side) &&
              tiles >= kLargeTilesPerSm * machine.cores &&
              SharedBytesOf(large, transposed) <= kStaticSharedBytes;
  return fits ? large : Tiling{};
}

// Why the schedule does not fit; empty if it does. `widest`: lanes that the arrays allow.
std::string WhyNotTiling(const Schedule& to, int64_t widest,
                         const std::vector<TransposedLoad>& transposed) {
  auto is_power = [](int64_t x) { return CeilPowerOfTwo(x) == x; };
  if (to.staging != Staging::kShared || to.unroll != 1)
    return "staging, unroll: tiles are in shared memory, and their rows are all unrolled";
  if (to.tile_rows != to.tile_columns || !is_power(to.tile_rows) || to.tile_rows < kWarpSize)
    return "tile: not a square whose side is a power of two from " + std::to_string(kWarpSize);
  if (!is_power(to.vector) || to.vector > widest)
    return "vector: not a power of two up to " + std::to_string(widest);
  Tiling tiling{.side = to.tile_rows, .lanes = to.vector, .threads = to.threads};
  if (!is_power(to.threads) || to.threads > kMaxThreadsPerBlock || to.threads < tiling.along() ||
      tiling.transposed_dim() > tiling.side)
    return "threads: not a power of two, or not whole rows of a tile";
  return SharedBytesOf(tiling, transposed) <= kStaticSharedBytes
             ? ""
             : "tile: it takes more than " + std::to_string(kStaticSharedBytes) +
                   " bytes of shared memory";
}

class TransposeBuilder {
 public:
  TransposeBuilder(const FusedRegion& region, const Tiling& tiling, size_t transposed_dim,
                   const std::vector<TransposedLoad>& transposed, const std::string& name)
      : region_(region),
        tiling_(tiling),
        transposed_dim_(transposed_dim),
        transposed_(transposed),
        dims_(region.roots[0]->shape().dims()),
        last_(dims_.size() - 1),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    Dims grid = dims_;
    grid[transposed_dim_] = CeilDiv(dims_[transposed_dim_], tiling_.side);
    grid[last_] = CeilDiv(dims_[last_], tiling_.side);
    int64_t blocks = ProductOf(grid, 0, grid.size());
    for (const LoadStrides& load : transposed_)
      tiles_.push_back(b_.Local("tile", StorageType(load.input->shape().type()), Space::kShared,
                                tiling_.elements()));
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      Coordinates at = Delinearized(b_, g, grid);
      at[transposed_dim_] = at[transposed_dim_] * b_.Index(tiling_.side);
      at[last_] = at[last_] * b_.Index(tiling_.side);
      b_.For("y", LoopRole::kThread, b_.Index(tiling_.transposed_dim()), [&](Scalar y) {
        b_.For("x", LoopRole::kThread, b_.Index(tiling_.along()),
               [&](Scalar x) { Transpose(at, x * b_.Index(tiling_.lanes), y); });
      });
    });
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, blocks, /*writes_once=*/false);
    if (!outcome.built) return outcome;
    FinalizeGpuKernel(outcome.built->kernel);
    outcome.built->schedule = {.kind = GeneratorKind::kLoop,
                               .tile_rows = tiling_.side,
                               .tile_columns = tiling_.side,
                               .threads = tiling_.threads,
                               .vector = tiling_.lanes};
    return outcome;
  }

 private:
  // Calls body for the rows of a tile that belong to a thread.
  template <typename Body>
  void ForRows(Scalar y, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(tiling_.rows()),
           [&](Scalar i) { body(i * b_.Index(tiling_.transposed_dim()) + y); });
  }

  Coordinates Shifted(const Coordinates& tile, Scalar along_transposed, Scalar along_last) {
    Coordinates at = tile;
    at[transposed_dim_] = at[transposed_dim_] + along_transposed;
    at[last_] = at[last_] + along_last;
    return at;
  }
  Scalar IsInside(const Coordinates& at) {
    return (at[transposed_dim_] < b_.Index(dims_[transposed_dim_])) &
           (at[last_] < b_.Index(dims_[last_]));
  }
  // The index of an input for the element at coordinates.
  Scalar IndexOf(const LoadStrides& load, const Coordinates& at) {
    Scalar index = b_.Index(load.base);
    for (size_t d = 0; d < at.size(); ++d) index = index + at[d] * b_.Index(load.strides[d]);
    return index;
  }

  // The index of a tile element in shared memory.
  Scalar InTile(Scalar row, Scalar column) { return row * b_.Index(tiling_.side + 1) + column; }

  // Code of the thread whose vectors start at x in the rows of a tile.
  void Transpose(const Coordinates& tile_at, Scalar x, Scalar y) {
    ForRows(y, [&](Scalar r) {
      b_.If(IsInside(Shifted(tile_at, x, r)), [&] {
        ForLanes(b_, tiling_.lanes, [&](Scalar lane) {
          Coordinates at = Shifted(tile_at, x + lane, r);
          for (size_t i = 0; i < transposed_.size(); ++i)
            b_.Store(tiles_[i], InTile(r, x + lane),
                     emitter_.LoadStored(*transposed_[i].input, IndexOf(transposed_[i], at)));
        });
      });
    });
    b_.Barrier(BarrierScope::kBlock);
    ForRows(y, [&](Scalar r) {
      b_.If(IsInside(Shifted(tile_at, r, x)), [&] {
        ForLanes(b_, tiling_.lanes, [&](Scalar lane) {
          Coordinates at = Shifted(tile_at, r, x + lane);
          for (size_t i = 0; i < transposed_.size(); ++i) {
            const Instr& input = *transposed_[i].input;
            Element stored{b_.Read(tiles_[i], InTile(x + lane, r)), {}};
            emitter_.OverrideLoad(input, IndexOf(transposed_[i], at),
                                  FromStorage(b_, input.shape().type(), stored),
                                  !transposed_[i].is_only_load);
          }
          StoreRoots(b_, emitter_, region_, at, Linearized(b_, at, dims_));
        });
      });
    });
  }

  const FusedRegion& region_;
  Tiling tiling_;
  size_t transposed_dim_;  // the dimension along which the inputs are contiguous
  const std::vector<TransposedLoad>& transposed_;
  const Dims& dims_;
  size_t last_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  std::vector<ArrayId> tiles_;
};

// The loads that go through tiles: contiguous along the dimension and strided along the last one.
// At most one per input; other loads of it are direct.
std::vector<TransposedLoad> TransposedLoads(const FusedRegion& region, const Dims& dims,
                                            size_t transposed_dim) {
  std::vector<LoadStrides> loads = StridesOfLoads(region, dims);
  std::vector<TransposedLoad> transposed;
  for (const LoadStrides& load : loads) {
    auto of_input = [&](const LoadStrides& other) { return other.input == load.input; };
    if (load.is_affine && !IsComplex(load.input->shape().type()) &&
        std::abs(load.strides[transposed_dim]) == 1 && std::abs(load.strides.back()) > 1 &&
        transposed.size() < kMaxTiles &&
        std::none_of(transposed.begin(), transposed.end(), of_input))
      transposed.push_back({load, std::count_if(loads.begin(), loads.end(), of_input) == 1});
  }
  return transposed;
}

}  // namespace

BuildOutcome BuildTranspose(const FusedRegion& region, const Schedule* schedule,
                            const Machine& machine, const std::string& name) {
  const Dims& dims = region.roots[0]->shape().dims();
  for (const Instr* root : region.roots)
    if (root->shape().dims() != dims || IsSliceUpdate(*root))
      return {std::nullopt, "its roots have different shapes"};
  TransposedInput transposed_dim = FindTransposedInput(region, dims);
  if (transposed_dim.input == nullptr) return {std::nullopt, "it reads no transposed input"};
  std::vector<TransposedLoad> transposed = TransposedLoads(region, dims, transposed_dim.dimension);
  if (transposed.empty() || dims[transposed_dim.dimension] < kMinSide || dims.back() < kMinSide)
    return {std::nullopt, "its tiles would be too small, or too many"};
  Tiling tiling = PreferredTiling(region, machine, transposed_dim.dimension, transposed);
  if (schedule != nullptr) {
    int64_t widest = LanesOf(region, machine, transposed_dim.dimension, transposed);
    if (std::string why = WhyNotTiling(*schedule, widest, transposed); !why.empty())
      return {std::nullopt, why};
    tiling = {schedule->tile_rows, schedule->vector, schedule->threads};
  }
  return TransposeBuilder(region, tiling, transposed_dim.dimension, transposed, name).Build();
}

}  // namespace tokamak::gpu
