#include "gen/gpu/tensor_epilogue.h"

#include <algorithm>
#include <set>

#include "gen/gpu/dot_panel.h"
#include "gen/gpu/result_boxes.h"
#include "gen/gpu/staged_results.h"
#include "kernel/formulas.h"
#include "kernel/gpu_limits.h"
#include "support/ceil_div.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kBoxBytes = kBoxRows * MatrixMultiply::kPanelBytes;
// Boxes of an array that a warp has in shared memory at most, and at least. Chosen: one is used
// while the next one comes; 8 warps with 4 boxes have 64 KiB on their way, more than an SM's share
// of the bandwidth brings in the latency of memory.
constexpr int64_t kMaxBoxBuffers = 4, kMinBoxBuffers = 2;
// Bytes that alignment and mbarriers of all arrays may take.
constexpr int64_t kBarrierBytes = 1024;

bool CanCopy(const Instr& input, const Instr& dot, const DotDimensions& dot_dims) {
  ElementType type = input.shape().type();
  int64_t bytes = BytesOf(StorageType(type));
  return !IsComplex(type) && InfoOf(type).bits >= 8 && (bytes == 2 || bytes == 4) &&
         input.shape().ElementCount() == dot.shape().ElementCount() &&
         dot_dims.n * bytes % TileCopy::kAlignment == 0;
}

// Calls visit(instr) for what the elements of `instr` at the dot's results depend on, at the same
// row-major index, down to the dot and what has other elements.
template <typename Visit>
void ForSameElements(const FusedRegion& region, const Instr& from, const Instr& dot,
                     Visit&& visit) {
  std::set<const Instr*> seen;
  std::vector<const Instr*> left = {&from};
  while (!left.empty()) {
    const Instr* instr = left.back();
    left.pop_back();
    if (instr == &dot || !seen.insert(instr).second) continue;
    visit(*instr);
    if (std::ranges::find(region.instrs, instr) == region.instrs.end()) continue;
    if (!instr->info().Is(kElementwise) && instr->op() != Op::kReshape) continue;
    for (const Instr* operand : instr->operands())
      if (operand->shape().IsArray() &&
          operand->shape().ElementCount() == dot.shape().ElementCount())
        left.push_back(operand);
  }
}

}  // namespace

namespace {

// Calls visit(instr) for what the roots depend on at the same index as the dot's results; once for
// each root.
template <typename Visit>
void ForConsumers(const FusedRegion& region, const Instr& dot, Visit&& visit) {
  for (const Instr* root : region.roots) {
    bool is_transposed =
        root->op() == Op::kTranspose && root->operand(0)->shape().dims() == dot.shape().dims();
    ForSameElements(region, is_transposed ? *root->operand(0) : *root, dot, visit);
  }
}

}  // namespace

double ResultFlopsOf(const FusedRegion& region, const Instr& dot) {
  std::set<const Instr*> consumers;
  ForConsumers(region, dot, [&](const Instr& instr) { consumers.insert(&instr); });
  double flops = 0;
  for (const Instr* instr : region.instrs)
    if (consumers.contains(instr)) flops += instr->info().flops_per_element;
  return flops;
}

std::vector<const Instr*> ResultOperandsOf(const FusedRegion& region, const Instr& dot,
                                           const DotDimensions& dot_dims) {
  std::vector<const Instr*> operands;
  auto add = [&](const Instr& instr) {
    bool is_input = std::ranges::find(region.inputs, &instr) != region.inputs.end();
    bool is_new = std::ranges::find(operands, &instr) == operands.end();
    if (is_input && is_new && CanCopy(instr, dot, dot_dims)) operands.push_back(&instr);
  };
  ForConsumers(region, dot, add);
  return operands;
}

int64_t ResultBoxesOf(const FusedRegion& region) {
  if (region.roots.size() == 1) return 1;
  // Of roots that the bulk copy engine stores (StagedResults), a piece each.
  int64_t bytes = 0;
  for (const Instr* root : region.roots)
    if (root->shape().IsArray()) bytes += BytesOf(StorageType(root->shape().type()));
  return CeilDiv(bytes * kPieceColumns, MatrixMultiply::kPanelBytes);
}

int64_t ResultOperandBytes(int64_t operands, int64_t consumers, int64_t boxes) {
  if (operands == 0 && boxes <= 1) return 0;
  int64_t warps = consumers / kWarpSize;
  return warps * (operands * kMinBoxBuffers + boxes) * kBoxBytes + kBarrierBytes;
}

void FindResultAliases(const FusedRegion& region, const Instr& dot, BuiltKernel& built) {
  auto has_elements = [&](const Instr& instr) {
    return instr.shape().IsArray() && instr.shape().ElementCount() == dot.shape().ElementCount();
  };
  std::set<const Instr*> elsewhere;  // read at other indices than those of the results
  for (size_t i = region.instrs.size(); i-- > 0;) {
    const Instr& user = *region.instrs[i];
    bool is_same = (user.info().Is(kElementwise) || user.op() == Op::kReshape) &&
                   user.op() != Op::kMap && has_elements(user) && !elsewhere.contains(&user);
    for (const Instr* operand : user.operands())
      if (!is_same || !has_elements(*operand)) elsewhere.insert(operand);
  }
  for (size_t o = 0; o < built.arguments.size(); ++o) {
    const KernelArgument& output = built.arguments[o];
    if (!output.is_output || !has_elements(*output.instr)) continue;
    std::set<const Instr*> from;
    ForSameElements(region, *output.instr, dot, [&](const Instr& instr) { from.insert(&instr); });
    for (size_t i = 0; i < built.arguments.size(); ++i) {
      const KernelArgument& input = built.arguments[i];
      bool is_same = !input.is_output && has_elements(*input.instr) && from.contains(input.instr) &&
                     !elsewhere.contains(input.instr);
      if (is_same && BytesOf(built.kernel.arrays[i].type) == BytesOf(built.kernel.arrays[o].type))
        built.may_alias.emplace_back(i, o);
    }
  }
}

int64_t FreeSharedBytes(const Kernel& kernel) {
  // The first array is aligned.
  int64_t bytes = kMaxSharedBytes - MatrixMultiply::kPanelAlignment;
  for (const Array& array : kernel.arrays)
    if (array.space == Space::kShared || array.space == Space::kMbarrier)
      bytes -= array.size * BytesOf(array.type);
  return bytes;
}

void TensorEpilogue::Declare(int64_t for_results) {
  if (ResultBoxRank(t_) > TileCopy::kMaxRank) return;
  int64_t chunks = t_.Multiplies() * t_.columns / kResultColumns;
  for (const Instr* instr : ResultOperandsOf(region_, dot_, dot_dims_)) {
    Operand operand{.instr = instr, .type = StorageType(instr->shape().type())};
    bool is_read = b_.kernel().array(emitter_.InputOf(*instr)).access == Access::kRead;
    if (!is_read || t_.columns % operand.line() != 0) continue;
    operand.boxes = chunks / operand.chunks();
    operands_.push_back(operand);
  }
  SetBuffers(for_results);
  for (size_t i = 0; i < operands_.size(); ++i) {
    Operand& operand = operands_[i];
    std::string name = "combined_" + std::to_string(i);
    int64_t buffers = t_.consumers() / kWarpSize * operand.buffers;
    operand.tiles =
        b_.Local(name, operand.type, Space::kShared, buffers * kBoxBytes / BytesOf(operand.type),
                 MatrixMultiply::kPanelAlignment);
    operand.full = b_.Mbarriers(name + "_full", buffers, 1);
  }
}

// Bytes for all operands with at most so many buffers each.
int64_t TensorEpilogue::BytesFor(int64_t most) const {
  int64_t boxes = 0;
  for (const Operand& operand : operands_) boxes += std::min(operand.boxes, most);
  return t_.consumers() / kWarpSize * boxes * kBoxBytes + kBarrierBytes;
}

void TensorEpilogue::SetBuffers(int64_t for_results) {
  int64_t bytes = FreeSharedBytes(b_.kernel());
  // The last operands are loaded from memory if there is not enough for all.
  while (!operands_.empty() && BytesFor(kMinBoxBuffers) > bytes) operands_.pop_back();
  if (operands_.empty()) return;
  if (BytesFor(kMinBoxBuffers) + for_results <= bytes) bytes -= for_results;
  int64_t most = kMaxBoxBuffers;
  while (BytesFor(most) > bytes) --most;
  for (Operand& operand : operands_) operand.buffers = std::min(operand.boxes, most);
}

bool TensorEpilogue::Covers(const Instr& operand) const {
  bool covers = true;
  ForSameElements(region_, operand, dot_, [&](const Instr& instr) {
    bool is_inside = std::ranges::find(region_.instrs, &instr) != region_.instrs.end();
    bool is_same = instr.info().Is(kElementwise) || instr.op() == Op::kReshape ||
                   (instr.op() == Op::kBroadcast && instr.operand(0)->shape().ElementCount() == 1);
    bool is_copied = std::ranges::find(operands_, &instr, &Operand::instr) != operands_.end();
    covers = covers && (is_copied || IsImmediate(instr) || (is_inside && is_same));
  });
  return covers;
}

void TensorEpilogue::Begin(Tile tile) {
  tile_ = std::move(tile);
  if (operands_.empty()) return;
  // The warp has read the boxes of the tile before.
  b_.Barrier(BarrierScope::kWarp);
  b_.If(tile_.lane == b_.Index(0), [&] {
    for (const Operand& operand : operands_)
      b_.For("x", LoopRole::kUnrolled, b_.Index(operand.buffers),
             [&](Scalar box) { Copy(operand, box); });
  });
}

TensorEpilogue::Buffer TensorEpilogue::BufferOf(const Operand& operand, Scalar box) const {
  Scalar buffers = b_.Index(operand.buffers);
  Scalar number = tile_.number * b_.Index(operand.boxes) + box, phase = number / buffers;
  if (operand.boxes % operand.buffers == 0) {
    // The same, with less to compute.
    phase = tile_.number * b_.Index(operand.boxes / operand.buffers) + box / buffers;
    number = box;
  }
  return {tile_.warp * buffers + number % buffers, phase % b_.Index(2)};
}

void TensorEpilogue::Copy(const Operand& operand, Scalar box) {
  Scalar index = BufferOf(operand, box).index;
  DotPosition at = tile_.chunks->PositionOf(box * b_.Index(operand.chunks()));
  TileCopy copy;
  copy.from = emitter_.InputOf(*operand.instr);
  copy.to = operand.tiles;
  copy.to_index = (index * b_.Index(kBoxRows * operand.line())).id();
  copy.swizzled = true;
  copy.dimensions = ResultBox(b_, t_, dot_dims_, at, operand.line());
  b_.Arrive(operand.full, index, kBoxBytes);
  b_.Copy(operand.full, index, std::move(copy));
}

void TensorEpilogue::Await(Scalar chunk) {
  chunk_ = chunk;
  for (const Operand& operand : operands_) {
    Buffer buffer = BufferOf(operand, chunk / b_.Index(operand.chunks()));
    b_.Wait(operand.full, buffer.index, buffer.parity);
  }
}

// Starts copies to the buffers that the chunk was the last one to use.
void TensorEpilogue::Release() {
  auto has_more = [](const Operand& operand) { return operand.buffers < operand.boxes; };
  if (std::ranges::none_of(operands_, has_more)) return;
  b_.Barrier(BarrierScope::kWarp);
  for (const Operand& operand : operands_) {
    if (!has_more(operand)) continue;
    Scalar chunks = b_.Index(operand.chunks()), next = chunk_ / chunks + b_.Index(operand.buffers);
    Scalar starts = (tile_.lane == b_.Index(0)) & (next < b_.Index(operand.boxes));
    if (operand.chunks() > 1) starts = starts & (chunk_ % chunks == chunks - b_.Index(1));
    b_.If(starts, [&] { Copy(operand, next); });
  }
}

void TensorEpilogue::Provide(const BoundResult& result, const InChunk& at) {
  for (const Operand& operand : operands_) {
    Scalar chunks = b_.Index(operand.chunks());
    Scalar column = chunk_ % chunks * b_.Index(kResultColumns) + at.column;
    Scalar index = BufferOf(operand, chunk_ / chunks).index * b_.Index(kBoxRows * operand.line()) +
                   SwizzledIndex(b_, at.row, column, operand.type) + at.lane;
    const Shape& shape = operand.instr->shape();
    Element element = FromStorage(b_, shape.type(), {b_.Read(operand.tiles, index), {}});
    Coordinates here = shape.dims() == dot_.shape().dims()
                           ? result.at
                           : Delinearized(b_, result.linear, shape.dims());
    emitter_.Memoize(*operand.instr, here, element);
  }
}

}  // namespace tokamak::gpu
