#include "gen/library/scatter.h"

#include <algorithm>
#include <limits>

#include "gen/generator.h"
#include "gen/reducer.h"

namespace tokamak {
namespace {

// Updates worth more than one thread, elements of an array that threads may share, and batches that
// they do share.
constexpr int64_t kPlaceMany = 1 << 17, kPlaceFewElements = 64, kSomeBatches = 4;

bool IsNarrow(ElementType type) {
  return InfoOf(type).bits < 32;
}

bool HasType(PlacedOp op, ElementType type) {
  if (!IsReal(type) && !IsInteger(type) && type != ElementType::kPred) return false;
  int bits = InfoOf(type).bits;
  if (op == PlacedOp::kSet) return bits >= 8 || type == ElementType::kPred;
  if (IsReal(type))
    return type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kBF16;
  if (!IsInteger(type) || bits < 8) return false;
  return op == PlacedOp::kAdd || !IsNarrow(type);
}

}  // namespace

std::optional<PlacedOp> PlacedOpOf(const Instr& scatter) {
  const Computation& body = *scatter.called(0);
  if (body.parameters().size() == 2 && body.root() == body.parameter(1)) return PlacedOp::kSet;
  std::optional<Op> op = AnyOrderOp(body);
  if (!op) return std::nullopt;
  switch (*op) {
    case Op::kAdd:
      return PlacedOp::kAdd;
    case Op::kMultiply:
      return PlacedOp::kMultiply;
    case Op::kMinimum:
      return PlacedOp::kMinimum;
    case Op::kMaximum:
      return PlacedOp::kMaximum;
    default:
      return std::nullopt;
  }
}

bool MayBePlacedScatter(const Instr& scatter) {
  if (WhyNoScatter(scatter) || IsTied(scatter)) return false;
  const Shape &shape = scatter.shape(), &updates = scatter.operand(2)->shape();
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  if (attrs.scatter_dims_to_operand_dims.empty()) return false;
  for (int64_t d : attrs.update_window_dims)
    if (updates.dim(static_cast<size_t>(d)) != 1) return false;
  if (updates.ElementCount() < kPlaceMany || shape.ElementCount() < kPlaceFewElements ||
      shape.ElementCount() > std::numeric_limits<int32_t>::max())
    return false;
  // Batches are shared out among threads as they are.
  int64_t batches = 1;
  for (int64_t d : attrs.input_batching_dims) batches *= shape.dim(static_cast<size_t>(d));
  if (batches >= kSomeBatches) return false;
  std::optional<PlacedOp> op = PlacedOpOf(scatter);
  return op && HasType(*op, shape.type());
}

bool IsPlacedScatter(const Instr& scatter) {
  if (scatter.op() != Op::kScatter || !MayBePlacedScatter(scatter)) return false;
  const Shape& indices = scatter.operand(1)->shape();
  return scatter.shape().rank() == 1 && indices.rank() == 1 &&
         indices.type() == ElementType::kS32 && scatter.operand(2)->shape().rank() == 1 &&
         scatter.attrs<ScatterAttrs>().index_vector_dim == 1;
}

}  // namespace tokamak
