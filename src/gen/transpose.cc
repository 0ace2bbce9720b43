// The transpose generator: a loop that reads an input along another dimension than it writes. Both
// are walked tile by tile, so that every line of the cache that a tile touches is used up:
//
//   for each tile (the grid): rows of dimension `d` x a stretch of the last dimension
//     for its stretch, a vector at a time
//       for its rows
//
// Tiles at the ends overlap those before them. Where little is computed, a square of as many rows
// as a vector has lanes goes through registers, which the backend turns by shuffles: the input is
// read along its own rows then.

#include <algorithm>

#include "gen/element.h"
#include "gen/generator.h"
#include "gen/roots.h"
#include "gen/strides.h"

namespace tokamak {
namespace {

// A line of the cache holds 16 floats; a tile of 16 x 64 of them takes 64 lines on either side.
constexpr int64_t kTileRows = 16, kTileBytes = 256;

class TransposeBuilder {
 public:
  TransposeBuilder(const Region& region, const Machine& machine, size_t across,
                   const std::string& name)
      : region_(region), machine_(machine), across_(across), b_(name), emitter_(b_, region) {}

  BuildOutcome Build() {
    const Dims& dims = region_.roots[0]->shape().dims();
    size_t last = dims.size() - 1;
    int64_t element = BytesOf(region_.roots[0]->shape().type());
    int64_t lanes = std::min(machine_.Lanes(32), PowerBelow(dims[last]));
    int64_t vectors = std::max<int64_t>(1, kTileBytes / element / lanes);
    vectors = std::min(vectors, (dims[last] + lanes - 1) / lanes);
    int64_t rows = std::min(kTileRows, dims[across_]), width = lanes * vectors;
    // The grid: tiles along both, and all other dimensions.
    Dims grid = dims;
    grid[across_] = (dims[across_] + rows - 1) / rows;
    grid[last] = (dims[last] + width - 1) / width;
    int64_t teams = ProductOf(grid, 0, grid.size());
    b_.For("tile", LoopRole::kGrid, b_.Index(teams), [&](Scalar g) {
      Coordinates tile = Delinearized(b_, g, grid);
      Scalar row = LesserOf(tile[across_] * b_.Index(rows), b_.Index(dims[across_] - rows));
      b_.For("v", LoopRole::kSerial, b_.Index(vectors), [&](Scalar v) {
        Scalar begin = LesserOf(tile[last] * b_.Index(width) + v * b_.Index(lanes),
                                b_.Index(dims[last] - lanes));
        b_.For("r", LoopRole::kSerial, b_.Index(rows), [&](Scalar r) {
          tile[across_] = row + r;
          ForLanes(lanes, [&](Scalar lane) {
            Coordinates at = tile;
            at[last] = begin + lane;
            Store(at);
          });
        });
      });
    });
    return FinishLoop(b_, emitter_, region_, teams, false);
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

  const Region& region_;
  const Machine& machine_;
  size_t across_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

// Squares a kernel turns one after the other, along the last dimension: lines of 256 bytes.
constexpr int64_t kSquares = 4;
// Primitives of an element that are worth writing out for each row of a square.
constexpr int64_t kMaxSquareFlops = 8;

class SquareBuilder {
 public:
  SquareBuilder(const Region& region, const Across& across, int64_t lanes, const std::string& name)
      : region_(region),
        across_(across),
        lanes_(lanes),
        dims_(region.roots[0]->shape().dims()),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    size_t last = dims_.size() - 1;
    int64_t squares = std::min(kSquares, dims_[last] / lanes_);
    int64_t width = squares * lanes_;
    Dims grid = dims_;
    grid[across_.dimension] = (dims_[across_.dimension] + lanes_ - 1) / lanes_;
    grid[last] = (dims_[last] + width - 1) / width;
    ArrayId square = b_.Local("square", StorageType(across_.input->shape().type()),
                              Space::kRegisters, lanes_ * lanes_);
    int64_t teams = ProductOf(grid, 0, grid.size());
    b_.For("tile", LoopRole::kGrid, b_.Index(teams), [&](Scalar g) {
      Coordinates tile = Delinearized(b_, g, grid);
      size_t d = across_.dimension;
      tile[d] = LesserOf(tile[d] * b_.Index(lanes_), b_.Index(dims_[d] - lanes_));
      Scalar begin = tile[last] * b_.Index(width);
      b_.For("s", LoopRole::kSerial, b_.Index(squares), [&](Scalar s) {
        tile[last] = LesserOf(begin + s * b_.Index(lanes_), b_.Index(dims_[last] - lanes_));
        Turn(tile, square);
      });
    });
    return FinishLoop(b_, emitter_, region_, teams, false);
  }

 private:
  template <typename Body>
  void ForSquare(Body&& body) {
    b_.For("k", LoopRole::kUnrolled, b_.Index(lanes_), [&](Scalar k) {
      b_.For("l", LoopRole::kVector, b_.Index(lanes_), [&](Scalar l) { body(k, l); });
    });
  }

  // Where the input is read for the element at coordinates.
  Scalar IndexOf(const Coordinates& at) {
    Scalar index = b_.Index(across_.base);
    for (size_t d = 0; d < at.size(); ++d) index = index + at[d] * b_.Index(across_.strides[d]);
    return index;
  }

  void Turn(const Coordinates& tile, ArrayId square) {
    size_t last = dims_.size() - 1, d = across_.dimension;
    auto shifted = [&](Scalar along_d, Scalar along_last) {
      Coordinates at = tile;
      at[d] = at[d] + along_d;
      at[last] = at[last] + along_last;
      return at;
    };
    ForSquare([&](Scalar k, Scalar l) {
      Scalar loaded = emitter_.LoadStored(*across_.input, IndexOf(shifted(l, k)));
      b_.Store(square, k * b_.Index(lanes_) + l, loaded);
    });
    ForSquare([&](Scalar k, Scalar l) {
      Coordinates at = shifted(k, l);
      Element stored{b_.Read(square, l * b_.Index(lanes_) + k), {}};
      emitter_.Provide(*across_.input, IndexOf(at),
                       FromStorage(b_, across_.input->shape().type(), stored));
      std::vector<Element> values;
      for (const Instr* root : region_.roots) values.push_back(emitter_.At(*root, at));
      for (size_t i = 0; i < values.size(); ++i)
        emitter_.Store(*region_.roots[i], 0, at, values[i]);
    });
  }

  const Region& region_;
  const Across& across_;
  int64_t lanes_;
  const Dims& dims_;
  KernelBuilder b_;
  ElementEmitter emitter_;
};

// Nothing when the region is not for squares.
BuildOutcome TrySquares(const Region& region, const Across& across, const Machine& machine,
                        const std::string& name) {
  const Dims& dims = region.roots[0]->shape().dims();
  ElementType type = across.input->shape().type();
  int bits = InfoOf(type).bits;
  int64_t flops = 0, lanes = machine.Lanes(bits);
  for (const Instr* instr : region.instrs) flops += instr->info().flops_per_element;
  bool fits = (bits == 32 || bits == 64) && !IsComplex(type) && across.is_only &&
              across.strides[across.dimension] == 1 && flops <= kMaxSquareFlops && lanes >= 4 &&
              dims[across.dimension] >= lanes && dims.back() >= lanes;
  if (!fits) return {};
  return SquareBuilder(region, across, lanes, name).Build();
}

}  // namespace

BuildOutcome BuildTranspose(const Region& region, const Machine& machine, const std::string& name) {
  const Dims& dims = region.roots[0]->shape().dims();
  for (const Instr* root : region.roots)
    if (root->shape().dims() != dims || root->op() == Op::kDynamicUpdateSlice)
      return {std::nullopt, "its roots have different shapes"};
  Across across = FindAcross(region, dims);
  if (across.input == nullptr) return {std::nullopt, "it reads no input across"};
  BuildOutcome squares = TrySquares(region, across, machine, name);
  if (squares.built) return squares;
  return TransposeBuilder(region, machine, across.dimension, name).Build();
}

}  // namespace tokamak
