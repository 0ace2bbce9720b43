#include "interp/dynamic_calls.h"

#include <algorithm>
#include <utility>

#include "interp/evaluators.h"
#include "interp/module_interpreter.h"
#include "interp/results.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

using Values = std::vector<Value>;

constexpr char kShapeOperands[] = "indices_of_shape_operands";

// A temporary instruction in its own module, alive while it is evaluated.
class Scratch {
 public:
  Scratch(const Instr& instr, Op op, Shape shape, std::span<const Value> operands, Attrs attrs)
      : module_(instr.parent()->module()->name()), operands_(operands.begin(), operands.end()) {
    module_.file = instr.parent()->module()->file;
    Computation* computation = module_.AddComputation("custom_call");
    std::vector<Instr*> parameters;
    for (const Value& operand : operands)
      parameters.push_back(
          computation->AppendParameter(static_cast<int64_t>(parameters.size()), operand.shape()));
    meant_ = computation->Append(op, std::move(shape), parameters, std::move(attrs));
    meant_->set_pos(instr.pos());
    meant_->set_called({instr.called().begin(), instr.called().end()});
    if (op != Op::kCustomCall || !instr.has_extras()) return;
    for (const AttrEntry& entry : instr.extras().discardable)
      if (entry.name != kShapeOperands)
        Set(meant_->mutable_extras().discardable, entry.name, entry.value);
  }

  Result<Value> Run(Context& context) { return Evaluate(*meant_, operands_, context); }

 private:
  Module module_;
  Values operands_;
  Instr* meant_;
};

Error BadShape(const Instr& instr, const std::string& text) {
  return MakeError(ErrorCode::kBadRunTimeShape, instr.attrs<CustomCallAttrs>().target + ": " + text,
                   SpanOf(instr));
}

const Literal* ShapeOperandIndices(const Instr& instr) {
  const AttrValue* value = Find(instr.extras().discardable, kShapeOperands);
  return value == nullptr ? nullptr : value->As<Literal>();
}

// The written shape of the program with the sizes given by an operand.
Result<Shape> WithSizes(const Instr& instr, const Shape& written, const Value& operand) {
  if (!written.IsArray() || !operand.shape().IsArray() || operand.shape().rank() != 1 ||
      !IsInteger(operand.type()))
    return BadShape(instr, ToString(operand.shape()) + " states no shape for " + ToString(written));
  Dims dims = IntsOf(operand);
  bool fits = CheckedElementCount(dims).has_value() && dims.size() == written.dims().size();
  for (size_t d = 0; fits && d < dims.size(); ++d)
    fits = dims[d] >= 0 && (written.dim(d) == kDynamic || written.dim(d) == dims[d]);
  if (!fits)
    return BadShape(instr, "the shape given at run time is not one of " + ToString(written));
  return written.WithDims(std::move(dims));
}

}  // namespace

bool StatesShapes(const Instr& instr) {
  return ShapeOperandIndices(instr) != nullptr;
}

Result<Value> EvalWithStatedShapes(const Instr& instr, std::span<const Value> operands,
                                   Context& context) {
  const Literal& indices = *ShapeOperandIndices(instr);
  const bool tuple = instr.shape().IsTuple();
  std::vector<Shape> shapes = tuple ? instr.shape().elements() : std::vector<Shape>{instr.shape()};
  const int64_t count = indices.shape().ElementCount();
  if (!IsInteger(indices.type()) || count != static_cast<int64_t>(shapes.size()))
    return BadShape(instr, std::to_string(count) + " operands state shapes, the results are " +
                               std::to_string(shapes.size()));
  std::vector<bool> states(operands.size(), false);
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = indices.IntAt(i);
    if (index < 0 || index >= static_cast<int64_t>(operands.size()))
      return BadShape(instr, "operand " + std::to_string(index) + " of " +
                                 std::to_string(operands.size()) + " states a shape");
    states[static_cast<size_t>(index)] = true;
    Shape& shape = shapes[static_cast<size_t>(i)];
    TOK_TRY(shape, WithSizes(instr, shape, operands[static_cast<size_t>(index)]));
    TOK_RETURN_IF_ERROR(context.CheckFits(instr, shape));
  }
  Values rest;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!states[i]) rest.push_back(operands[i]);
  CustomCallAttrs attrs = instr.attrs<CustomCallAttrs>();
  if (attrs.operand_layouts) attrs.operand_layouts->resize(rest.size());
  return Scratch(instr, Op::kCustomCall, tuple ? Shape::Tuple(shapes) : shapes[0], rest,
                 std::move(attrs))
      .Run(context);
}

Result<Value> EvalDynamicReduceWindow(const Instr& instr, std::span<const Value> operands,
                                      Context& context) {
  constexpr size_t kSizes = 5;  // sizes, strides, base dilations, window dilations, padding
  if (operands.size() < 2 + kSizes || operands.size() % 2 == 0)
    return BadShape(instr, "expected inputs, initial values and five arrays of sizes");
  const size_t own = operands.size() - kSizes, rank = operands[0].dims().size();
  std::vector<Dims> sizes;
  for (const Value& operand : operands.subspan(own)) {
    if (!operand.shape().IsArray() || !IsInteger(operand.type()) ||
        operand.ElementCount() != static_cast<int64_t>(sizes.size() < 4 ? rank : 2 * rank))
      return BadShape(instr, ToString(operand.shape()) + " does not describe a window of " +
                                 std::to_string(rank) + " dimensions");
    sizes.push_back(IntsOf(operand));
  }
  WindowAttrs attrs;
  for (size_t d = 0; d < rank; ++d)
    attrs.window.push_back({.size = sizes[0][d],
                            .stride = sizes[1][d],
                            .pad_low = sizes[4][2 * d],
                            .pad_high = sizes[4][2 * d + 1],
                            .base_dilation = sizes[2][d],
                            .window_dilation = sizes[3][d]});
  // Applies the verifier's window checks to the run-time values.
  std::vector<Shape> shapes;
  for (const Value& operand : operands.subspan(0, own)) shapes.push_back(operand.shape());
  Attrs window = attrs;
  Result<Shape> shape = InferShape({.op = Op::kReduceWindow,
                                    .operands = shapes,
                                    .attrs = window,
                                    .called = instr.called(),
                                    .captures = 0,
                                    .written = nullptr});
  if (!shape.ok()) return BadShape(instr, shape.error().message);
  return Scratch(instr, Op::kReduceWindow, std::move(shape.value()), operands.subspan(0, own),
                 std::move(attrs))
      .Run(context);
}

Result<Value> EvalDynamicRngBitGenerator(const Instr& instr, std::span<const Value> operands,
                                         Context& context) {
  if (operands.size() != 2 || !instr.shape().IsTuple() || instr.shape().elements().size() != 2)
    return BadShape(instr,
                    "expected a state and a shape as operands, and a state and bits as results");
  RngBitGeneratorAttrs attrs;
  const AttrValue* value = Find(instr.extras().discardable, "rng_algorithm");
  const EnumAttr* word = value == nullptr ? nullptr : value->As<EnumAttr>();
  if (word != nullptr && word->value == "THREE_FRY") attrs.algorithm = RngAlgorithm::kThreeFry;
  if (word != nullptr && word->value == "PHILOX") attrs.algorithm = RngAlgorithm::kPhilox;
  TOK_TRY(Shape bits, WithSizes(instr, instr.shape().elements()[1], operands[1]));
  TOK_RETURN_IF_ERROR(context.CheckFits(instr, bits));
  std::vector<Shape> shapes = {operands[0].shape(), bits};
  return Scratch(instr, Op::kRngBitGenerator, Shape::Tuple(shapes), operands.subspan(0, 1),
                 std::move(attrs))
      .Run(context);
}

}  // namespace tokamak
