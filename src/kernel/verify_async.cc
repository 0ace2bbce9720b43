#include "kernel/verify_async.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

// Outstanding multiplies of a warpgroup that a wait may leave (PTX ISA, wgmma.wait_group), and
// registers that setmaxnreg takes.
constexpr int64_t kMaxPending = 7, kLeastRegisters = 24, kMostRegisters = 256, kRegisterStep = 8;
// Columns of a multiply, and bytes of its depth per instruction (PTX ISA, wgmma).
constexpr int64_t kMaxColumns = 256, kColumnStep = 8, kDepthBytes = 32;
// Integers: more columns than these in larger steps.
constexpr int64_t kMaxIntegerColumns = 24, kIntegerColumnStep = 16;

Error Bad(ErrorCode code, const Kernel& kernel, const std::string& what) {
  return MakeError(code, fmt::format("kernel {}: {}", kernel.name, what));
}
Error BadMemory(const Kernel& kernel, const std::string& what) {
  return Bad(ErrorCode::kKernelMemory, kernel, what);
}
Error BadStructure(const Kernel& kernel, const std::string& what) {
  return Bad(ErrorCode::kKernelStructure, kernel, what);
}

Status VerifyDimension(const Kernel& kernel, const TileCopy& copy, size_t i) {
  const TileCopy::Dimension& dimension = copy.dimensions[i];
  int64_t bytes = BytesOf(kernel.array(copy.from).type);
  bool fits = dimension.size >= 1 && dimension.box >= 1 && dimension.step >= 1 &&
              dimension.step <= (i == 0 ? 1 : TileCopy::kMaxStep) &&
              dimension.box * dimension.step <= TileCopy::kMaxBox;
  if (!fits)
    return BadStructure(
        kernel,
        fmt::format("copy: dimension {} has size {} and box {} with step {}; a box has 1 to "
                    "{} elements, a step is at most {}, and 1 in dimension 0",
                    i, dimension.size, dimension.box, dimension.step, TileCopy::kMaxBox,
                    TileCopy::kMaxStep));
  if (i == 0 && dimension.stride != 1)
    return BadStructure(kernel, "copy: the elements of dimension 0 are not adjacent");
  if (i > 0 && (dimension.stride < 0 || dimension.stride * bytes % TileCopy::kAlignment != 0))
    return BadMemory(
        kernel, fmt::format("copy: the stride {} of dimension {} is not a multiple of {} bytes",
                            dimension.stride, i, TileCopy::kAlignment));
  return Ok();
}

Status VerifyEnds(const Kernel& kernel, const TileCopy& copy) {
  const Array &from = kernel.array(copy.from), &to = kernel.array(copy.to);
  if (copy.tf32 && from.type != ScalarType::kF32)
    return Bad(ErrorCode::kKernelTypes, kernel, "copy: tf32 requires f32 elements");
  if (from.space == Space::kArgument && from.access == Access::kRead &&
      to.space == Space::kShared && from.type == to.type)
    return Ok();
  return BadMemory(kernel,
                   fmt::format("copy: from {} to {}: not from an argument that is only read to "
                               "shared memory of its type",
                               from.name, to.name));
}

// Lines that are no multiples of 16 bytes would be written up to the next multiple (measured by
// others on an H100; the PTX ISA does not say so).
Status VerifyEndsOfCopyBack(const Kernel& kernel, const TileCopy& copy) {
  const Array &from = kernel.array(copy.from), &to = kernel.array(copy.to);
  if (from.space != Space::kShared || to.space != Space::kArgument || to.access != Access::kWrite ||
      from.type != to.type)
    return BadMemory(kernel, fmt::format("copyback: from {} to {}: not from shared memory to an "
                                         "argument of its type that is only written",
                                         from.name, to.name));
  if (!copy.dimensions.empty() &&
      copy.dimensions[0].size * BytesOf(to.type) % TileCopy::kAlignment != 0)
    return BadMemory(kernel, fmt::format("copyback: lines of {} elements are not a multiple of {} "
                                         "bytes",
                                         copy.dimensions[0].size, TileCopy::kAlignment));
  return Ok();
}

// `tensor` is the argument, `tile` the array in shared memory.
Status VerifyBox(const Kernel& kernel, const TileCopy& copy, ArrayId tensor_id, ArrayId tile_id) {
  const Array &tensor = kernel.array(tensor_id), &tile = kernel.array(tile_id);
  if (copy.dimensions.empty() || copy.dimensions.size() > TileCopy::kMaxRank)
    return BadStructure(kernel, fmt::format("copy: {} dimensions, not 1 to {}",
                                            copy.dimensions.size(), TileCopy::kMaxRank));
  for (size_t i = 0; i < copy.dimensions.size(); ++i)
    TOK_RETURN_IF_ERROR(VerifyDimension(kernel, copy, i));
  int64_t line = copy.dimensions[0].box * BytesOf(tensor.type);
  if (copy.swizzled ? line != MatrixMultiply::kPanelBytes : line % TileCopy::kAlignment != 0)
    return BadStructure(kernel, fmt::format("copy: lines of {} bytes in shared memory", line));
  int64_t alignment =
      copy.swizzled ? MatrixMultiply::kPanelAlignment : int64_t{MatrixMultiply::kPanelBytes};
  if (tile.alignment % alignment != 0 || tensor.alignment % TileCopy::kAlignment != 0)
    return BadMemory(kernel, fmt::format("copy: {} is not aligned to {} bytes, or {} not to {}",
                                         tile.name, alignment, tensor.name, TileCopy::kAlignment));
  return Ok();
}

// An operand in shared memory: row stride, column stride, and which of the two is 1 if K-major.
Status VerifyPanels(const Kernel& kernel, ArrayId id, int64_t along, int64_t deep, int64_t panel) {
  const Array& array = kernel.array(id);
  if (array.space != Space::kShared)
    return BadMemory(kernel, fmt::format("multiply: {} is not in shared memory", array.name));
  if (array.alignment % MatrixMultiply::kPanelAlignment != 0)
    return BadMemory(kernel, fmt::format("multiply: {} is not aligned to {} bytes", array.name,
                                         MatrixMultiply::kPanelAlignment));
  int64_t line = MatrixMultiply::kPanelBytes / BytesOf(array.type);
  bool is_k_major = deep == 1;
  bool lines = is_k_major ? along == line : along == 1 && deep == line;
  if (!lines || panel < 0 || (!is_k_major && BytesOf(array.type) != 2))
    return BadStructure(kernel, fmt::format("multiply: {} has no rows of {} bytes", array.name,
                                            MatrixMultiply::kPanelBytes));
  return Ok();
}

bool IsByte(ScalarType type) {
  return type == ScalarType::kS8 || type == ScalarType::kU8;
}

// The type in which an asynchronous multiply accumulates; nullopt if it does not take its operands.
std::optional<ScalarType> SumTypeOf(const Kernel& kernel, const MatrixMultiply& product) {
  const Array &lhs = kernel.array(product.lhs), &rhs = kernel.array(product.rhs);
  if (product.IsFloat8() || product.float8[1] != Float8::kNone) {
    bool are_bits = lhs.type == ScalarType::kU8 && rhs.type == ScalarType::kU8 && !product.tf32 &&
                    product.IsFloat8() && product.float8[1] != Float8::kNone;
    return are_bits ? std::optional(ScalarType::kF32) : std::nullopt;
  }
  if (IsByte(lhs.type) && IsByte(rhs.type) && !product.tf32) return ScalarType::kS32;
  if (lhs.type != rhs.type || BytesOf(lhs.type) > 4 || IsInteger(lhs.type)) return std::nullopt;
  if ((lhs.type == ScalarType::kF32) != product.tf32) return std::nullopt;
  return AccumulatorScalarType(lhs.type);
}

Status VerifyAsyncTypes(const Kernel& kernel, const Stmt& stmt) {
  const MatrixMultiply& product = stmt.matmul;
  const Array &to = kernel.array(stmt.array), &lhs = kernel.array(product.lhs),
              &rhs = kernel.array(product.rhs);
  if (SumTypeOf(kernel, product) != to.type)
    return Bad(ErrorCode::kKernelTypes, kernel,
               fmt::format("multiply: async {} by {} into {}; f32 is multiplied as tf32, f8 as u8",
                           InfoOf(lhs.type).text, InfoOf(rhs.type).text, InfoOf(to.type).text));
  if (lhs.space == Space::kRegisters && BytesOf(lhs.type) != 2)
    return BadMemory(kernel,
                     fmt::format("multiply: {} is in registers and not of 16 bits", lhs.name));
  if (to.type == ScalarType::kS32 && product.columns > kMaxIntegerColumns &&
      product.columns % kIntegerColumnStep != 0)
    return BadStructure(kernel,
                        fmt::format("multiply: async of {} columns of integers", product.columns));
  return Ok();
}

}  // namespace

Status VerifyAsync(const Kernel& kernel, const Stmt& stmt) {
  const AsyncOp& op = *stmt.async;
  if (HasMbarrier(op.kind) && kernel.array(stmt.array).space != Space::kMbarrier)
    return BadMemory(kernel, fmt::format("{} is not an mbarrier", kernel.array(stmt.array).name));
  switch (op.kind) {
    case AsyncKind::kArrive:
      return op.number >= 0 ? Ok() : BadStructure(kernel, "arrive: it expects less than no bytes");
    case AsyncKind::kWait:
    case AsyncKind::kFence:
      return Ok();
    case AsyncKind::kCopy:
      TOK_RETURN_IF_ERROR(VerifyEnds(kernel, op.copy));
      return VerifyBox(kernel, op.copy, op.copy.from, op.copy.to);
    case AsyncKind::kCopyBack:
      TOK_RETURN_IF_ERROR(VerifyEndsOfCopyBack(kernel, op.copy));
      return VerifyBox(kernel, op.copy, op.copy.to, op.copy.from);
    case AsyncKind::kWaitCopies:
      return op.number >= 0 && op.number <= kMaxPending
                 ? Ok()
                 : BadStructure(kernel, fmt::format("drain: {} pending, at most {}", op.number,
                                                    kMaxPending));
    case AsyncKind::kWaitMultiplies:
      if (kernel.array(stmt.array).space != Space::kRegisters)
        return BadMemory(
            kernel, fmt::format("await: {} is not in registers", kernel.array(stmt.array).name));
      return op.number >= 0 && op.number <= kMaxPending
                 ? Ok()
                 : BadStructure(kernel, fmt::format("await: {} pending, at most {}", op.number,
                                                    kMaxPending));
    case AsyncKind::kRegisters:
      break;
  }
  bool fits =
      op.number >= kLeastRegisters && op.number <= kMostRegisters && op.number % kRegisterStep == 0;
  return fits ? Ok()
              : BadStructure(
                    kernel, fmt::format("limit: {} registers, not a multiple of {} from {} to {}",
                                        op.number, kRegisterStep, kLeastRegisters, kMostRegisters));
}

Status VerifyAsyncMultiply(const Kernel& kernel, const Stmt& stmt) {
  const MatrixMultiply& product = stmt.matmul;
  const Array &to = kernel.array(stmt.array), &lhs = kernel.array(product.lhs);
  const ScalarNode &depth = kernel.node(product.depth), &at = kernel.node(stmt.index);
  TOK_RETURN_IF_ERROR(VerifyAsyncTypes(kernel, stmt));
  if (to.space != Space::kRegisters)
    return BadMemory(kernel, fmt::format("multiply: {} is not in registers", to.name));
  if (product.rows != MatrixMultiply::kWarpgroupRows || product.columns < kColumnStep ||
      product.columns > kMaxColumns || product.columns % kColumnStep != 0)
    return BadStructure(kernel,
                        fmt::format("multiply: async of {} x {}", product.rows, product.columns));
  int64_t step = kDepthBytes / BytesOf(lhs.type);
  if (depth.prim != Prim::kConst || IntOfBits(depth.type, depth.bits) % step != 0)
    return BadStructure(kernel,
                        "multiply: the depth is not a constant multiple of the wgmma depth");
  if (at.prim != Prim::kConst || IntOfBits(at.type, at.bits) < 0 ||
      IntOfBits(at.type, at.bits) + product.AccumulatorsPerThread() > to.size)
    return BadMemory(kernel, fmt::format("multiply: {} has no {} sums at a constant index", to.name,
                                         product.AccumulatorsPerThread()));
  if (lhs.space != Space::kRegisters)
    TOK_RETURN_IF_ERROR(VerifyPanels(kernel, product.lhs, product.lhs_row_stride,
                                     product.lhs_column_stride, product.lhs_panel));
  return VerifyPanels(kernel, product.rhs, product.rhs_column_stride, product.rhs_row_stride,
                      product.rhs_panel);
}

}  // namespace tokamak
