// Shape inference of dot, ragged-dot and scaled-dot.
//
//   lhs [B.., M.., K..]   rhs [B.., K.., N..]   ->   [B.., M.., N..]      in this order of groups
//
// B are batch dimensions, paired in the order of the attributes; K are contracted, M and N free, in
// the order of the operand. The element type is the wider of the two, or the one that the program
// writes (preferred_element_type), if products may accumulate as it (SumsAs). Quantized operands
// take the written type.
//
// A ragged dot divides one dimension of lhs into groups whose sizes are an operand. If that
// dimension is free, each group has its own rhs; if it is contracted, each group has its own
// result; if it is a batch dimension, only the sizes matter.

#include <algorithm>

#include "ir/infer/contraction.h"
#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {
namespace {

// Checks pairs of dimensions, one from each side, that must have equal sizes.
Status CheckPairs(const InferInput& in, const Dims& lhs, const Dims& rhs, const char* word,
                  ErrorCode code) {
  if (lhs.size() != rhs.size())
    return MakeInferError(in, ErrorCode::kContractedCount, "{} {} dimensions of lhs, {} of rhs",
                          lhs.size(), word, rhs.size());
  const Shape &x = in.operands[0], &y = in.operands[1];
  for (size_t i = 0; i < lhs.size(); ++i) {
    int64_t a = x.dim(static_cast<size_t>(lhs[i])), b = y.dim(static_cast<size_t>(rhs[i]));
    if (!SizesAgree(a, b))
      return MakeInferError(in, code,
                            "{} dimensions differ: lhs dimension {} is {}, rhs dimension {} is {}",
                            word, lhs[i], a, rhs[i], b);
  }
  return Ok();
}

Status CheckSide(const InferInput& in, const char* side, const Dims& batch, const Dims& contracting,
                 const Shape& shape) {
  TOK_RETURN_IF_ERROR(RequireUnique(in, side, batch, shape.rank()));
  TOK_RETURN_IF_ERROR(RequireUnique(in, side, contracting, shape.rank()));
  for (int64_t d : batch) {
    if (Has(contracting, d))
      return MakeInferError(in, ErrorCode::kDimensionReused,
                            "{} {} of {} is both batch and contracted", side, d, ToString(shape));
  }
  return Ok();
}

Status CheckDot(const InferInput& in, const DotAttrs& attrs) {
  TOK_RETURN_IF_ERROR(
      CheckSide(in, "lhs dimension", attrs.lhs_batch, attrs.lhs_contracting, in.operands[0]));
  TOK_RETURN_IF_ERROR(
      CheckSide(in, "rhs dimension", attrs.rhs_batch, attrs.rhs_contracting, in.operands[1]));
  TOK_RETURN_IF_ERROR(
      CheckPairs(in, attrs.lhs_batch, attrs.rhs_batch, "batch", ErrorCode::kBatchSizes));
  TOK_RETURN_IF_ERROR(CheckPairs(in, attrs.lhs_contracting, attrs.rhs_contracting, "contracted",
                                 ErrorCode::kContractedSizes));
  return RequirePrecision(in, attrs.precision);
}

// Batch dimensions, then the free dimensions of lhs and of rhs; dimension `skip` of rhs is left
// out.
Sizes DotSizes(const InferInput& in, const DotAttrs& attrs, int64_t skip) {
  const Shape &x = in.operands[0], &y = in.operands[1];
  Sizes dims;
  for (size_t i = 0; i < attrs.lhs_batch.size(); ++i)
    dims.push_back(KnownSize(x.dim(static_cast<size_t>(attrs.lhs_batch[i])),
                             y.dim(static_cast<size_t>(attrs.rhs_batch[i]))));
  for (int64_t d = 0; d < x.rank(); ++d)
    if (!Has(attrs.lhs_batch, d) && !Has(attrs.lhs_contracting, d))
      dims.push_back(x.dim(static_cast<size_t>(d)));
  for (int64_t d = 0; d < y.rank(); ++d)
    if (!Has(attrs.rhs_batch, d) && !Has(attrs.rhs_contracting, d) && d != skip)
      dims.push_back(y.dim(static_cast<size_t>(d)));
  return dims;
}

// A pred operand next to a numeric one, as XLA's convolutions accept it. It counts as 0 or 1, which
// f8e8m0fnu cannot represent.
bool IsMask(const Shape& mask, const Shape& numbers) {
  return mask.type() == ElementType::kPred && numbers.type() != ElementType::kF8E8M0FNU;
}

// The accumulation type if none is written: the wider one.
ElementType ProductType(const Shape& x, const Shape& y) {
  return InfoOf(y.type()).bits > InfoOf(x.type()).bits ? y.type() : x.type();
}

// Whether products of `type` may be accumulated as another type. JAX requests integers of the other
// signedness, floats for integers, and counts for preds (preferred_element_type).
bool SumsAs(ElementType type, ElementType sum) {
  if (type == ElementType::kPred)
    return IsInteger(sum) || (IsReal(sum) && sum != ElementType::kF8E8M0FNU);
  if (IsReal(type) || (IsInteger(type) && IsReal(sum))) return IsReal(sum);
  bool same_kind = KindOf(sum) == KindOf(type) || (IsInteger(type) && IsInteger(sum));
  return same_kind && InfoOf(sum).bits >= InfoOf(type).bits;
}

}  // namespace

// Also for convolutions, which accept a pred mask beside numbers.
Result<Shape> InferProducts(const InferInput& in, const Sizes& dims) {
  const Shape &x = in.operands[0], &y = in.operands[1];
  bool quantized = x.quant() != nullptr || y.quant() != nullptr;
  if (quantized) {
    // The result is quantized, or plain if only the weights are quantized; the program states
    // which.
    TOK_TRY(const Shape* written, RequireWrittenArray(in));
    return InferArray(in, written->type(), dims, written);
  }
  bool together = x.type() == y.type() || (IsReal(x.type()) && IsReal(y.type())) ||
                  (IsInteger(x.type()) && IsInteger(y.type())) ||
                  (in.op == Op::kConvolution && IsMask(x, y)) ||
                  (in.op == Op::kConvolution && IsMask(y, x));
  if (!together)
    return MakeInferError(in, ErrorCode::kDotTypes,
                          "lhs is {}, rhs is {}: their types are incompatible", ToString(x),
                          ToString(y));
  ElementType type = ProductType(x, y);
  if (in.written != nullptr && in.written->IsArray() && in.written->type() != type) {
    if (!SumsAs(type, in.written->type()))
      return MakeInferError(in, ErrorCode::kDotTypes,
                            "the result is written {}, lhs is {}, rhs is {}", ToString(*in.written),
                            ToString(x), ToString(y));
    type = in.written->type();
  }
  return InferArray(in, type, dims);
}

Status RequirePrecision(const InferInput& in, const std::vector<Precision>& precision) {
  if (precision.empty() || precision.size() == 2 || precision.size() == OwnOperands(in))
    return Ok();
  return MakeInferError(in, ErrorCode::kPrecisionCount, "{} precisions, expected 2",
                        precision.size());
}

Result<Shape> InferDot(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const auto& attrs = in.attrs.As<DotAttrs>();
  TOK_RETURN_IF_ERROR(CheckDot(in, attrs));
  return InferProducts(in, DotSizes(in, attrs, -1));
}

// The ragged dimension of lhs is free (each group has a separate rhs), contracted (each group has a
// separate result) or a batch dimension.
Result<Shape> InferRaggedDot(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequireIntegers(in, 2, ErrorCode::kRaggedDims));
  const auto& attrs = in.attrs.As<DotAttrs>();
  TOK_RETURN_IF_ERROR(CheckDot(in, attrs));
  const Shape &x = in.operands[0], &y = in.operands[1], &sizes = in.operands[2];
  if (attrs.lhs_ragged.size() != 1 || sizes.rank() < 1)
    return MakeInferError(in, ErrorCode::kRaggedDims,
                          "{} ragged dimensions of lhs, group sizes are {}",
                          attrs.lhs_ragged.size(), ToString(sizes));
  int64_t ragged = attrs.lhs_ragged[0], groups = sizes.dims().back();
  TOK_RETURN_IF_ERROR(RequireDimension(in, "ragged dimension", ragged, x.rank()));
  bool is_batch = Has(attrs.lhs_batch, ragged), is_contracted = Has(attrs.lhs_contracting, ragged);
  bool is_free = !is_batch && !is_contracted;
  if (attrs.rhs_group.size() != (is_free ? 1u : 0u))
    return MakeInferError(in, ErrorCode::kRaggedDims, "{} group dimensions of rhs, {} needed",
                          attrs.rhs_group.size(), is_free ? 1 : 0);
  int64_t group = is_free ? attrs.rhs_group[0] : -1;
  if (is_free) {
    TOK_RETURN_IF_ERROR(RequireDimension(in, "group dimension", group, y.rank()));
    if (Has(attrs.rhs_batch, group) || Has(attrs.rhs_contracting, group) ||
        !SizesAgree(y.dim(static_cast<size_t>(group)), groups))
      return MakeInferError(in, ErrorCode::kRaggedDims,
                            "group dimension {} of {} does not match {} groups", group, ToString(y),
                            SizeText(groups));
  }
  Dims prefix;
  for (int64_t d : attrs.lhs_batch)
    if (!is_batch || std::find(attrs.lhs_batch.begin(), attrs.lhs_batch.end(), ragged) >
                         std::find(attrs.lhs_batch.begin(), attrs.lhs_batch.end(), d))
      prefix.push_back(d);
  if (is_contracted)
    for (size_t i = 0; attrs.lhs_contracting[i] != ragged; ++i)
      prefix.push_back(attrs.lhs_contracting[i]);
  for (int64_t d = 0; is_free && d < ragged; ++d)
    if (!Has(attrs.lhs_batch, d) && !Has(attrs.lhs_contracting, d)) prefix.push_back(d);
  bool good = sizes.rank() == 1 || sizes.dims().size() == prefix.size() + 1;
  for (size_t i = 0; good && i + 1 < sizes.dims().size(); ++i)
    good = SizesAgree(sizes.dim(i), x.dim(static_cast<size_t>(prefix[i])));
  if (!good)
    return MakeInferError(
        in, ErrorCode::kRaggedDims,
        "group sizes are {}, 1 dimension or dimensions {} of {} and the groups needed",
        ToString(sizes), ListText(prefix), ToString(x));
  Sizes dims;
  if (is_contracted) dims.push_back(groups);
  dims.Append(DotSizes(in, attrs, group).span());
  return InferProducts(in, dims);
}

Result<Shape> InferScaledDot(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const auto& attrs = in.attrs.As<DotAttrs>();
  TOK_RETURN_IF_ERROR(CheckDot(in, attrs));
  for (size_t side : {size_t{0}, size_t{1}}) {
    const Shape &x = in.operands[side], &scale = in.operands[side + 2];
    bool good = IsReal(scale.type()) && (scale.rank() == 0 || scale.rank() == x.rank());
    for (size_t d = 0; good && d < scale.dims().size(); ++d)
      good = x.dim(d) == kDynamic || scale.dim(d) == kDynamic || x.dim(d) == scale.dim(d) ||
             (scale.dim(d) > 0 && x.dim(d) % scale.dim(d) == 0);
    if (!good)
      return MakeInferError(in, ErrorCode::kScaleShape,
                            "operand {} is {}, which does not scale blocks of {}", side + 2,
                            ToString(scale), ToString(x));
  }
  return InferProducts(in, DotSizes(in, attrs, -1));
}

}  // namespace tokamak
