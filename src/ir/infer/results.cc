#include "ir/infer/require.h"

// Compares inferred shapes with written ones.

namespace tokamak {
namespace {

std::string ShapeText(ElementType type, const Sizes& dims) {
  return ToString(Shape::Array(type, Dims(dims.span().begin(), dims.span().end())));
}

bool SameSizes(const Dims& written, const Sizes& dims) {
  if (written.size() != dims.size()) return false;
  for (size_t i = 0; i < written.size(); ++i)
    if (written[i] != dims[i]) return false;
  return true;
}

// Whether a known size exceeds its bound.
bool BreaksBounds(const Shape& shape, const Sizes& dims) {
  for (size_t i = 0; i < shape.bounds().size() && i < dims.size(); ++i)
    if (shape.dim(i) == kDynamic && shape.bounds()[i] != kDynamic && dims[i] != kDynamic &&
        dims[i] > shape.bounds()[i])
      return true;
  return false;
}

Status CheckSizes(const InferInput& in, ElementType type, const Sizes& dims) {
  if (!dims.fits())
    return MakeInferError(in, ErrorCode::kSizeOverflow, "result has {} dimensions, the limit is {}",
                          dims.size(), kMaxRank);
  if (CheckedElementCount(dims.span())) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kSizeOverflow, "result {} has too many elements",
                        ShapeText(type, dims));
}

Shape Build(ElementType type, const Sizes& dims, const Shape* like) {
  Shape shape = Shape::Array(type, Dims(dims.span().begin(), dims.span().end()));
  if (like == nullptr) return shape;
  if (like->quant() != nullptr) shape = shape.WithQuant(*like->quant());
  if (like->bounds().size() == dims.size()) {
    Dims bounds = like->bounds();
    for (size_t i = 0; i < bounds.size(); ++i)
      if (dims[i] != kDynamic) bounds[i] = kDynamic;
    shape = shape.WithBounds(std::move(bounds));
  }
  return shape;
}

Status CheckWritten(const InferInput& in, const Shape& written, ElementType type, const Sizes& dims,
                    const Shape* like) {
  if (!written.IsArray())
    return MakeInferError(in, ErrorCode::kResultIsNotAnArray, "result is written {}, inferred {}",
                          ToString(written), ShapeText(type, dims));
  bool quantized = like != nullptr && like->quant() != nullptr;
  if (quantized != (written.quant() != nullptr))
    return MakeInferError(in, ErrorCode::kQuantMixed, "operands are {}, the result is {}",
                          quantized ? "quantized" : "not quantized",
                          quantized ? "not" : "quantized");
  if (quantized && written.quant()->expressed != like->quant()->expressed)
    return MakeInferError(in, ErrorCode::kQuantExpressed,
                          "operands express {}, the result expresses {}",
                          HloName(like->quant()->expressed), HloName(written.quant()->expressed));
  if (!quantized && written.type() != type)
    return MakeInferError(in, ErrorCode::kResultType, "result is written {}, inferred {}",
                          ToString(written), ShapeText(type, dims));
  Sizes known = dims;
  if (!UnifySizes(known, written.dims()) || BreaksBounds(written, dims))
    return MakeInferError(in, ErrorCode::kResultShape, "result is written {}, inferred {}",
                          ToString(written), ShapeText(type, dims));
  return Ok();
}

// Whether every inferred size is also written.
bool SaysAll(const Shape& written, const Sizes& dims) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (written.dim(i) == kDynamic && dims[i] != kDynamic) return false;
  return true;
}

}  // namespace

Result<Shape> InferResult(const InferInput& in, const Shape* written, ElementType type,
                          const Sizes& dims, const Shape* like) {
  bool quantized = like != nullptr && like->quant() != nullptr;
  if (written != nullptr && written->IsArray() && !quantized && written->quant() == nullptr &&
      written->type() == type && SameSizes(written->dims(), dims)) [[likely]]
    return *written;
  TOK_RETURN_IF_ERROR(CheckSizes(in, type, dims));
  if (written == nullptr) return Build(type, dims, like);
  TOK_RETURN_IF_ERROR(CheckWritten(in, *written, type, dims, like));
  // A bounded dimension carries more information than a static size: it may be smaller at run time.
  if (SaysAll(*written, dims) || !written->bounds().empty()) return *written;
  Sizes known = dims;
  UnifySizes(known, written->dims());
  return written->WithDims(Dims(known.span().begin(), known.span().end()));
}

Result<Shape> InferArray(const InferInput& in, ElementType type, const Sizes& dims,
                         const Shape* like) {
  return InferResult(in, in.written, type, dims, like);
}

Result<Shape> InferShape(const InferInput& in, const Shape& shape) {
  if (in.written == nullptr || *in.written == shape) return shape;
  if (CompatibleWithDynamic(*in.written, shape)) return *in.written;
  return MakeInferError(in, ErrorCode::kResultShape, "result is written {}, inferred {}",
                        ToString(*in.written), ToString(shape));
}

Result<const Shape*> WrittenPart(const InferInput& in, size_t i, size_t count) {
  if (in.written == nullptr || count == 1) return in.written;
  if (in.written->IsTuple() && in.written->elements().size() == count)
    return &in.written->elements()[i];
  return MakeInferError(in, ErrorCode::kNotATuple, "result is written {}, a tuple of {} needed",
                        ToString(*in.written), count);
}

Result<Shape> InferResults(const InferInput& in, std::vector<Shape> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  if (in.written != nullptr && in.written->elements() == parts) return *in.written;
  return Shape::Tuple(std::move(parts));
}

Result<const Shape*> RequireWritten(const InferInput& in) {
  if (in.written != nullptr) [[likely]]
    return in.written;
  return MakeInferError(in, ErrorCode::kShapeMissing, "the shape of the result must be written");
}

Result<const Shape*> RequireWrittenArray(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  if (written->IsArray()) [[likely]]
    return written;
  return MakeInferError(in, ErrorCode::kResultIsNotAnArray,
                        "result must be an array, is written {}", ToString(*written));
}

}  // namespace tokamak
