#include "gen/gpu/staged_results.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/gpu/dot_panel.h"
#include "gen/gpu/tensor_epilogue.h"
#include "kernel/formulas.h"
#include "kernel/gpu_limits.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kPieceElements = kPieceRows * kPieceColumns;
// Pieces of a warp that are on their way at most. Chosen: one is copied while the next is computed.
constexpr int64_t kMaxBuffers = 2;

}  // namespace

// Roots with the dot's elements in its order, and rows that the bulk copy engine can address.
bool StagedResults::CanStage(const Instr& root) const {
  ElementType type = root.shape().type();
  int64_t bytes = BytesOf(StorageType(type));
  bool is_transposed =
      root.op() == Op::kTranspose && root.operand(0)->shape().dims() == dot_.shape().dims();
  return !IsComplex(type) && (bytes == 2 || bytes == 4) && !is_transposed &&
         ResultBoxRank(t_) <= TileCopy::kMaxRank && dot_dims_.n * bytes % TileCopy::kAlignment == 0;
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
        DotPosition at = piece;
        at.column = piece.column + b_.Index(panel * root.line());
        TileCopy copy;
        copy.from = root.tiles;
        copy.to = emitter_.OutputOf(*root.instr);
        copy.swizzled = true;
        copy.from_index =
            (buffer_ * b_.Index(kPieceElements) + b_.Index(panel * kPieceRows * root.line())).id();
        copy.dimensions = ResultBox(b_, t_, dot_dims_, at, root.line());
        b_.CopyBack(std::move(copy));
      }
  });
}

void StagedResults::Finish(Scalar lane) {
  b_.If(lane == b_.Index(0), [&] { b_.WaitCopies(0); });
}

Scalar StagedResults::IndexOf(const Root& root, const InPiece& in_piece) {
  Scalar line = b_.Index(root.line());
  Scalar at = buffer_ * b_.Index(kPieceElements) +
              in_piece.column / line * b_.Index(kPieceRows * root.line());
  return at + SwizzledIndex(b_, in_piece.row, in_piece.column % line, root.type) + in_piece.lane;
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
