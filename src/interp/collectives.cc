// Collectives: the devices of a group exchange their values in a rendezvous, and each computes its
// own result. In a single-device run the group is that device.

#include <algorithm>
#include <utility>

#include "interp/devices.h"
#include "interp/evaluators.h"
#include "interp/groups.h"
#include "interp/rounding.h"
#include "interp/scalar_body.h"
#include "interp/slice_values.h"

namespace tokamak {
namespace {

using Values = std::vector<Value>;

Values BroughtValues(std::span<const Value> operands) {
  Values taken;
  for (size_t i = 0; i < operands.size(); ++i) taken.push_back(TakeOperand(operands, i));
  return taken;
}

Value AsCollectiveResult(const Shape& shape, Values values) {
  if (!shape.IsTuple() && values.size() == 1) return std::move(values[0]);
  return Value::Tuple(std::move(values));
}

struct Gathered {
  std::vector<int64_t> members;
  std::vector<Values> brought;
  size_t self = 0;  // index of this device among the members
};

// Exchanges values with the group. If this device is in no group, `brought` is empty.
Result<Gathered> Gather(const Instr& instr, std::span<const Value> operands, Context& context) {
  const CollectiveAttrs& attrs = instr.attrs<CollectiveAttrs>();
  Gathered gathered;
  TOK_TRY(gathered.members, GroupOf(instr, attrs, context));
  if (gathered.members.empty()) return gathered;
  int64_t self = SelfOf(context);
  gathered.self = static_cast<size_t>(
      std::find(gathered.members.begin(), gathered.members.end(), self) - gathered.members.begin());
  if (context.devices == nullptr || gathered.members.size() == 1) {
    gathered.brought.push_back(BroughtValues(operands));
    return gathered;
  }
  TOK_TRY(gathered.brought,
          context.devices->Rendezvous({instr.op(), attrs.channel_id, gathered.members}, self,
                                      BroughtValues(operands)));
  return gathered;
}

// Rejects a result whose shape differs from the program's: the program was written for other
// devices.
Result<Value> Checked(const Instr& instr, const Shape& expected, Value value) {
  if (!expected.IsStaticArray() || value.dims() == expected.dims()) return value;
  return MakeError(ErrorCode::kBadGroups,
                   std::string(instr.info().name) + ": its devices produce " +
                       ToString(value.shape()) + ", the program says " + ToString(expected),
                   SpanOf(instr));
}

Result<Value> CheckedAll(const Instr& instr, const Shape& shape, Values values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Shape& expected = shape.IsTuple() ? shape.elements()[i] : shape;
    TOK_TRY(values[i], Checked(instr, expected, std::move(values[i])));
  }
  return AsCollectiveResult(shape, std::move(values));
}

Result<Value> GatherAlong(const Instr& instr, const Shape& shape, std::span<const Value> operands,
                          Context& context) {
  const Dims& dimensions = instr.attrs<CollectiveAttrs>().dimensions;
  if (dimensions.size() != 1) return Unsupported(instr, "takes one dimension");
  size_t dimension = static_cast<size_t>(dimensions[0]);
  TOK_TRY(Gathered gathered, Gather(instr, operands, context));
  Values results;
  for (size_t i = 0; i < operands.size() && !gathered.brought.empty(); ++i) {
    Values parts;
    for (const Values& values : gathered.brought) parts.push_back(values[i]);
    results.push_back(Concat(parts, dimension));
  }
  if (gathered.brought.empty()) return Zeros(shape);
  return CheckedAll(instr, shape, std::move(results));
}

// Reduces operand i of all members, in their order.
Result<Value> Accumulate(const Instr& instr, const Gathered& gathered, size_t i, Context& context) {
  Value first = gathered.brought[0][i];
  ElementType type = first.type();
  ScalarBody body(*instr.called(0), context, ScalarBody::Narrow::kAsF32);
  return DispatchStorage(type, [&]<typename T>() -> Result<Value> {
    Shape shape = first.shape();
    std::vector<T> sums = std::move(first).TakeData<T>();
    for (size_t m = 1; m < gathered.brought.size(); ++m) {
      const Value& other = gathered.brought[m][i];
      if (other.dims() != shape.dims())
        return MakeError(ErrorCode::kBadGroups, std::string(instr.info().name) +
                                                    ": its devices bring " + ToString(shape) +
                                                    " and " + ToString(other.shape()));
      TOK_RETURN_IF_ERROR(body.AccumulateEach<T>(sums, other.Data<T>().data()));
    }
    Rounder round(type, context.mode());
    for (T& sum : sums) sum = round(sum);
    return Value::Array(shape, std::move(sums));
  });
}

Result<Values> ReduceAll(const Instr& instr, const Gathered& gathered, size_t count,
                         Context& context) {
  Values results;
  for (size_t i = 0; i < count; ++i) {
    TOK_TRY(Value reduced, Accumulate(instr, gathered, i, context));
    results.push_back(std::move(reduced));
  }
  return results;
}

// For each operand, the group member that is its root: the first, unless the last operand selects
// one.
using Roots = std::vector<int64_t>;

Result<Roots> RootsOf(const Instr& instr, std::span<const Value> operands) {
  if (!instr.attrs<CollectiveAttrs>().has_dynamic_root) return Roots(operands.size(), 0);
  const Value& given = operands.back();
  int64_t count = given.ElementCount();
  Roots roots;
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    if (count == 0) return Unsupported(instr, "its operand of roots is empty");
    roots.push_back(given.IntAt(std::min(static_cast<int64_t>(i), count - 1)));
  }
  return roots;
}

Status CheckRoot(const Instr& instr, int64_t root, const Gathered& gathered) {
  if (root >= 0 && root < static_cast<int64_t>(gathered.members.size())) return Ok();
  return MakeError(ErrorCode::kBadGroups, std::string(instr.info().name) + ": root " +
                                              std::to_string(root) + " of a group of " +
                                              std::to_string(gathered.members.size()) + " devices");
}

}  // namespace

Result<Value> EvalPartitionId(const Instr& instr, std::span<const Value>, Context& context) {
  return Value::Array(instr.shape(),
                      std::vector<uint64_t>{static_cast<uint64_t>(context.partition)});
}

Result<Value> EvalReplicaId(const Instr& instr, std::span<const Value>, Context& context) {
  return Value::Array(instr.shape(), std::vector<uint64_t>{static_cast<uint64_t>(context.replica)});
}

Result<Value> EvalAllGather(const Instr& instr, std::span<const Value> operands, Context& context) {
  return GatherAlong(instr, instr.shape(), operands, context);
}

// all-gather-start returns (operands, results).
Result<Value> EvalAllGatherStart(const Instr& instr, std::span<const Value> operands,
                                 Context& context) {
  Values kept(operands.begin(), operands.end());
  if (instr.shape().elements().size() < 2)
    return Unsupported(instr, "the result is not a tuple of operands and results");
  const Shape& shape = instr.shape().elements()[1];
  TOK_TRY(Value result, GatherAlong(instr, shape, operands, context));
  return Value::Tuple(
      {AsCollectiveResult(instr.shape().elements()[0], std::move(kept)), std::move(result)});
}

Result<Value> EvalAllGatherDone(const Instr& instr, std::span<const Value> operands, Context&) {
  if (operands[0].elements().size() < 2)
    return Unsupported(instr, "the operand is not a tuple of operands and results");
  return operands[0].elements()[1];
}

Result<Value> EvalAllReduce(const Instr& instr, std::span<const Value> operands, Context& context) {
  TOK_TRY(Gathered gathered, Gather(instr, operands, context));
  if (gathered.brought.empty()) return Zeros(instr.shape());
  TOK_TRY(Values results, ReduceAll(instr, gathered, operands.size(), context));
  return AsCollectiveResult(instr.shape(), std::move(results));
}

Result<Value> EvalAllReduceStart(const Instr& instr, std::span<const Value> operands,
                                 Context& context) {
  return EvalAllReduce(instr, operands, context);
}

Result<Value> EvalAllReduceDone(const Instr&, std::span<const Value> operands, Context&) {
  return TakeOperand(operands, 0);
}

Result<Value> EvalReduceScatter(const Instr& instr, std::span<const Value> operands,
                                Context& context) {
  const Dims& dimensions = instr.attrs<CollectiveAttrs>().dimensions;
  if (dimensions.size() != 1) return Unsupported(instr, "takes one dimension");
  size_t dimension = static_cast<size_t>(dimensions[0]);
  TOK_TRY(Gathered gathered, Gather(instr, operands, context));
  if (gathered.brought.empty()) return Zeros(instr.shape());
  TOK_TRY(Values results, ReduceAll(instr, gathered, operands.size(), context));
  for (Value& result : results) {
    int64_t size = result.dims()[dimension] / static_cast<int64_t>(gathered.members.size());
    result = SliceOf(result, dimension, static_cast<int64_t>(gathered.self) * size, size);
  }
  return CheckedAll(instr, instr.shape(), std::move(results));
}

// Splits one array along a dimension into one slice per device; HLO also has a form with one whole
// operand per device.
Result<Value> EvalAllToAll(const Instr& instr, std::span<const Value> operands, Context& context) {
  const CollectiveAttrs& attrs = instr.attrs<CollectiveAttrs>();
  size_t count = operands.size();
  TOK_TRY(Gathered gathered, Gather(instr, operands, context));
  if (gathered.brought.empty()) return Zeros(instr.shape());
  Values results;
  if (attrs.dimensions.empty()) {
    for (const Values& values : gathered.brought) {
      if (gathered.self >= values.size())
        return MakeError(ErrorCode::kBadGroups, "all-to-all: " + std::to_string(values.size()) +
                                                    " operands for a group of " +
                                                    std::to_string(gathered.members.size()) +
                                                    " devices");
      results.push_back(values[gathered.self]);
    }
    if (results.size() != count)
      return MakeError(ErrorCode::kBadGroups, "all-to-all: " + std::to_string(count) +
                                                  " operands for a group of " +
                                                  std::to_string(results.size()) + " devices");
    return CheckedAll(instr, instr.shape(), std::move(results));
  }
  size_t split = static_cast<size_t>(attrs.dimensions[0]);
  size_t concat = attrs.split_count == 0 ? split : static_cast<size_t>(attrs.concat_dimension);
  for (size_t i = 0; i < count; ++i) {
    Values parts;
    for (const Values& values : gathered.brought) {
      int64_t size = values[i].dims()[split] / static_cast<int64_t>(gathered.members.size());
      parts.push_back(SliceOf(values[i], split, static_cast<int64_t>(gathered.self) * size, size));
    }
    results.push_back(Concat(parts, concat));
  }
  return CheckedAll(instr, instr.shape(), std::move(results));
}

// With a dynamic root, the last operand selects the root member of each other operand.
Result<Value> EvalCollectiveBroadcast(const Instr& instr, std::span<const Value> operands,
                                      Context& context) {
  TOK_TRY(Roots roots, RootsOf(instr, operands));
  TOK_TRY(Gathered gathered, Gather(instr, operands, context));
  if (gathered.brought.empty()) return Zeros(instr.shape());
  Values results;
  for (size_t i = 0; i < roots.size(); ++i) {
    TOK_RETURN_IF_ERROR(CheckRoot(instr, roots[i], gathered));
    results.push_back(gathered.brought[static_cast<size_t>(roots[i])][i]);
  }
  return AsCollectiveResult(instr.shape(), std::move(results));
}

// The root of each operand gets the result; the other devices get zeros.
Result<Value> EvalCollectiveReduce(const Instr& instr, std::span<const Value> operands,
                                   Context& context) {
  TOK_TRY(Roots roots, RootsOf(instr, operands));
  TOK_TRY(Gathered gathered, Gather(instr, operands, context));
  if (gathered.brought.empty()) return Zeros(instr.shape());
  Values results;
  for (size_t i = 0; i < roots.size(); ++i) {
    TOK_RETURN_IF_ERROR(CheckRoot(instr, roots[i], gathered));
    if (static_cast<size_t>(roots[i]) != gathered.self) {
      results.push_back(Zeros(gathered.brought[gathered.self][i].shape()));
      continue;
    }
    TOK_TRY(Value reduced, Accumulate(instr, gathered, i, context));
    results.push_back(std::move(reduced));
  }
  return AsCollectiveResult(instr.shape(), std::move(results));
}

// Sends rows of the input to offsets in the outputs of other devices. Operands: input, output,
// input offsets, send sizes, output offsets, receive sizes, with one or more entries per device.
Result<Value> EvalRaggedAllToAll(const Instr& instr, std::span<const Value> operands,
                                 Context& context) {
  if (operands.size() != 6) return Unsupported(instr, "takes six operands");
  TOK_TRY(Gathered gathered, Gather(instr, operands, context));
  if (gathered.brought.empty()) return Zeros(instr.shape());
  const Values& mine = gathered.brought[gathered.self];
  Value output = mine[1];
  int64_t entries = output.dims().empty() ? 0 : mine[2].ElementCount();
  int64_t each = entries / static_cast<int64_t>(gathered.members.size());
  size_t inner = 1;
  for (size_t i = 1; i < output.dims().size(); ++i) inner *= static_cast<size_t>(output.dims()[i]);
  return DispatchStorage(output.type(), [&]<typename T>() -> Result<Value> {
    Shape shape = output.shape();
    std::vector<T> rows = std::move(output).TakeData<T>();
    for (const Values& from : gathered.brought) {
      std::span<const T> source = from[0].Data<T>();
      for (int64_t k = 0; k < each; ++k) {
        int64_t entry = static_cast<int64_t>(gathered.self) * each + k;
        int64_t start = from[2].IntAt(entry), size = from[3].IntAt(entry);
        int64_t to = from[4].IntAt(entry);
        if (start < 0 || size < 0 || to < 0 || start > from[0].dims()[0] - size ||
            to > shape.dim(0) - size)
          return MakeError(ErrorCode::kBadRunTimeShape,
                           "ragged-all-to-all: rows " + std::to_string(start) + " to " +
                               std::to_string(start + size) + " do not fit at " +
                               std::to_string(to) + " of " + ToString(shape));
        std::copy_n(source.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(start) * inner),
                    static_cast<size_t>(size) * inner,
                    rows.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(to) * inner));
      }
    }
    return Value::Array(shape, std::move(rows));
  });
}

}  // namespace tokamak
