// Finds, for values v[0], v[1] ... v[n-1] of n unrolled steps, one expression of the loop counter i
// that equals v[i]:
//
//   the same value in all steps      a loop-invariant carried value, or a copy inside the body
//   integers a, a + s, a + 2s ...    a + s * i
//   other constants                  row i of a table
//   slices of one array              dynamic-slice whose starts are integers as above
//   equal cheap ops                  the op on expressions of its operands (recursion)
//
// Null means that no expression was found. Bounded by depth, a number of visited nodes, and the
// bytes of all tables. Integer arithmetic wraps, so differences are compared as unsigned numbers.

#include "rewrite/step_values.h"

#include <algorithm>

#include "analysis/effects.h"
#include "analysis/repeats.h"
#include "ir/compare.h"
#include "rewrite/bodies.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Maximum depth of operand chains that Express follows. Chosen: bounds the recursion.
constexpr int kStepDepth = 24;
constexpr ElementType kIndex = ElementType::kS32;

bool AllSame(const std::vector<Instr*>& values) {
  return std::ranges::all_of(values, [&](const Instr* v) { return v == values[0]; });
}

// Cheap, and no costlier inside the loop than before it.
bool IsCheap(const Instr& instr) {
  return IsPlain(instr) && instr.called().empty() && instr.shape().IsArray() &&
         (instr.info().traits & (kElementwise | kDataMovement)) != 0;
}

bool AreSameValue(const Instr& a, const Instr& b) {
  if (a.op() != b.op() || !(a.shape() == b.shape()) || a.operand_count() != b.operand_count())
    return false;
  if (a.captures() != b.captures() || !SameExtras(a, b)) return false;
  return a.op() == Op::kSlice || EqualAttrs(a.op(), a.attrs(), b.attrs());
}

std::vector<Instr*> Operands(const std::vector<Instr*>& values, size_t slot) {
  std::vector<Instr*> operands;
  operands.reserve(values.size());
  for (const Instr* value : values) operands.push_back(value->operand(slot));
  return operands;
}

int64_t StrideOf(const SliceAttrs& slice, size_t d) {
  return d < slice.strides.size() ? slice.strides[d] : 1;
}

Instr* Append(Computation& body, Op op, Shape shape, std::vector<Instr*> operands,
              Attrs attrs = {}) {
  return body.Append(op, std::move(shape), std::move(operands), std::move(attrs));
}

}  // namespace

StepWriter::StepWriter(Computation& body, int64_t count, int64_t table_bytes)
    : body_(body),
      count_(count),
      bytes_left_(table_bytes),
      nodes_left_(1 << 14),
      counter_(body.AppendParameter(0, Shape::Scalar(kIndex), "step")) {}

Instr* StepWriter::Carry(Instr* init) {
  inits_.push_back(init);
  Instr* parameter = body_.AppendParameter(static_cast<int64_t>(inits_.size()), init->shape());
  parameter->set_origins(init->origins());
  return parameter;
}

Instr* StepWriter::Scalar(ElementType type, int64_t value) {
  return Append(body_, Op::kConstant, Shape::Scalar(type), {},
                ConstantAttrs{Literal::ScalarInt(type, value)});
}

Instr* StepWriter::Zero() {
  return Scalar(kIndex, 0);
}

bool StepWriter::Spend(int64_t bytes) {
  bytes_left_ -= bytes;
  return bytes_left_ >= 0;
}

Instr* StepWriter::Copy(const Instr& like, std::vector<Instr*> operands,
                        const std::vector<Instr*>& all) {
  Instr* copy = CopyTo(body_, like, std::move(operands));
  for (const Instr* instr : all) MergeOrigins(copy, *instr);
  return copy;
}

// Constants and broadcasts are recreated inside, everything else is carried; each once.
Instr* StepWriter::Outside(Instr* value) {
  auto [it, is_new] = outside_.emplace(value, nullptr);
  if (!is_new) return it->second;
  bool is_pinned = IsPinned(*value);
  for (const Instr* operand : value->operands()) is_pinned = is_pinned || IsPinned(*operand);
  if (IsLeafValue(*value) && !is_pinned) {
    std::vector<Instr*> operands;
    for (Instr* operand : value->operands()) operands.push_back(Copy(*operand, {}, {operand}));
    return outside_[value] = Copy(*value, std::move(operands), {value});
  }
  if (!value->shape().IsArray()) return nullptr;
  if (value->op() == Op::kBroadcast && !IsPinned(*value)) {
    // A broadcast is not materialized at its full size; its user reads the operand.
    Instr* operand = Outside(value->operand(0));
    return outside_[value] = Copy(*value, {operand}, {value});
  }
  return outside_[value] = Carry(value);
}

Instr* StepWriter::Express(const std::vector<Instr*>& values) {
  return Express(values, 0);
}

Instr* StepWriter::Express(const std::vector<Instr*>& values, int depth) {
  const Instr& first = *values[0];
  if (AllSame(values)) return Outside(values[0]);
  if (depth > kStepDepth || --nodes_left_ < 0) return nullptr;
  for (const Instr* value : values)
    if (value->op() != first.op() || !(value->shape() == first.shape())) return nullptr;
  if (first.op() == Op::kConstant) return Constants(values);
  if (!IsCheap(first) || first.op() == Op::kIota || first.operand_count() == 0) return nullptr;
  for (const Instr* value : values)
    if (!AreSameValue(first, *value) || IsPinned(*value)) return nullptr;
  std::vector<Instr*> operands;
  for (size_t slot = 0; slot < first.operand_count(); ++slot) {
    Instr* operand = Express(Operands(values, slot), depth + 1);
    if (operand == nullptr) return nullptr;
    operands.push_back(operand);
  }
  if (first.op() == Op::kSlice) return Slice(operands[0], values);
  return Copy(first, std::move(operands), values);
}

Instr* StepWriter::Integer(ElementType type, const std::vector<int64_t>& numbers) {
  auto at = [&](size_t i) { return static_cast<uint64_t>(numbers[i]); };
  uint64_t step = at(1) - at(0);
  bool is_even = true;
  for (size_t i = 2; i < numbers.size(); ++i) is_even = is_even && at(i) - at(i - 1) == step;
  if (is_even && step == 0) return Scalar(type, numbers[0]);
  if (is_even) {
    Shape scalar = Shape::Scalar(type);
    Instr* value = counter_;
    if (type != kIndex) value = Append(body_, Op::kConvert, scalar, {value});
    if (step != 1)
      value =
          Append(body_, Op::kMultiply, scalar, {value, Scalar(type, static_cast<int64_t>(step))});
    if (numbers[0] == 0) return value;
    return Append(body_, Op::kAdd, scalar, {value, Scalar(type, numbers[0])});
  }
  std::vector<std::byte> bytes;
  for (int64_t number : numbers) {
    Literal one = Literal::ScalarInt(type, number);
    bytes.insert(bytes.end(), one.data().data(), one.data().data() + one.data().size());
  }
  if (!Spend(static_cast<int64_t>(bytes.size()))) return nullptr;
  Shape table = Shape::Array(type, {count_});
  return Row(Literal::Array(table, Bytes::FromVector(std::move(bytes))), Shape::Scalar(type));
}

Instr* StepWriter::Row(Literal table, const Shape& row) {
  const Shape shape = table.shape();
  Instr* constant = Append(body_, Op::kConstant, shape, {}, ConstantAttrs{std::move(table)});
  std::vector<Instr*> operands = {constant, counter_};
  Dims sizes = shape.dims();
  sizes[0] = 1;
  for (size_t d = 1; d < sizes.size(); ++d) operands.push_back(Zero());
  Instr* slice = Append(body_, Op::kDynamicSlice, shape.WithDims(sizes), std::move(operands),
                        DynamicSliceAttrs{sizes});
  return Append(body_, Op::kReshape, row, {slice});
}

// Arrays that are splats in all steps need a table of scalars only, whose row is broadcast.
Instr* StepWriter::Constants(const std::vector<Instr*>& values) {
  const Shape& shape = values[0]->shape();
  if (!shape.IsArray() || shape.layout() != nullptr || shape.quant() != nullptr ||
      shape.HasDynamicDims())
    return nullptr;
  for (const Instr* value : values)
    if (value->has_extras()) return nullptr;
  auto literal = [&](size_t i) -> const Literal& {
    return values[i]->attrs<ConstantAttrs>().literal;
  };
  Instr* made = nullptr;
  bool all_splat = true;
  for (size_t i = 0; i < values.size(); ++i) all_splat = all_splat && literal(i).is_splat();
  if (shape.IsScalar() && IsInteger(shape.type())) {
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < values.size(); ++i) numbers.push_back(literal(i).IntAt(0));
    made = Integer(shape.type(), numbers);
  } else {
    auto width = static_cast<size_t>(BytesOf(shape.type()));
    int64_t elements = all_splat ? 1 : shape.ElementCount();
    if (!Spend(count_ * elements * static_cast<int64_t>(width))) return nullptr;
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < values.size(); ++i) {
      const Bytes& data = literal(i).data();
      int64_t copies = !all_splat && literal(i).is_splat() ? elements : 1;
      for (int64_t c = 0; c < copies; ++c)
        bytes.insert(bytes.end(), data.data(), data.data() + data.size());
    }
    Dims dims = all_splat ? Dims{} : shape.dims();
    Shape row = shape.WithDims(dims);
    dims.insert(dims.begin(), count_);
    made = Row(Literal::Array(shape.WithDims(dims), Bytes::FromVector(std::move(bytes))), row);
    if (all_splat && !shape.IsScalar())
      made = Append(body_, Op::kBroadcast, shape, {made}, DimensionsAttrs{});
  }
  if (made == nullptr) return nullptr;
  for (const Instr* value : values) MergeOrigins(made, *value);
  return made;
}

// A strided slice becomes a dynamic-slice of its whole extent and a strided slice of that.
Instr* StepWriter::Slice(Instr* x, const std::vector<Instr*>& slices) {
  const Instr& first = *slices[0];
  const auto& attrs = first.attrs<SliceAttrs>();
  bool is_fixed = std::ranges::all_of(
      slices, [&](const Instr* s) { return EqualAttrs(Op::kSlice, s->attrs(), first.attrs()); });
  if (is_fixed) return Copy(first, {x}, slices);
  if (x->shape().layout() != nullptr || first.shape().layout() != nullptr ||
      x->shape().HasDynamicDims())
    return nullptr;
  std::vector<Instr*> operands = {x};
  Dims sizes, ends, strides;
  bool is_strided = false;
  for (size_t d = 0; d < attrs.starts.size(); ++d) {
    std::vector<int64_t> starts;
    for (const Instr* slice : slices) {
      const auto& own = slice->attrs<SliceAttrs>();
      if (own.limits[d] - own.starts[d] != attrs.limits[d] - attrs.starts[d] ||
          StrideOf(own, d) != StrideOf(attrs, d))
        return nullptr;
      starts.push_back(own.starts[d]);
    }
    Instr* start = Integer(kIndex, starts);
    if (start == nullptr) return nullptr;
    operands.push_back(start);
    sizes.push_back(attrs.limits[d] - attrs.starts[d]);
    strides.push_back(StrideOf(attrs, d));
    is_strided = is_strided || strides.back() != 1;
  }
  Instr* made = Append(body_, Op::kDynamicSlice, x->shape().WithDims(sizes), std::move(operands),
                       DynamicSliceAttrs{sizes});
  if (is_strided)
    made = Append(body_, Op::kSlice, first.shape(), {made},
                  SliceAttrs{Dims(sizes.size(), 0), sizes, strides});
  made->set_pos(first.pos());
  if (first.has_extras()) made->mutable_extras() = first.extras();
  for (const Instr* slice : slices) MergeOrigins(made, *slice);
  return made;
}

}  // namespace tokamak
