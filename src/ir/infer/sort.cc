#include "ir/infer/families.h"
#include "ir/infer/require.h"

namespace tokamak {
namespace {

// The comparator takes two scalars of each operand's type, and captures, and returns a pred.
Status CheckComparator(const InferInput& in, size_t count) {
  const Computation& comparator = *in.called[0];
  TOK_RETURN_IF_ERROR(RequireCaptures(in, comparator, 2 * count));
  for (size_t i = 0; i < 2 * count; ++i) {
    const Shape& parameter = comparator.parameter(i)->shape();
    if (parameter.IsScalar() && parameter.type() == in.operands[i / 2].type()) continue;
    return MakeInferError(in, ErrorCode::kSortComparator,
                          "parameter {} of {} is {}, gets an element of {}", i, NameOf(comparator),
                          ToString(parameter), ToString(in.operands[i / 2]));
  }
  const Shape& root = RootShape(comparator);
  if (root.IsScalar() && root.type() == ElementType::kPred) return Ok();
  return MakeInferError(in, ErrorCode::kSortComparator, "{} must return pred[], returns {}",
                        NameOf(comparator), ToString(root));
}

}  // namespace

Result<Shape> InferSort(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  size_t count = OwnOperands(in);
  Sizes dims;
  TOK_RETURN_IF_ERROR(RequireSameSizes(in, count, dims));
  TOK_RETURN_IF_ERROR(
      RequireDimension(in, "dimension", in.attrs.As<SortAttrs>().dimension, in.operands[0].rank()));
  TOK_RETURN_IF_ERROR(CheckComparator(in, count));
  if (count == 1) return InferArray(in, in.operands[0].type(), dims, &in.operands[0]);
  std::vector<Shape> parts;
  for (size_t i = 0; i < count; ++i) {
    TOK_TRY(const Shape* written, WrittenPart(in, i, count));
    TOK_TRY(Shape part, InferResult(in, written, in.operands[i].type(), dims, &in.operands[i]));
    parts.push_back(std::move(part));
  }
  return InferResults(in, std::move(parts));
}

Result<Shape> InferTopK(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& x = in.operands[0];
  int64_t k = in.attrs.As<TopKAttrs>().k;
  if (IsComplex(x.type()))
    return MakeInferError(in, ErrorCode::kUnsupportedElementType,
                          "operand 0 is {}, complex numbers have no order", ToString(x));
  if (x.rank() == 0 || k < 0 || (x.dims().back() != kDynamic && k > x.dims().back()))
    return MakeInferError(in, ErrorCode::kTopKSize, "k is {}, the operand is {}", k, ToString(x));
  Sizes dims(x.dims());
  dims[dims.size() - 1] = k;
  TOK_TRY(const Shape* values, WrittenPart(in, 0, 2));
  TOK_TRY(const Shape* indices, WrittenPart(in, 1, 2));
  TOK_TRY(Shape first, InferResult(in, values, x.type(), dims, &x));
  TOK_TRY(Shape second, InferResult(in, indices, ElementType::kS32, dims));
  return InferResults(in, {std::move(first), std::move(second)});
}

namespace {

Error ScanError(const InferInput& in, std::string text) {
  return MakeInferError(in, ErrorCode::kScanShapes, "{}", text);
}

// The dimensions of one step: those of the array without the scanned dimension.
Sizes StepSizes(const Shape& shape, size_t along) {
  Sizes sizes;
  for (size_t d = 0; d < shape.dims().size(); ++d)
    if (d != along) sizes.push_back(shape.dim(d));
  return sizes;
}

bool IsArrayOf(const Shape& shape, ElementType type, Sizes sizes) {
  return shape.IsArray() && shape.type() == type && UnifySizes(sizes, shape.dims());
}

}  // namespace

// Operands: inputs, then `num_carries` initial carries. The body takes one step of each input and
// the carries, and returns one step of each output and the carries. The result has whole outputs,
// then the carries.
Result<Shape> InferScan(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  TOK_TRY(const Shape* written, RequireWritten(in));
  const auto& attrs = in.attrs.As<ScanAttrs>();
  size_t count = OwnOperands(in);
  for (size_t i = 0; i < count; ++i) TOK_RETURN_IF_ERROR(RequireArray(in, i));
  if (attrs.num_carries < 0 || attrs.num_carries >= static_cast<int64_t>(count))
    return ScanError(
        in, fmt::format("num_carries is {}, but there are {} operands", attrs.num_carries, count));
  size_t carries = static_cast<size_t>(attrs.num_carries), inputs = count - carries;
  const Computation& body = *in.called[0];
  TOK_RETURN_IF_ERROR(RequireCaptures(in, body, count));
  size_t along = static_cast<size_t>(attrs.dimension);
  int64_t steps = kDynamic;
  for (size_t i = 0; i < count; ++i) {
    const Shape &given = in.operands[i], &parameter = body.parameter(i)->shape();
    if (i < inputs)
      TOK_RETURN_IF_ERROR(RequireDimension(in, "dimension", attrs.dimension, given.rank()));
    Sizes step = i < inputs ? StepSizes(given, along) : Sizes(given.dims());
    bool good = IsArrayOf(parameter, given.type(), step) &&
                (i >= inputs || SizesAgree(steps, given.dim(along)));
    if (!good)
      return ScanError(in, fmt::format("parameter {} of {} is {}, operand {} is {}", i,
                                       NameOf(body), ToString(parameter), i, ToString(given)));
    if (i < inputs) steps = KnownSize(steps, given.dim(along));
  }
  const Shape& root = RootShape(body);
  size_t results = root.elements().size();
  if (!root.IsTuple() || !written->IsTuple() || results < carries ||
      written->elements().size() != results)
    return ScanError(in, fmt::format("{} returns {}, but the result is written {}, with {} carries",
                                     NameOf(body), ToString(root), ToString(*written), carries));
  for (size_t i = 0; i < results; ++i) {
    const Shape &part = root.elements()[i], &whole = written->elements()[i];
    bool is_carry = i + carries >= results;
    bool good = whole.IsArray() && part.IsArray() && part.type() == whole.type();
    if (good && !is_carry)
      good = whole.dims().size() > along && SizesAgree(whole.dim(along), steps);
    Sizes sizes = good && !is_carry ? StepSizes(whole, along) : Sizes(whole.dims());
    good = good && UnifySizes(sizes, part.dims());
    if (good && is_carry) {
      const Shape& init = in.operands[inputs + (i + carries - results)];
      good = IsArrayOf(init, part.type(), Sizes(part.dims()));
    }
    if (!good)
      return ScanError(in, fmt::format("{} returns {} as result {}, which is written {}",
                                       NameOf(body), ToString(part), i, ToString(whole)));
  }
  return *written;
}

}  // namespace tokamak
