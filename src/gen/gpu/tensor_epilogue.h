#pragma once

#include <vector>

#include "gen/generator.h"
#include "gen/gpu/tensor_kernel_part.h"

// Arrays that the results of a dot are combined with, element by element, such as a residual or the
// moments of an optimizer, on their way to the warps that have the results: a warp starts copies of
// its part of them to shared memory before it multiplies, and further ones while it computes the
// results, so that it does not wait for memory.

namespace tokamak::gpu {

// Inputs of the region with one element for each of the dot's results, at the result's coordinates,
// and rows that the bulk copy engine can address.
std::vector<const Instr*> ResultOperandsOf(const FusedRegion& region, const Instr& dot,
                                           const DotDimensions& dot_dims);
// Boxes of results that a warp has in shared memory at least, one of a single root.
int64_t ResultBoxesOf(const FusedRegion& region);
// Operations that compute the consumers of a result, in units of ops.def.
double ResultFlopsOf(const FusedRegion& region, const Instr& dot);
// Bytes of shared memory that the copies of so many arrays and this many boxes of results of each
// warp need.
int64_t ResultOperandBytes(int64_t operands, int64_t consumers, int64_t boxes);
// Fills `may_alias` of a kernel that stores each result once, and before that reads what it is
// computed from: a root may overwrite an input if the kernel reads the input only element by
// element with the results.
void FindResultAliases(const FusedRegion& region, const Instr& dot, BuiltKernel& built);
// Bytes of shared memory that a block can still have.
int64_t FreeSharedBytes(const Kernel& kernel);

class TensorEpilogue : private TensorKernelPart {
 public:
  explicit TensorEpilogue(const TensorKernelPart& part) : TensorKernelPart(part) {}

  // Declares shared memory, and leaves `for_results` bytes if the copies are not slower then.
  void Declare(int64_t for_results);
  // Whether all arrays that this operand of a consumer depends on are in shared memory.
  bool Covers(const Instr& operand) const;

  // Where the chunks of a warp's results are (tensor_results.h).
  class Chunks {
   public:
    virtual DotPosition PositionOf(Scalar chunk) const = 0;

   protected:
    ~Chunks() = default;
  };
  // Starts the first copies of a tile, the warp's `number`-th.
  struct Tile {
    Scalar warp, lane, number;
    const Chunks* chunks = nullptr;
  };
  void Begin(Tile tile);
  // Before and after the elements of a chunk.
  void Await(Scalar chunk);
  void Release();
  // Provides the elements at a result for the emitter. The result is in this row and column + lane
  // of the chunk.
  struct InChunk {
    Scalar row, column, lane;
  };
  void Provide(const BoundResult& result, const InChunk& at);

 private:
  // The copies of a warp are boxes of 16 rows of 128 bytes. Each goes to the next of `buffers`.
  struct Operand {
    const Instr* instr = nullptr;
    ScalarType type{};
    int64_t boxes = 0;  // of a tile
    int64_t buffers = 0;
    ArrayId tiles{}, full{};

    int64_t line() const { return MatrixMultiply::kPanelBytes / BytesOf(type); }
    int64_t chunks() const { return line() / kResultColumns; }  // of a box
  };
  // Of a box of the current tile.
  struct Buffer {
    Scalar index, parity;
  };
  void SetBuffers(int64_t bytes);
  int64_t BytesFor(int64_t most) const;
  Buffer BufferOf(const Operand& operand, Scalar box) const;
  void Copy(const Operand& operand, Scalar box);

  std::vector<Operand> operands_;
  Tile tile_;
  Scalar chunk_;
};

}  // namespace tokamak::gpu
