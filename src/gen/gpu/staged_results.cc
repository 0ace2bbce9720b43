#include "gen/gpu/staged_results.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/gpu/tensor_epilogue.h"
#include "kernel/formulas.h"
#include "kernel/gpu_limits.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kPieceElements = kPieceRows * kPieceColumns;
// Pieces of a warp that are on their way at most. Chosen: one is copied while the next is computed.
constexpr int64_t kMaxBuffers = 2;
// Bytes of a chunk, the unit in which lines are swizzled (SwizzledByte).
constexpr int64_t kSwizzledChunkBytes = 16;

}  // namespace

// Roots with the dot's elements in its order, and rows that the bulk copy engine can address.
bool StagedResults::CanStage(const Instr& root) const {
  ElementType type = root.shape().type();
  int64_t bytes = BytesOf(StorageType(type));
  bool is_transposed =
      root.op() == Op::kTranspose && root.operand(0)->shape().dims() == dot_.shape().dims();
  // Columns and the batch; rows.
  size_t rank = 2;
  if (!t_.window) ++rank;
  if (t_.window)
    rank += static_cast<size_t>(std::ranges::count_if(
        t_.window->rows, [](const WindowAxis& axis) { return axis.size > 1; }));
  return !IsComplex(type) && (bytes == 2 || bytes == 4) && !is_transposed &&
         rank <= TileCopy::kMaxRank && dot_dims_.n * bytes % TileCopy::kAlignment == 0;
}

int64_t StagedResults::LeastBytes(int64_t warps) const {
  int64_t bytes = 0;
  for (const Instr* instr : region_.roots)
    if (CanStage(*instr))
      bytes += warps * kPieceElements * BytesOf(StorageType(instr->shape().type()));
  return bytes;
}

void StagedResults::Declare(int64_t warps) {
  int64_t bytes = FreeSharedBytes(b_.kernel()), used = 0;
  for (const Instr* instr : region_.roots) {
    if (!CanStage(*instr)) continue;
    Root root{.instr = instr, .type = StorageType(instr->shape().type())};
    int64_t of_root = warps * kPieceElements * BytesOf(root.type);
    if (used + of_root > bytes) continue;
    used += of_root;
    roots_.push_back(root);
  }
  if (roots_.empty()) return;
  buffers_ = std::min(bytes / used, kMaxBuffers);
  for (size_t i = 0; i < roots_.size(); ++i)
    roots_[i].tiles = b_.Local("results_" + std::to_string(i), roots_[i].type, Space::kShared,
                               warps * buffers_ * kPieceElements, MatrixMultiply::kPanelAlignment);
}

void StagedResults::Begin(Scalar warp, Scalar lane, Scalar number) {
  buffer_ = warp * b_.Index(buffers_) + number % b_.Index(buffers_);
  auto pending = (buffers_ - 1) * static_cast<int64_t>(CopiesOfPiece());
  b_.If(lane == b_.Index(0), [&] { b_.WaitCopies(pending); });
  b_.Barrier(BarrierScope::kWarp);
}

int64_t StagedResults::CopiesOfPiece() const {
  int64_t copies = 0;
  for (const Root& root : roots_) copies += root.panels();
  return copies;
}

void StagedResults::End(Scalar lane, const DotPosition& piece) {
  b_.AsyncFence();
  b_.Barrier(BarrierScope::kWarp);
  b_.If(lane == b_.Index(0), [&] {
    for (const Root& root : roots_)
      for (int64_t panel = 0; panel < root.panels(); ++panel) {
        Scalar column = piece.column + b_.Index(panel * root.line());
        TileCopy copy;
        copy.from = root.tiles;
        copy.to = emitter_.OutputOf(*root.instr);
        copy.swizzled = true;
        copy.from_index =
            (buffer_ * b_.Index(kPieceElements) + b_.Index(panel * kPieceRows * root.line())).id();
        copy.dimensions = {
            {.size = dot_dims_.n, .stride = 1, .box = root.line(), .at = column.id()}};
        if (t_.window) {
          std::ranges::copy(
              WindowResultBoxes(b_, *t_.window, piece.row, t_.rows, kPieceRows, dot_dims_.n),
              std::back_inserter(copy.dimensions));
        } else {
          copy.dimensions.push_back({.size = dot_dims_.m,
                                     .stride = dot_dims_.n,
                                     .box = kPieceRows,
                                     .at = piece.row.id()});
        }
        if (dot_dims_.batch > 1)
          copy.dimensions.push_back({.size = dot_dims_.batch,
                                     .stride = dot_dims_.m * dot_dims_.n,
                                     .box = 1,
                                     .at = piece.batch.id()});
        b_.CopyBack(std::move(copy));
      }
  });
}

void StagedResults::Finish(Scalar lane) {
  b_.If(lane == b_.Index(0), [&] { b_.WaitCopies(0); });
}

// As SwizzledByte: panels of lines of 128 bytes.
Scalar StagedResults::IndexOf(const Root& root, const InPiece& in_piece) {
  int64_t elements = kSwizzledChunkBytes / BytesOf(root.type), line = root.line();
  Scalar in_line = in_piece.column % b_.Index(line), panel = in_piece.column / b_.Index(line);
  Scalar chunk = in_line / b_.Index(elements);
  Scalar swizzled =
      chunk ^ (in_piece.row % b_.Index(MatrixMultiply::kPanelBytes / kSwizzledChunkBytes));
  Scalar at = buffer_ * b_.Index(kPieceElements) + panel * b_.Index(kPieceRows * line);
  return at + in_piece.row * b_.Index(line) + swizzled * b_.Index(elements) +
         in_line % b_.Index(elements) + in_piece.lane;
}

void StagedResults::Store(const BoundResult& bound, const InPiece& in_piece) {
  for (const Instr* instr : region_.roots) {
    auto root = std::ranges::find(roots_, instr, &Root::instr);
    if (root == roots_.end()) {
      StoreContractRoot(b_, emitter_, *instr, dot_, bound.at, bound.linear);
      continue;
    }
    const Dims& dims = instr->shape().dims();
    Coordinates here =
        dims == dot_.shape().dims() ? bound.at : Delinearized(b_, bound.linear, dims);
    Element value = ToStorage(b_, instr->shape().type(), emitter_.At(*instr, here));
    if (emitter_.failure().empty()) b_.Store(root->tiles, IndexOf(*root, in_piece), value[0]);
  }
}

}  // namespace tokamak::gpu
