#include "gen/library/scatter.h"

#include <algorithm>
#include <limits>

#include "gen/generator.h"
#include "gen/reducer.h"

namespace tokamak {
namespace {

// Minimum updates that are worth several threads. Chosen: they outweigh waking the threads, each of
// which reads all indices. Minimum elements of the array for threads to divide it. Chosen: with
// fewer, a few elements get all updates. Batches from which the generated kernel distributes
// batches instead. Chosen: these share no elements.
constexpr int64_t kLinearScatterMinUpdates = 1 << 17, kLinearScatterMinElements = 64,
                  kSomeBatches = 4;

bool IsNarrow(ElementType type) {
  return InfoOf(type).bits < 32;
}

bool HasType(LinearScatterOp op, ElementType type) {
  if (!IsReal(type) && !IsInteger(type) && type != ElementType::kPred) return false;
  int bits = InfoOf(type).bits;
  if (op == LinearScatterOp::kSet) return bits >= 8 || type == ElementType::kPred;
  if (IsReal(type))
    return type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kBF16;
  if (!IsInteger(type) || bits < 8) return false;
  return op == LinearScatterOp::kAdd || !IsNarrow(type);
}

}  // namespace

std::optional<LinearScatterOp> LinearScatterOpOf(const Instr& scatter) {
  const Computation& body = *scatter.called(0);
  if (body.parameters().size() == 2 && body.root() == body.parameter(1))
    return LinearScatterOp::kSet;
  std::optional<Op> op = CommutativeOpOf(body);
  if (!op) return std::nullopt;
  switch (*op) {
    case Op::kAdd:
      return LinearScatterOp::kAdd;
    case Op::kMultiply:
      return LinearScatterOp::kMultiply;
    case Op::kMinimum:
      return LinearScatterOp::kMinimum;
    case Op::kMaximum:
      return LinearScatterOp::kMaximum;
    default:
      return std::nullopt;
  }
}

bool CanUseRuntimeScatter(const Instr& scatter) {
  if (WhyNoScatterKernel(scatter) || HasControlDependencies(scatter)) return false;
  const Shape &shape = scatter.shape(), &updates = scatter.operand(2)->shape();
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  if (attrs.scatter_dims_to_operand_dims.empty()) return false;
  for (int64_t d : attrs.update_window_dims)
    if (updates.dim(static_cast<size_t>(d)) != 1) return false;
  if (updates.ElementCount() < kLinearScatterMinUpdates ||
      shape.ElementCount() < kLinearScatterMinElements ||
      shape.ElementCount() > std::numeric_limits<int32_t>::max())
    return false;
  // With enough batches the generated kernel already distributes them over threads.
  int64_t batches = 1;
  for (int64_t d : attrs.input_batching_dims) batches *= shape.dim(static_cast<size_t>(d));
  if (batches >= kSomeBatches) return false;
  std::optional<LinearScatterOp> op = LinearScatterOpOf(scatter);
  return op && HasType(*op, shape.type());
}

bool UsesRuntimeScatter(const Instr& scatter) {
  if (scatter.op() != Op::kScatter || !CanUseRuntimeScatter(scatter)) return false;
  const Shape& indices = scatter.operand(1)->shape();
  return scatter.shape().rank() == 1 && indices.rank() == 1 &&
         indices.type() == ElementType::kS32 && scatter.operand(2)->shape().rank() == 1 &&
         scatter.attrs<ScatterAttrs>().index_vector_dim == 1;
}

}  // namespace tokamak
