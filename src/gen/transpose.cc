// The transpose generator: a loop that reads an input along another dimension than it writes. Both
// are walked tile by tile, so that every line of the cache that a tile touches is used up:
//
//   for each tile (the grid): rows of dimension `d` x a stretch of the last dimension
//     for its stretch, a vector at a time
//       for its rows
//
// Tiles at the ends overlap those before them.

#include <algorithm>

#include "gen/element.h"
#include "gen/generator.h"
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
    BuiltKernel built;
    built.grid = ProductOf(grid, 0, grid.size());
    b_.For("tile", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
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
    if (!emitter_.fault().empty()) return {std::nullopt, emitter_.fault()};
    built.kernel = b_.Finish();
    built.arguments = ArgumentsOf(region_);
    FinishFacts(built, false);
    return {std::move(built), ""};
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

}  // namespace

BuildOutcome BuildTranspose(const Region& region, const Machine& machine, const std::string& name) {
  const Dims& dims = region.roots[0]->shape().dims();
  for (const Instr* root : region.roots)
    if (root->shape().dims() != dims || root->op() == Op::kDynamicUpdateSlice)
      return {std::nullopt, "its roots have different shapes"};
  int64_t across = TransposedDimension(region, dims);
  if (across < 0) return {std::nullopt, "it reads no input across"};
  return TransposeBuilder(region, machine, static_cast<size_t>(across), name).Build();
}

}  // namespace tokamak
