// The CPU transpose generator: a loop that reads an input along another dimension than it writes.
// Both are walked in tiles, so that every cache line a tile touches is fully used:
//
//   for each tile (grid): rows of dimension `d` x a segment of the last dimension
//     for the segment, a vector at a time
//       for its rows
//
// Tiles at the end overlap the ones before them. If little is computed, squares of as many rows as
// a vector has lanes are transposed in registers with shuffles (by the backend), and the input is
// read along its own rows.

#include <algorithm>

#include "gen/element.h"
#include "gen/generator.h"
#include "gen/roots.h"
#include "gen/strides.h"

namespace tokamak {
namespace {

// Rows of a tile, and bytes of each. Chosen: a cache line holds 16 floats, and a tile of 16 x 64
// floats uses 64 lines on either side.
constexpr int64_t kTileRows = 16, kTileBytes = 256;

class TransposeBuilder {
 public:
  TransposeBuilder(const FusedRegion& region, const Schedule& schedule, size_t transposed_input,
                   const std::string& name)
      : region_(region),
        schedule_(schedule),
        transposed_(transposed_input),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    const Dims& dims = region_.roots[0]->shape().dims();
    size_t last = dims.size() - 1;
    int64_t lanes = schedule_.vector, rows = schedule_.tile_rows, width = schedule_.tile_columns;
    int64_t vectors = width / lanes;
    // The grid: tiles along both dimensions, and all other dimensions.
    Dims grid = dims;
    grid[transposed_] = (dims[transposed_] + rows - 1) / rows;
    grid[last] = (dims[last] + width - 1) / width;
    int64_t grid_size = ProductOf(grid, 0, grid.size());
    b_.For("tile", LoopRole::kGrid, b_.Index(grid_size), [&](Scalar g) {
      Coordinates tile = Delinearized(b_, g, grid);
      Scalar row = LesserOf(tile[transposed_] * b_.Index(rows), b_.Index(dims[transposed_] - rows));
      b_.For("v", LoopRole::kSerial, b_.Index(vectors), [&](Scalar v) {
        Scalar begin = LesserOf(tile[last] * b_.Index(width) + v * b_.Index(lanes),
                                b_.Index(dims[last] - lanes));
        b_.For("r", LoopRole::kSerial, b_.Index(rows), [&](Scalar r) {
          tile[transposed_] = row + r;
          ForLanes(lanes, [&](Scalar lane) {
            Coordinates at = tile;
            at[last] = begin + lane;
            Store(at);
          });
        });
      });
    });
    return FinishRegionKernel(b_, emitter_, region_, grid_size, false);
  }

 private:
  template <typename Body>
  void ForLanes(int64_t lanes, Body&& body) {
    if (lanes == 1) return body(b_.Index(0));
    b_.For("l", LoopRole::kVector, b_.Index(lanes), body);
  }

  void Store(const Coordinates& at) {
    std::vector<Element> values;
    for (const Instr* root : region_.roots) values.push_back(emitter_.At(*root, at));
    for (size_t i = 0; i < values.size(); ++i) emitter_.Store(*region_.roots[i], 0, at, values[i]);
  }

  const FusedRegion& region_;
  const Schedule& schedule_;
  size_t transposed_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

// Lanes of a vector, and side of a square, at least. Chosen: the shuffles of a 2 x 2 square cost as
// much as scalar accesses.
constexpr int64_t kMinSquareSide = 4;
// Squares that a kernel transposes in sequence along the last dimension. Chosen: lines of 128 to
// 256 bytes are written, which hardware combines.
constexpr int64_t kSquares = 4;
// Operations per element up to which unrolling for each row of a square pays off. Chosen: beyond,
// the code of all rows is large and computation hides the strided accesses.
constexpr int64_t kMaxSquareFlops = 8;

class SquareBuilder {
 public:
  SquareBuilder(const FusedRegion& region, const TransposedInput& transposed_input,
                const Schedule& schedule, const std::string& name)
      : region_(region),
        transposed_(transposed_input),
        lanes_(schedule.vector),
        width_(schedule.tile_columns),
        dims_(region.roots[0]->shape().dims()),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    size_t last = dims_.size() - 1;
    int64_t squares = width_ / lanes_;
    Dims grid = dims_;
    grid[transposed_.dimension] = (dims_[transposed_.dimension] + lanes_ - 1) / lanes_;
    grid[last] = (dims_[last] + width_ - 1) / width_;
    ArrayId square = b_.Local("square", StorageType(transposed_.input->shape().type()),
                              Space::kRegisters, lanes_ * lanes_);
    int64_t grid_size = ProductOf(grid, 0, grid.size());
    b_.For("tile", LoopRole::kGrid, b_.Index(grid_size), [&](Scalar g) {
      Coordinates tile = Delinearized(b_, g, grid);
      size_t d = transposed_.dimension;
      tile[d] = LesserOf(tile[d] * b_.Index(lanes_), b_.Index(dims_[d] - lanes_));
      Scalar begin = tile[last] * b_.Index(width_);
      b_.For("s", LoopRole::kSerial, b_.Index(squares), [&](Scalar s) {
        tile[last] = LesserOf(begin + s * b_.Index(lanes_), b_.Index(dims_[last] - lanes_));
        Transpose(tile, square);
      });
    });
    return FinishRegionKernel(b_, emitter_, region_, grid_size, false);
  }

 private:
  template <typename Body>
  void ForSquare(Body&& body) {
    b_.For("k", LoopRole::kUnrolled, b_.Index(lanes_), [&](Scalar k) {
      b_.For("l", LoopRole::kVector, b_.Index(lanes_), [&](Scalar l) { body(k, l); });
    });
  }

  // The index of the input for the element at coordinates.
  Scalar IndexOf(const Coordinates& at) {
    Scalar index = b_.Index(transposed_.base);
    for (size_t d = 0; d < at.size(); ++d) index = index + at[d] * b_.Index(transposed_.strides[d]);
    return index;
  }

  void Transpose(const Coordinates& tile, ArrayId square) {
    size_t last = dims_.size() - 1, d = transposed_.dimension;
    auto shifted = [&](Scalar along_d, Scalar along_last) {
      Coordinates at = tile;
      at[d] = at[d] + along_d;
      at[last] = at[last] + along_last;
      return at;
    };
    ForSquare([&](Scalar k, Scalar l) {
      Scalar loaded = emitter_.LoadStored(*transposed_.input, IndexOf(shifted(l, k)));
      b_.Store(square, k * b_.Index(lanes_) + l, loaded);
    });
    ForSquare([&](Scalar k, Scalar l) {
      Coordinates at = shifted(k, l);
      Element stored{b_.Read(square, l * b_.Index(lanes_) + k), {}};
      emitter_.OverrideLoad(*transposed_.input, IndexOf(at),
                            FromStorage(b_, transposed_.input->shape().type(), stored));
      std::vector<Element> values;
      for (const Instr* root : region_.roots) values.push_back(emitter_.At(*root, at));
      for (size_t i = 0; i < values.size(); ++i)
        emitter_.Store(*region_.roots[i], 0, at, values[i]);
    });
  }

  const FusedRegion& region_;
  const TransposedInput& transposed_;
  int64_t lanes_, width_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

// Whether the region suits squares of `lanes` elements.
bool SuitsSquares(const FusedRegion& region, const TransposedInput& transposed_input,
                  int64_t lanes) {
  const Dims& dims = region.roots[0]->shape().dims();
  ElementType type = transposed_input.input->shape().type();
  int bits = InfoOf(type).bits;
  int64_t flops = 0;
  for (const Instr* instr : region.instrs) flops += instr->info().flops_per_element;
  return (bits == 32 || bits == 64) && !IsComplex(type) && transposed_input.is_only_load &&
         transposed_input.strides[transposed_input.dimension] == 1 && flops <= kMaxSquareFlops &&
         lanes >= kMinSquareSide && dims[transposed_input.dimension] >= lanes &&
         dims.back() >= lanes;
}

Schedule SquareSchedule(const Dims& dims, int64_t lanes) {
  return {.kind = GeneratorKind::kLoop,
          .tile_rows = lanes,
          .tile_columns = std::min(kSquares, dims.back() / lanes) * lanes,
          .vector = lanes,
          .staging = Staging::kRegisters};
}

Schedule TileSchedule(const FusedRegion& region, const TransposedInput& transposed_input,
                      const Machine& machine) {
  const Dims& dims = region.roots[0]->shape().dims();
  int64_t element = BytesOf(region.roots[0]->shape().type());
  int64_t lanes = std::min(machine.Lanes(32), FloorPowerOfTwo(dims.back()));
  int64_t vectors = std::max<int64_t>(1, kTileBytes / element / lanes);
  vectors = std::min(vectors, (dims.back() + lanes - 1) / lanes);
  return {.kind = GeneratorKind::kLoop,
          .tile_rows = std::min(kTileRows, dims[transposed_input.dimension]),
          .tile_columns = lanes * vectors,
          .vector = lanes,
          .staging = Staging::kMemory};
}

// A region that reads a transposed input, and its preferred schedules.
struct TransposedRegion {
  TransposedInput input;
  int64_t square = 0;  // lanes of a square; 0: the region does not suit squares
  Schedule tiles;
  Schedule Preferred(const Dims& dims) const {
    return square > 0 ? SquareSchedule(dims, square) : tiles;
  }
};

// Returns why the region reads no transposed input.
std::string FindTransposed(const FusedRegion& region, const Machine& machine,
                           TransposedRegion& found) {
  const Dims& dims = region.roots[0]->shape().dims();
  for (const Instr* root : region.roots)
    if (root->shape().dims() != dims || root->op() == Op::kDynamicUpdateSlice)
      return "its roots have different shapes";
  found.input = FindTransposedInput(region, dims);
  if (found.input.input == nullptr) return "it reads no transposed input";
  int64_t lanes = machine.Lanes(InfoOf(found.input.input->shape().type()).bits);
  if (SuitsSquares(region, found.input, lanes)) found.square = lanes;
  found.tiles = TileSchedule(region, found.input, machine);
  return "";
}

// Why the schedule does not fit; empty if it does.
std::string WhyNotTile(const Schedule& to, const TransposedRegion& found, const Dims& dims) {
  int64_t rows = dims[found.input.dimension], columns = dims.back();
  if (to.unroll != 1) return "unroll: 1 with a tile";
  if (to.tile_columns % to.vector != 0) return "tile: its columns are not whole vectors";
  if (to.staging == Staging::kRegisters) {
    if (found.square == 0 || to.vector != found.square || to.tile_rows != found.square)
      return "staging: in registers, squares of " + std::to_string(found.square) + " elements";
    return to.tile_columns <= columns ? "" : "tile: it has more columns than the array";
  }
  if (to.staging != Staging::kMemory) return "staging: memory or registers";
  if (FloorPowerOfTwo(to.vector) != to.vector || to.vector > found.tiles.vector)
    return "vector: not a power of two up to " + std::to_string(found.tiles.vector);
  bool fits = to.tile_rows <= rows && to.tile_columns < columns + to.vector;
  return fits ? "" : "tile: it is larger than the array";
}

}  // namespace

BuildOutcome BuildTranspose(const FusedRegion& region, const Schedule* schedule,
                            const Machine& machine, const std::string& name) {
  TransposedRegion found;
  if (std::string why = FindTransposed(region, machine, found); !why.empty())
    return {std::nullopt, why};
  const Dims& dims = region.roots[0]->shape().dims();
  Schedule chosen = schedule == nullptr ? found.Preferred(dims) : *schedule;
  if (schedule != nullptr)
    if (std::string why = WhyNotTile(chosen, found, dims); !why.empty()) return {std::nullopt, why};
  BuildOutcome outcome;
  if (chosen.staging == Staging::kRegisters)
    outcome = SquareBuilder(region, found.input, chosen, name).Build();
  if (!outcome.built && (schedule == nullptr || chosen.staging == Staging::kMemory)) {
    if (schedule == nullptr) chosen = found.tiles;
    outcome = TransposeBuilder(region, chosen, found.input.dimension, name).Build();
  }
  if (outcome.built) outcome.built->schedule = chosen;
  return outcome;
}

std::vector<Schedule> TransposeSchedules(const FusedRegion& region, const Machine& machine) {
  TransposedRegion found;
  if (!FindTransposed(region, machine, found).empty()) return {};
  const Dims& dims = region.roots[0]->shape().dims();
  std::vector<Schedule> all;
  auto add = [&](const Schedule& next) {
    if (WhyNotTile(next, found, dims).empty() &&
        std::find(all.begin(), all.end(), next) == all.end())
      all.push_back(next);
  };
  const Schedule first = found.Preferred(dims);
  for (Schedule next : {first, found.tiles}) {
    add(next);
    next.tile_columns *= 2;
    add(next);
    if (next.staging == Staging::kRegisters) continue;
    next.tile_columns /= 2;
    next.tile_rows *= 2;
    add(next);
  }
  return all;
}

}  // namespace tokamak
