// custom-call: functions that the runtime knows by name.

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "interp/devices.h"
#include "interp/dynamic_calls.h"
#include "interp/evaluators.h"
#include "interp/host.h"
#include "interp/lapack.h"
#include "interp/module_interpreter.h"
#include "interp/scalar_body.h"
#include "interp/slice_values.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

using Values = std::vector<Value>;
using CustomCallFn = Result<Value> (*)(const Instr&, std::span<const Value>, Context&);

Result<Value> SameValue(const Instr& instr, std::span<const Value> operands, Context&) {
  if (operands.size() == 1 && !instr.shape().IsTuple()) return TakeOperand(operands, 0);
  if (operands.empty()) return Zeros(instr.shape());
  return Value::Tuple(Values(operands.begin(), operands.end()));
}

// Converts between the full array and one device's shard: the identity on one device.
Result<Value> Reshard(const Instr& instr, std::span<const Value> operands, Context& context) {
  if (instr.shape().IsArray() && operands[0].dims() != instr.shape().dims())
    return Unsupported(instr, "'" + instr.attrs<CustomCallAttrs>().target + "' from " +
                                  ToString(operands[0].shape()) + " to " + ToString(instr.shape()) +
                                  " needs several devices");
  return SameValue(instr, operands, context);
}

// JAX's check of a symbolic shape: a pred, then the numbers for its message.
Result<Value> AssertShape(const Instr& instr, std::span<const Value> operands, Context&) {
  for (const Value& operand : operands)
    if (!operand.shape().IsArray() || operand.ElementCount() == 0 ||
        !(IsInteger(operand.type()) || operand.type() == ElementType::kPred))
      return Unsupported(instr, "a shape assertion about " + ToString(operand.shape()));
  if (!operands.empty() && operands[0].type() == ElementType::kPred && operands[0].IntAt(0) == 0) {
    const CustomCallAttrs& attrs = instr.attrs<CustomCallAttrs>();
    const AttrValue* message = Find(attrs.backend_dict, "error_message");
    const std::string* text = message == nullptr ? nullptr : message->As<std::string>();
    if (const AttrValue* outer = Find(instr.extras().discardable, "error_message"))
      text = outer->As<std::string>();
    std::string numbers;
    for (size_t i = 1; i < operands.size(); ++i)
      numbers += (i > 1 ? ", " : "; its values are ") + std::to_string(operands[i].IntAt(0));
    return MakeError(ErrorCode::kAssertionFailed,
                     "shape_assertion: " + (text == nullptr ? "does not hold" : *text) + numbers,
                     SpanOf(instr));
  }
  return Zeros(instr.shape());
}

// Verifies the op that a call represents; the verifier sees only the call.
Status CheckMeant(const Instr& instr, Op op, const Attrs& attrs, const Values& operands,
                  const Shape* written) {
  std::vector<Shape> shapes;
  for (const Value& operand : operands) shapes.push_back(operand.shape());
  Result<Shape> shape = InferShape({.op = op,
                                    .operands = shapes,
                                    .attrs = attrs,
                                    .called = instr.called(),
                                    .captures = 0,
                                    .written = written});
  if (shape.ok()) return Ok();
  return Unsupported(instr,
                     "'" + instr.attrs<CustomCallAttrs>().target +
                         "' does not match the op that it represents: " + shape.error().message);
}

// Evaluates a call as the op that it represents.
Result<Value> AsOp(const Instr& instr, Op op, Attrs attrs, Values operands, Context& context) {
  TOK_RETURN_IF_ERROR(CheckMeant(instr, op, attrs, operands, &instr.shape()));
  Module module(instr.parent()->module()->name());
  module.file = instr.parent()->module()->file;
  Computation* scratch = module.AddComputation("custom_call");
  std::vector<Instr*> parameters;
  for (size_t i = 0; i < operands.size(); ++i)
    parameters.push_back(scratch->AppendParameter(static_cast<int64_t>(i), operands[i].shape()));
  Instr* meant = scratch->Append(op, instr.shape(), parameters, std::move(attrs));
  meant->set_pos(instr.pos());
  meant->set_called({instr.called().begin(), instr.called().end()});
  return Evaluate(*meant, operands, context);
}

// An integer or bool attribute of the call; dictionaries of mhlo.* calls are nested one level
// deeper.
std::optional<int64_t> IntAttribute(const Instr& instr, std::string_view name) {
  const AttrDict* dicts[] = {&instr.attrs<CustomCallAttrs>().backend_dict,
                             &instr.extras().discardable, nullptr};
  if (const AttrValue* inner = Find(instr.extras().discardable, "mhlo.attributes"))
    dicts[2] = inner->As<AttrDict>();
  for (const AttrDict* dict : dicts) {
    const AttrValue* value = dict == nullptr ? nullptr : Find(*dict, name);
    if (value == nullptr) continue;
    if (const IntAttr* number = value->As<IntAttr>()) return number->value;
    if (const bool* flag = value->As<bool>()) return *flag ? 1 : 0;
  }
  return std::nullopt;
}

bool IsOneInteger(const Value& value) {
  return value.shape().IsArray() && value.ElementCount() == 1 && IsInteger(value.type());
}

Result<Value> RunTopK(const Instr& instr, std::span<const Value> operands, Context& context) {
  if (!instr.shape().IsTuple() || instr.shape().elements().empty())
    return Unsupported(instr, "the result is not a tuple of values and indices");
  if (operands.empty() || (operands.size() > 1 && !IsOneInteger(operands[1])))
    return Unsupported(instr, "expected an array and, if k is dynamic, an integer");
  TopKAttrs attrs;
  const Dims& dims = instr.shape().elements()[0].dims();
  attrs.k = dims.empty() ? 0 : dims.back();
  if (std::optional<int64_t> k = IntAttribute(instr, "k")) attrs.k = *k;
  if (operands.size() > 1) attrs.k = operands[1].IntAt(0);
  attrs.largest = IntAttribute(instr, "largest").value_or(1) != 0;
  return AsOp(instr, Op::kTopK, attrs, {operands[0]}, context);
}

// ApproxTopK. Operands: inputs, then initial values, then k if it is dynamic; plus a comparator.
// Computed exactly, by a sort that need not be stable, as in XLA.
Result<Value> RunApproxTopK(const Instr& instr, std::span<const Value> operands, Context& context) {
  std::optional<int64_t> dimension = IntAttribute(instr, "reduction_dim");
  std::optional<int64_t> k = IntAttribute(instr, "top_k");
  size_t count = operands.size() / 2;
  if (operands.size() % 2 != 0 && IsOneInteger(operands.back())) k = operands.back().IntAt(0);
  if (!dimension || !k || count == 0 || instr.called().empty())
    return Unsupported(instr, "ApproxTopK without reduction_dim, top_k or comparator");
  size_t d = static_cast<size_t>(*dimension);
  if (*dimension < 0 || d >= operands[0].dims().size() || *k < 0 || *k > operands[0].dims()[d])
    return Unsupported(instr, "ApproxTopK of " + std::to_string(*k) + " along dimension " +
                                  std::to_string(*dimension) + " of " +
                                  ToString(operands[0].shape()));
  SortAttrs attrs;
  attrs.dimension = *dimension;
  Values inputs(operands.begin(), operands.begin() + static_cast<ptrdiff_t>(count));
  std::vector<Shape> shapes;
  for (const Value& input : inputs) shapes.push_back(input.shape());
  TOK_RETURN_IF_ERROR(CheckMeant(instr, Op::kSort, attrs, inputs, nullptr));
  Module module(instr.parent()->module()->name());
  module.file = instr.parent()->module()->file;
  Computation* scratch = module.AddComputation("approx_top_k");
  std::vector<Instr*> parameters;
  for (size_t i = 0; i < count; ++i)
    parameters.push_back(scratch->AppendParameter(static_cast<int64_t>(i), shapes[i]));
  Instr* sort =
      scratch->Append(Op::kSort, count == 1 ? shapes[0] : Shape::Tuple(shapes), parameters, attrs);
  sort->set_called({instr.called(0)});
  TOK_TRY(Value sorted, Evaluate(*sort, inputs, context));
  Values results;
  for (size_t i = 0; i < count; ++i)
    results.push_back(SliceOf(count == 1 ? sorted : sorted.elements()[i], d, 0, *k));
  if (!instr.shape().IsTuple() && count == 1) return std::move(results[0]);
  return Value::Tuple(std::move(results));
}

const std::map<std::string_view, CustomCallFn>& Calls() {
  static const auto* calls = new std::map<std::string_view, CustomCallFn>{
      {"Sharding", SameValue},
      {"SPMDFullToShardShape", Reshard},
      {"SPMDShardToFullShape", Reshard},
      {"xla.sdy.FuncResultSharding", SameValue},
      {"xla.sdy.PropagationBarrier", SameValue},
      {"xla.sdy.ShardingGroup", SameValue},
      {"xla.sdy.GlobalToLocalShape", Reshard},
      {"xla.sdy.LocalToGlobalShape", Reshard},
      {"annotate_device_placement", SameValue},
      {"MoveToHost", SameValue},
      {"MoveToDevice", SameValue},
      {"PinToDevice", SameValue},
      {"PinToDeviceSram", SameValue},
      {"LayoutConstraint", SameValue},
      {"inspect_sharding", SameValue},
      {"shape_assertion", AssertShape},
      {"ApproxTopK", RunApproxTopK},
      {"TopK", RunTopK},
      {"mhlo.topk", RunTopK},
      {"stablehlo.dynamic_top_k", RunTopK},
      {"stablehlo.dynamic_approx_top_k", RunApproxTopK},
      {"stablehlo.dynamic_reduce_window", EvalDynamicReduceWindow},
      {"stablehlo.dynamic_rng_bit_generator", EvalDynamicRngBitGenerator},
      {"cu_threefry2x32", EvalThreefryCall},
      {"cu_threefry2x32_ffi", EvalThreefryCall},
      {"hip_threefry2x32", EvalThreefryCall},
      {"hip_threefry2x32_ffi", EvalThreefryCall},
  };
  return *calls;
}

// "mhlo.erf" is CHLO's erf.
std::optional<Op> MeantOp(std::string_view target) {
  size_t dot = target.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string_view dialect = target.substr(0, dot), name = target.substr(dot + 1);
  if (dialect != "mhlo" && dialect != "chlo" && dialect != "stablehlo") return std::nullopt;
  std::optional<Op> op = OpFromMlirName("chlo." + std::string(name));
  if (!op.has_value()) op = OpFromMlirName("stablehlo." + std::string(name));
  if (!op.has_value() || !InfoOf(*op).Is(kElementwise)) return std::nullopt;
  return op;
}

}  // namespace

Result<Value> EvalCustomCall(const Instr& instr, std::span<const Value> operands,
                             Context& context) {
  const std::string& target = instr.attrs<CustomCallAttrs>().target;
  if (context.host != nullptr && context.host->calls != nullptr &&
      context.host->calls->Knows(target))
    return context.host->calls->Call(
        instr, operands,
        context.replica * (context.devices == nullptr ? 1 : context.devices->partitions()) +
            context.partition);
  if (StatesShapes(instr)) return EvalWithStatedShapes(instr, operands, context);
  auto known = Calls().find(target);
  if (known != Calls().end()) return known->second(instr, operands, context);
  if (IsLinearAlgebraCall(target)) return EvalLinearAlgebraCall(instr, operands, context);
  std::optional<Op> meant = MeantOp(target);
  if (meant.has_value() && static_cast<size_t>(InfoOf(*meant).arity) == operands.size())
    return AsOp(instr, *meant, {}, Values(operands.begin(), operands.end()), context);
  return Unsupported(instr, "no implementation of the target '" + target +
                                "' is registered (in JAX: jax.ffi.register_ffi_target with "
                                "platform=\"tokamak\", docs/jax.md)");
}

}  // namespace tokamak
