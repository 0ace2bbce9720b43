#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gen/whole_loop.h"

// Dots of a tile of points in a whole-loop kernel (whole_loop.h): the layers of a small network in
// each iteration of many simulations, whose matrices are the same for all points and iterations.
// A thread block runs a tile of points, and its threads multiply the vectors of all of them by a
// matrix with one block-wide multiply (MatrixMultiply). Per block, and per dot of an iteration:
//
//   matrices of all dots -> shared memory, in the type of the factors; block barrier
//   for each iteration (serial)
//     each point   stores its vector to shared memory
//     barrier, sums = vectors * matrix, barrier, sums -> shared memory, barrier
//     each point   uses its sums: in the vector of the next dot, say
//
// A row of warps owns `warp_points` points: its threads run them, and its warps compute their sums,
// each some columns. If a row is one warp, the barriers are those of a warp, and the warps of a
// block share only the matrices. Vectors and sums are stored element-major, so that threads
// of adjacent points access different banks.
//
// Shared memory limits the blocks of an SM, so the layers of a network share one buffer: sums
// overwrite the vectors that they were computed from, and the next vector overwrites the sums.
//
// A dot with few results is not padded to a fragment: each thread computes the sums of its point.

namespace tokamak {

struct WholeLoopTileShape {
  int64_t row_warps = 1, column_warps = 1;  // rows of warps, and warps in a row
  int64_t warp_points = 0;                  // points of a row of warps

  int64_t Points() const { return row_warps * warp_points; }
  int64_t Threads() const { return row_warps * column_warps * kWarpSize; }
  int64_t ThreadsPerPoint() const { return column_warps * kWarpSize / warp_points; }
};

// A dot that the threads of a block compute for a tile of points.
struct WholeLoopTileDot {
  WholeLoopMatVec product;
  ScalarType type{};  // of the factors
  bool tf32 = false;
  // Terms and results with padding: of zeros along the terms, and sums that nothing reads.
  int64_t depth = 0, columns = 0;
  int64_t warp_columns = 0, pass_columns = 0;  // of one multiply: of a warp, and of all warps
  bool is_narrow = false;  // each thread computes the sums of its point: no shared sums
  ArrayId matrix{}, vectors{}, sums{}, accumulators{};
  // The number of the last dot whose vector reads the sums; SIZE_MAX: something else does. Dots are
  // numbered in the order in which they are computed.
  size_t last_reader = 0;
  // The number of the dot whose sums the vector overwrites: each element is computed from the sum
  // with its number, which nothing else reads.
  std::optional<size_t> overwrites = std::nullopt;
};

class WholeLoopTiles {
 public:
  // `dots`: from TileDotsOf and SetColumns.
  WholeLoopTiles(KernelBuilder& b, std::vector<WholeLoopTileDot> dots,
                 const WholeLoopTileShape& shape);

  // Emits the copies of the matrices to shared memory, and a block barrier. `emitter` supplies the
  // loop invariants of the body.
  void LoadMatrices(ElementEmitter& emitter, Scalar thread);
  // Null if the dot is not multiplied in tiles.
  const WholeLoopTileDot* Find(const Instr& dot) const;
  // Must precede the stores of a vector.
  void BeginVector(const WholeLoopTileDot& dot) const;
  // Stores element `term` of the vector of a point.
  void StoreVector(const WholeLoopTileDot& dot, Scalar point, Scalar term, Element value);
  // Stores zeros behind the last element; `member`: the thread among `threads` of the point.
  void PadVector(const WholeLoopTileDot& dot, Scalar point, Scalar member, int64_t threads);
  // Multiplies the vectors of all points by the matrix, after all have been stored.
  void Multiply(const WholeLoopTileDot& dot, Scalar thread);
  // Returns the sums of a point of a narrow dot.
  std::vector<Scalar> MultiplyNarrow(const WholeLoopTileDot& dot, Scalar point);
  // Sum `i` of a point; no value if something has overwritten it.
  Scalar ReadSum(const WholeLoopTileDot& dot, Scalar point, Scalar i) const;

 private:
  void Barrier() const;
  Scalar Factor(const WholeLoopTileDot& dot, ElementType from, const Element& value);

  KernelBuilder& b_;
  std::vector<WholeLoopTileDot> dots_;
  WholeLoopTileShape shape_;
  int64_t pitch_ = 0;  // elements from one term or sum to the next
  // The dot whose sums are in an array.
  std::unordered_map<uint32_t, const WholeLoopTileDot*> stored_;
};

// The dots of a loop, without columns, in the order in which they are computed; or why one of them
// cannot be multiplied in tiles.
struct WholeLoopTileDots {
  std::vector<WholeLoopTileDot> dots;
  std::string why_not;
};
WholeLoopTileDots TileDotsOf(const WholeLoopRegion& region, const Machine& machine);
// Sets the columns for tiles of this shape.
void SetColumns(std::vector<WholeLoopTileDot>& dots, const WholeLoopTileShape& shape);
// Bytes of shared memory of a block.
int64_t SharedBytesOf(const std::vector<WholeLoopTileDot>& dots, const WholeLoopTileShape& shape);

}  // namespace tokamak
