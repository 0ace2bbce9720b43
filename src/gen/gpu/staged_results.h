#pragma once

#include <vector>

#include "gen/gpu/result_boxes.h"
#include "gen/gpu/tensor_kernel_part.h"

// Results on their way from a warp's registers to memory: the warp collects 16 rows of 64 columns,
// a piece, in shared memory, and the bulk copy engine stores them while the warp goes on.

namespace tokamak::gpu {

// Rows and columns of a piece. Chosen: the rows that a warp has of a multiply, and 128 bytes of
// 16-bit elements.
inline constexpr int64_t kPieceRows = kBoxRows, kPieceColumns = 64;

class StagedResults : private TensorKernelPart {
 public:
  explicit StagedResults(const TensorKernelPart& part) : TensorKernelPart(part) {}

  // Declares the shared memory of `warps` warps, for as many roots as the free shared memory of the
  // block is enough for. To be called after all other shared memory has been declared.
  void Declare(int64_t warps);
  // Bytes of shared memory for one piece of each warp and root.
  int64_t LeastBytes(int64_t warps) const;
  bool HasRoots() const { return !roots_.empty(); }
  bool HasAllRoots() const { return roots_.size() == region_.roots.size(); }

  // Before and after the elements of a piece. `number` counts the pieces of the warp.
  void Begin(Scalar warp, Scalar lane, Scalar number);
  void End(Scalar lane, const DotPosition& piece);
  // Waits for the copies of the warp; at the end.
  void Finish(Scalar lane);
  // Puts one element of the dot's result through the consumers: stores the roots that are not
  // staged, and the other ones to the piece, at this row and column + lane of it. A thread's lanes
  // are in one chunk of 16 bytes.
  struct InPiece {
    Scalar row, column, lane;
  };
  void Store(const BoundResult& result, const InPiece& at);

 private:
  struct Root {
    const Instr* instr = nullptr;
    ArrayId tiles{};
    ScalarType type{};

    int64_t line() const { return MatrixMultiply::kPanelBytes / BytesOf(type); }
    int64_t panels() const { return kPieceColumns / line(); }
  };
  bool CanStage(const Instr& root) const;
  int64_t CopiesOfPiece() const;
  Scalar IndexOf(const Root& root, const InPiece& at);

  std::vector<Root> roots_;
  int64_t buffers_ = 1;  // pieces of a warp and root in shared memory
  Scalar buffer_;        // the number of the piece in shared memory
};

}  // namespace tokamak::gpu
