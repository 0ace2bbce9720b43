// collective-permute, send and recv: point-to-point transfers without a rendezvous.

#include <algorithm>
#include <utility>

#include "interp/devices.h"
#include "interp/evaluators.h"
#include "interp/groups.h"
#include "interp/host.h"
#include "interp/slice_values.h"

namespace tokamak {
namespace {

using Values = std::vector<Value>;

Value AsPermuteResult(const Shape& shape, Values values) {
  if (!shape.IsTuple() && values.size() == 1) return std::move(values[0]);
  return Value::Tuple(std::move(values));
}

// Pairs name replicas, or partitions if there is a channel.
Result<Values> Permute(const Instr& instr, std::span<const Value> operands, Context& context) {
  const PermuteAttrs& attrs = instr.attrs<PermuteAttrs>();
  if (!attrs.slice_sizes.empty())
    return Unsupported(instr, "the in-place form with slices is not supported");
  Values zeros;
  for (const Value& operand : operands) zeros.push_back(Zeros(operand.shape()));
  bool across_partitions = attrs.channel_id > 0;
  int64_t mine = across_partitions ? context.partition : context.replica;
  int64_t limit = 1, other = 0, count = 1;
  if (context.devices != nullptr) {
    count = context.devices->partitions();
    limit = across_partitions ? count : context.devices->replicas();
    other = across_partitions ? context.replica : context.partition;
  }
  auto device = [&](int64_t id) {
    return across_partitions ? other * count + id : id * count + other;
  };
  int64_t source = -1;
  for (const Dims& pair : attrs.source_target_pairs) {
    if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0) return Unsupported(instr, "a bad pair");
    if (context.devices == nullptr) {
      // A single device receives only what it sends to itself.
      if (pair[0] == mine && pair[1] == mine) return Values(operands.begin(), operands.end());
      continue;
    }
    if (pair[0] >= limit || pair[1] >= limit) {
      return MakeError(ErrorCode::kBadGroups,
                       "collective-permute: device " + std::to_string(std::max(pair[0], pair[1])) +
                           " of its pairs, the run has " + std::to_string(limit));
    }
    if (pair[0] == mine) {
      context.devices->Post(
          {Op::kCollectivePermute, attrs.channel_id, {device(pair[0]), device(pair[1])}},
          Values(operands.begin(), operands.end()));
    }
    if (pair[1] == mine) source = pair[0];
  }
  if (source < 0) return zeros;
  return context.devices->Take(
      {Op::kCollectivePermute, attrs.channel_id, {device(source), device(mine)}});
}

// Arrays in the order of the leaves of a shape. Tokens are created; values private to the runtime
// (a u32 in the tuple of HLO's recv) are 0.
Value Arrange(const Shape& shape, const Values& arrays, size_t& next) {
  if (shape.IsTuple()) {
    Values elements;
    for (const Shape& element : shape.elements())
      elements.push_back(Arrange(element, arrays, next));
    return Value::Tuple(std::move(elements));
  }
  if (shape.IsArray() && next < arrays.size()) return arrays[next++];
  return Zeros(shape);
}

void Leaves(const Value& value, Values& into) {
  if (value.shape().IsTuple()) {
    for (const Value& element : value.elements()) Leaves(element, into);
  } else if (value.shape().IsArray()) {
    into.push_back(value);
  }
}

// Checks the first element of recv's tuple and the token, the result of HLO's recv-done.
Status CheckArrived(const Instr& instr, const Shape& shape, const Values& arrays) {
  std::vector<const Shape*> leaves, open{&shape};
  while (!open.empty()) {
    const Shape* at = open.back();
    open.pop_back();
    if (at->IsArray()) leaves.push_back(at);
    for (size_t i = at->elements().size(); i-- > 0;) open.push_back(&at->elements()[i]);
  }
  for (size_t i = 0; i < leaves.size() && i < arrays.size(); ++i) {
    if (leaves[i]->type() == arrays[i].type() &&
        (leaves[i]->HasDynamicDims() || leaves[i]->dims() == arrays[i].dims()))
      continue;
    return MakeError(ErrorCode::kBadRunTimeShape, std::string(instr.info().name) + ": expects " +
                                                      ToString(*leaves[i]) + ", received " +
                                                      ToString(arrays[i].shape()));
  }
  if (arrays.size() > leaves.size() || (arrays.empty() && !leaves.empty())) {
    return MakeError(ErrorCode::kBadRunTimeShape,
                     std::string(instr.info().name) + ": " + std::to_string(arrays.size()) +
                         " arrays arrive for " + std::to_string(leaves.size()));
  }
  return Ok();
}

}  // namespace

Result<Value> EvalCollectivePermute(const Instr& instr, std::span<const Value> operands,
                                    Context& context) {
  TOK_TRY(Values values, Permute(instr, operands, context));
  return AsPermuteResult(instr.shape(), std::move(values));
}

// Returns (operand, result, contexts ...).
Result<Value> EvalCollectivePermuteStart(const Instr& instr, std::span<const Value> operands,
                                         Context& context) {
  const std::vector<Shape>& shapes = instr.shape().elements();
  if (shapes.size() < 2)
    return Unsupported(instr, "the result is not a tuple of operands and results");
  TOK_TRY(Values values, Permute(instr, operands, context));
  Values elements{AsPermuteResult(shapes[0], Values(operands.begin(), operands.end())),
                  AsPermuteResult(shapes[1], std::move(values))};
  for (size_t i = 2; i < shapes.size(); ++i) elements.push_back(Zeros(shapes[i]));
  return Value::Tuple(std::move(elements));
}

Result<Value> EvalCollectivePermuteDone(const Instr& instr, std::span<const Value> operands,
                                        Context&) {
  if (operands[0].elements().size() < 2)
    return Unsupported(instr, "the operand is not a tuple of operands and results");
  return operands[0].elements()[1];
}

Result<Value> EvalSend(const Instr& instr, std::span<const Value> operands, Context& context) {
  const PermuteAttrs& attrs = instr.attrs<PermuteAttrs>();
  Values arrays;
  for (const Value& operand : operands) Leaves(operand, arrays);
  if (context.devices != nullptr) {
    context.devices->Post({Op::kRecv, attrs.channel_id, {}}, arrays);
  } else if (context.host != nullptr) {
    context.host->Post(attrs.channel_id, arrays);
  }
  size_t next = 0;
  return Arrange(instr.shape(), arrays, next);
}

Result<Value> EvalSendDone(const Instr&, std::span<const Value>, Context&) {
  return Value::Token();
}

Result<Value> EvalRecv(const Instr& instr, std::span<const Value>, Context& context) {
  const PermuteAttrs& attrs = instr.attrs<PermuteAttrs>();
  if (context.host == nullptr) return Unsupported(instr, "needs a host");
  Values arrays;
  if (context.devices != nullptr) {
    TOK_TRY(arrays, context.devices->Take({Op::kRecv, attrs.channel_id, {}}));
  } else {
    TOK_TRY(arrays, context.host->Take(attrs.channel_id));
  }
  TOK_RETURN_IF_ERROR(CheckArrived(instr, instr.shape(), arrays));
  size_t next = 0;
  return Arrange(instr.shape(), arrays, next);
}

Result<Value> EvalRecvDone(const Instr& instr, std::span<const Value> operands, Context&) {
  if (operands[0].elements().empty())
    return Unsupported(instr, "the operand is not the result of a recv");
  return Value::Tuple({operands[0].elements()[0], Value::Token()});
}

Result<Value> EvalInfeed(const Instr& instr, std::span<const Value>, Context& context) {
  if (context.host == nullptr) return Unsupported(instr, "needs a host");
  TOK_TRY(Value fed, context.host->TakeFeed());
  Values arrays;
  Leaves(fed, arrays);
  TOK_RETURN_IF_ERROR(CheckArrived(instr, instr.shape(), arrays));
  size_t next = 0;
  return Arrange(instr.shape(), arrays, next);
}

// Outfeed data is dropped.
Result<Value> EvalOutfeed(const Instr&, std::span<const Value>, Context&) {
  return Value::Token();
}

}  // namespace tokamak
