// Requirements that many inference functions share. Each Require function returns Ok or one error
// with its own code, whose message names the op, then the two things that disagree with their
// values:
//
//   concatenate: dimension 3 is out of range, rank is 2
//
// Inference runs for every instruction that is read, built or verified, so the checks are written
// for success: they do not allocate, and messages are formatted on failure only. A size agrees with
// kDynamic. Reducer bodies are checked for scalars: a body may compute in a wider type of the same
// kind than its operands (CanPassAs).

#include "ir/infer/require.h"

#include <algorithm>
#include <bitset>

namespace tokamak {

Error MakeInferErrorText(const InferInput& in, ErrorCode code, std::string text) {
  return MakeError(code, std::string(InfoOf(in.op).name) + ": " + std::move(text));
}

std::string SizeText(int64_t size) {
  return size == kDynamic ? "?" : std::to_string(size);
}

std::string ListText(std::span<const int64_t> list) {
  std::string text = "{";
  for (size_t i = 0; i < list.size(); ++i) text += (i > 0 ? "," : "") + SizeText(list[i]);
  return text + "}";
}

bool UnifySizes(Sizes& dims, const Dims& other) {
  if (dims.size() != other.size()) return false;
  for (size_t i = 0; i < other.size(); ++i) {
    if (!SizesAgree(dims[i], other[i])) return false;
    dims[i] = KnownSize(dims[i], other[i]);
  }
  return true;
}

bool MultiplyAdd(int64_t a, int64_t b, int64_t c, int64_t* result) {
  int64_t product = 0;
  return !__builtin_mul_overflow(b, c, &product) && !__builtin_add_overflow(a, product, result) &&
         *result >= 0 && *result <= kMaxElements;
}

bool Has(const Dims& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

size_t OwnOperands(const InferInput& in) {
  return in.operands.size() - in.captures;
}

Status RequireOperands(const InferInput& in, size_t least, size_t most) {
  size_t count = OwnOperands(in);
  if (count >= least && count <= most) return Ok();
  if (least == most)
    return MakeInferError(in, ErrorCode::kOperandCount, "expected {} operands, got {}", least,
                          count);
  if (most == SIZE_MAX)
    return MakeInferError(in, ErrorCode::kOperandCount, "expected at least {} operands, got {}",
                          least, count);
  return MakeInferError(in, ErrorCode::kOperandCount, "expected {} to {} operands, got {}", least,
                        most, count);
}

Status RequireCalled(const InferInput& in, size_t count) {
  if (in.called.size() == count) return Ok();
  return MakeInferError(in, ErrorCode::kCalledCount, "calls {} computation{}, {} given", count,
                        count == 1 ? "" : "s", in.called.size());
}

Status RequireArray(const InferInput& in, size_t operand) {
  if (in.operands[operand].IsArray()) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kNotAnArray, "operand {} must be an array, is {}", operand,
                        ToString(in.operands[operand]));
}

Status RequireArrays(const InferInput& in) {
  for (size_t i = 0; i < in.operands.size(); ++i) TOK_RETURN_IF_ERROR(RequireArray(in, i));
  return Ok();
}

Status RequireToken(const InferInput& in, size_t operand) {
  if (in.operands[operand].IsToken()) return Ok();
  return MakeInferError(in, ErrorCode::kNotAToken, "operand {} must be a token, is {}", operand,
                        ToString(in.operands[operand]));
}

Status RequireScalar(const InferInput& in, size_t operand, ErrorCode code) {
  if (in.operands[operand].IsScalar()) return Ok();
  return MakeInferError(in, code, "operand {} must be a scalar, is {}", operand,
                        ToString(in.operands[operand]));
}

Status RequireIntegers(const InferInput& in, size_t operand, ErrorCode code) {
  TOK_RETURN_IF_ERROR(RequireArray(in, operand));
  const Shape& shape = in.operands[operand];
  if (IsInteger(shape.type()) && shape.quant() == nullptr) return Ok();
  return MakeInferError(in, code, "operand {} must be of integers, is {}", operand,
                        ToString(shape));
}

Status RequireDimension(const InferInput& in, const char* name, int64_t dimension, int64_t rank) {
  if (dimension >= 0 && dimension < rank) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kDimensionRange, "{} {} is out of range, rank is {}", name,
                        dimension, rank);
}

Status RequireUnique(const InferInput& in, const char* name, const Dims& dims, int64_t rank) {
  std::bitset<kMaxRank> seen;
  for (int64_t d : dims) {
    TOK_RETURN_IF_ERROR(RequireDimension(in, name, d, std::min<int64_t>(rank, kMaxRank)));
    if (seen.test(static_cast<size_t>(d)))
      return MakeInferError(in, ErrorCode::kDimensionTwice, "{} {} names dimension {} twice", name,
                            ListText(dims), d);
    seen.set(static_cast<size_t>(d));
  }
  return Ok();
}

Status RequireAscending(const InferInput& in, const char* name, const Dims& dims) {
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] <= dims[i - 1])
      return MakeInferError(in, ErrorCode::kDimensionOrder,
                            "{} {} must be in ascending order, but {} is before {}", name,
                            ListText(dims), dims[i - 1], dims[i]);
  }
  return Ok();
}

Status RequirePermutation(const InferInput& in, const char* name, const Dims& dims, int64_t rank) {
  std::bitset<kMaxRank> seen;
  bool good = static_cast<int64_t>(dims.size()) == rank && rank <= kMaxRank;
  for (size_t i = 0; good && i < dims.size(); ++i) {
    good = dims[i] >= 0 && dims[i] < rank && !seen.test(static_cast<size_t>(dims[i]));
    if (good) seen.set(static_cast<size_t>(dims[i]));
  }
  if (good) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kNotPermutation,
                        "{} {} is not a permutation of the {} dimensions of {}", name,
                        ListText(dims), rank, in.operands.empty() ? "" : ToString(in.operands[0]));
}

Status RequireCount(const InferInput& in, const char* name, size_t count, int64_t rank) {
  if (static_cast<int64_t>(count) == rank) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kDimensionCount, "{} has {} entries, rank is {}", name,
                        count, rank);
}

Status RequireTypes(const InferInput& in, size_t operand) {
  const Shape& shape = in.operands[operand];
  ElementType type = shape.quant() == nullptr ? shape.type() : shape.quant()->expressed;
  if (InfoOf(in.op).Takes(type)) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kUnsupportedElementType,
                        "operand {} is {}, an op that does not take {}", operand, ToString(shape),
                        HloName(type));
}

Status RequireSameType(const InferInput& in, size_t a, size_t b) {
  const Shape &x = in.operands[a], &y = in.operands[b];
  if (x.quant() == nullptr && y.quant() == nullptr && x.type() == y.type()) [[likely]]
    return Ok();
  if ((x.quant() == nullptr) != (y.quant() == nullptr))
    return MakeInferError(in, ErrorCode::kQuantMixed, "operand {} is {}, operand {} is {}", a,
                          x.quant() != nullptr ? "quantized" : "not quantized", b,
                          y.quant() != nullptr ? "quantized" : "not quantized");
  if (x.quant() != nullptr) {
    if (x.quant()->expressed == y.quant()->expressed) return Ok();
    return MakeInferError(in, ErrorCode::kQuantExpressed,
                          "operand {} expresses {}, operand {} expresses {}", a,
                          HloName(x.quant()->expressed), b, HloName(y.quant()->expressed));
  }
  return MakeInferError(in, ErrorCode::kOperandTypes,
                        "element types differ: operand {} is {}, operand {} is {}", a, ToString(x),
                        b, ToString(y));
}

Status RequirePlain(const InferInput& in, size_t operand) {
  if (in.operands[operand].quant() == nullptr) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kQuantMixed,
                        "operand {} is quantized, an op that does not take this", operand);
}

Status RequireSameSizes(const InferInput& in, size_t count, Sizes& dims) {
  for (size_t i = 0; i < count; ++i) TOK_RETURN_IF_ERROR(RequireArray(in, i));
  dims.Append(in.operands[0].dims());
  for (size_t i = 1; i < count; ++i) {
    if (!UnifySizes(dims, in.operands[i].dims()))
      return MakeInferError(in, ErrorCode::kOperandDimensions,
                            "dimensions differ: operand 0 is {}, operand {} is {}",
                            ToString(in.operands[0]), i, ToString(in.operands[i]));
  }
  return Ok();
}

Status RequireSizeVector(const InferInput& in, size_t operand, int64_t entries) {
  TOK_RETURN_IF_ERROR(RequireArray(in, operand));
  const Shape& shape = in.operands[operand];
  if (IsInteger(shape.type()) && shape.quant() == nullptr && shape.rank() == 1 &&
      SizesAgree(shape.dim(0), entries))
    return Ok();
  return MakeInferError(in, ErrorCode::kShapeOperand, "operand {} must be {} integers, is {}",
                        operand, SizeText(entries), ToString(shape));
}

// ---- computations that combine scalars ----

std::string NameOf(const Computation& computation) {
  return computation.name().empty() ? "(region)" : computation.name();
}

const Shape& RootShape(const Computation& computation) {
  static const Shape none;
  return computation.root() == nullptr ? none : computation.root()->shape();
}

bool CanPassAs(ElementType from, ElementType to) {
  if (KindOf(from) != KindOf(to)) return false;
  return IsReal(from) || InfoOf(from).bits <= InfoOf(to).bits;
}

Status RequireBodyParameter(const InferInput& in, const Computation& computation, size_t number,
                            ElementType type) {
  const Instr* parameter = computation.parameters()[number];
  if (parameter != nullptr && parameter->shape().IsScalar() &&
      CanPassAs(type, parameter->shape().type()))
    return Ok();
  return MakeInferError(in, ErrorCode::kBodyParameter, "parameter {} of {} is {}, gets {}[]",
                        number, NameOf(computation),
                        parameter == nullptr ? "missing" : ToString(parameter->shape()),
                        HloName(type));
}

Status RequireCaptures(const InferInput& in, const Computation& computation, size_t count) {
  const std::vector<Instr*>& parameters = computation.parameters();
  if (parameters.size() != count + in.captures)
    return MakeInferError(in, ErrorCode::kBodyParameterCount, "{} has {} parameters, {} are needed",
                          NameOf(computation), parameters.size(), count + in.captures);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i] == nullptr)
      return MakeInferError(in, ErrorCode::kBodyParameter, "parameter {} of {} is missing", i,
                            NameOf(computation));
  size_t first = OwnOperands(in);
  for (size_t i = 0; i < in.captures; ++i) {
    const Instr* parameter = parameters[count + i];
    const Shape& given = in.operands[first + i];
    if (parameter == nullptr || !CompatibleWithDynamic(parameter->shape(), given))
      return MakeInferError(in, ErrorCode::kBodyParameter, "parameter {} of {} is {}, gets {}",
                            count + i, NameOf(computation),
                            parameter == nullptr ? "missing" : ToString(parameter->shape()),
                            ToString(given));
  }
  return Ok();
}

Status RequireReducer(const InferInput& in, size_t called, std::span<const Shape> inputs,
                      std::span<const Shape> inits, ElementType* results) {
  const Computation& body = *in.called[called];
  size_t n = inputs.size();
  TOK_RETURN_IF_ERROR(RequireCaptures(in, body, 2 * n));
  const Shape& root = RootShape(body);
  bool good = n == 1 ? root.IsScalar() : root.IsTuple() && root.elements().size() == n;
  for (size_t i = 0; good && i < n; ++i) {
    const Shape& part = n == 1 ? root : root.elements()[i];
    TOK_RETURN_IF_ERROR(RequireBodyParameter(in, body, i, inits[i].type()));
    TOK_RETURN_IF_ERROR(RequireBodyParameter(in, body, n + i, inputs[i].type()));
    // The result is fed back as an argument.
    good = part.IsScalar() && KindOf(part.type()) == KindOf(body.parameter(i)->shape().type());
    if (good) results[i] = part.type();
  }
  if (good) return Ok();
  return MakeInferError(in, ErrorCode::kBodyResult,
                        "{} gives {}, {} scalar{} of its parameters' types needed", NameOf(body),
                        ToString(root), n, n == 1 ? "" : "s");
}

}  // namespace tokamak
