#include "random/program_builder.h"

#include <algorithm>

#include "random/check.h"

namespace tokamak::fuzz {

ProgramBuilder::ProgramBuilder(ProgramState& program_state, std::string_view name, Kind kind,
                               int depth)
    : program_state_(program_state),
      computation_(program_state.module.AddComputation(
          std::string(name) +
          (program_state.names == 0 ? "" : "." + std::to_string(program_state.names)))),
      kind_(kind),
      depth_(depth) {
  ++program_state.names;
  computation_->is_public = kind == Kind::kEntry;
}

Instr* ProgramBuilder::Put(Op op, std::vector<Instr*> operands, Attrs attrs, Extra extra) {
  std::vector<Shape> shapes;
  for (const Instr* operand : operands) {
    if (operand == nullptr) return nullptr;
    shapes.push_back(operand->shape());
  }
  for (const Computation* called : extra.called)
    if (called == nullptr) return nullptr;
  auto shape = InferShape(
      {op, shapes, attrs, extra.called, extra.captures, extra.shape ? &*extra.shape : nullptr});
  if (!shape.ok()) return nullptr;
  const Shape& made = shape.value();
  if (made.IsArray() && made.ElementCount() > program_state_.size.max_elements) return nullptr;
  Instr* instr =
      computation_->Append(op, std::move(shape).value(), std::move(operands), std::move(attrs));
  instr->set_called(std::move(extra.called));
  instr->set_captures(extra.captures);
  if (program_state_.size.exact && !PromisesBits(*instr)) {
    computation_->Remove(instr);
    return nullptr;
  }
  ++program_state_.instrs;
  Keep(instr);
  return instr;
}

// Tokens, tuples with tokens, and quantized values are available only to the drawer that created
// them.
void ProgramBuilder::Keep(Instr* instr) {
  const Shape& shape = instr->shape();
  if (shape.IsArray() && shape.quant() == nullptr) values_.push_back(instr);
  if (!shape.IsTuple() || shape.elements().empty()) return;
  for (const Shape& element : shape.elements())
    if (element.IsToken()) return;
  tuples_.push_back(instr);
}

Instr* ProgramBuilder::Parameter(const Shape& shape) {
  Instr* instr =
      computation_->AppendParameter(static_cast<int64_t>(computation_->parameters().size()), shape);
  ++program_state_.instrs;
  Keep(instr);
  return instr;
}

Instr* ProgramBuilder::Constant(const Value& value) {
  return Put(Op::kConstant, {}, ConstantAttrs{LiteralFromValue(value)});
}

Instr* ProgramBuilder::Constant(const Shape& shape, Mood mood) {
  return Constant(DrawElements(random(), shape, mood));
}

Instr* ProgramBuilder::Constant(const Shape& shape) {
  Mood mood = DrawMood(random());
  return Constant(shape, mood);
}

Instr* ProgramBuilder::Integer(ElementType type, int64_t value) {
  return Put(Op::kConstant, {}, ConstantAttrs{Literal::ScalarInt(type, value)});
}

Instr* ProgramBuilder::Number(const Shape& shape, double value) {
  Literal scalar = Literal::Scalar(shape.type(), value);
  return Put(Op::kConstant, {},
             ConstantAttrs{Literal::Splat(shape.WithoutLayout(), scalar.data())});
}

Instr* ProgramBuilder::Element(Instr* tuple, int64_t index) {
  return Put(Op::kGetTupleElement, {tuple}, TupleIndexAttrs{index});
}

Instr* ProgramBuilder::Reshape(Instr* x, Dims dims) {
  if (x == nullptr) return nullptr;
  return Put(Op::kReshape, {x}, {}, {.shape = x->shape().WithDims(std::move(dims))});
}

Instr* ProgramBuilder::Convert(Instr* x, ElementType type) {
  if (x == nullptr) return nullptr;
  return Put(Op::kConvert, {x}, {}, {.shape = x->shape().WithType(type)});
}

Instr* ProgramBuilder::Broadcast(Instr* x, Dims dims, Dims map) {
  if (x == nullptr) return nullptr;
  return Put(Op::kBroadcast, {x}, DimensionsAttrs{std::move(map)},
             {.shape = x->shape().WithDims(std::move(dims))});
}

// ---- choosing

Instr* ProgramBuilder::Any() {
  if (values_.empty()) return Constant(AnyShape(AnyType()));
  int64_t count = static_cast<int64_t>(values_.size());
  int64_t recent = std::min<int64_t>(count, 3);
  int64_t at = random().Percent(45) ? count - 1 - random().Below(recent) : random().Below(count);
  return values_[static_cast<size_t>(at)];
}

Instr* ProgramBuilder::AnyFor(Op op) {
  const OpInfo& info = InfoOf(op);
  Instr* x = AnyThat([&](const Shape& shape) { return info.Takes(shape.type()); });
  if (x != nullptr) return x;
  x = Any();
  return Convert(x, AnyType(info.types));
}

Instr* ProgramBuilder::AnyOfRank(int64_t least) {
  Instr* x = AnyThat([&](const Shape& s) { return s.rank() >= least && s.ElementCount() > 0; });
  if (x != nullptr && random().Percent(95)) return x;
  Dims dims = AnyDims();
  while (static_cast<int64_t>(dims.size()) < least) dims.push_back(random().Between(1, 4));
  Instr* made = Like(Shape::Array(AnyType(), dims));
  if (made != nullptr) return made;  // otherwise it would be too large
  return Constant(Shape::Array(AnyType(), Dims(static_cast<size_t>(least), 2)));
}

Instr* ProgramBuilder::LikeButDrawn(const Shape& shape) {
  Instr* same = AnyThat([&](const Shape& other) { return Compatible(shape, other); });
  if (same != nullptr && random().Percent(80)) return same;
  bool may_ask = kind_ == Kind::kEntry && computation_->parameters().size() < 5;
  if (may_ask && random().Percent(50)) return Parameter(shape);
  return Adapt(Any(), shape);
}

Instr* ProgramBuilder::Like(const Shape& shape) {
  int64_t dice = random().Below(100);
  if (dice < 55) return LikeButDrawn(shape);
  if (dice < 75) return Constant(shape);
  if (dice < 90)  // as JAX writes a constant
    return BroadcastTo(Constant(Shape::Scalar(shape.type())), shape.dims());
  if (dice < 95 && shape.rank() > 0 && InfoOf(Op::kIota).Takes(shape.type()))
    return Put(Op::kIota, {}, IotaAttrs{random().Below(shape.rank())}, {.shape = shape});
  return LikeButDrawn(shape);
}

Instr* ProgramBuilder::Index(ElementType type, int64_t size) {
  if (random().Percent(55)) {
    if (random().Percent(20)) return Constant(Shape::Scalar(type), Mood::kSpecial);
    return Integer(type, random().Between(0, std::max<int64_t>(size - 1, 0)));
  }
  return LikeButDrawn(Shape::Scalar(type));
}

// x sliced, padded or repeated to these dimensions.
Instr* ProgramBuilder::Resize(Instr* x, const Dims& dims) {
  if (x->shape().dims() == dims) return x;
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  if (x->shape().ElementCount() == count) return Reshape(x, dims);
  if (x->shape().rank() == 0) return BroadcastTo(x, dims);
  if (x->shape().rank() == static_cast<int64_t>(dims.size())) {
    PadAttrs pad;
    bool only_cuts = true;
    for (size_t d = 0; d < dims.size(); ++d) {
      pad.low.push_back(0);
      pad.high.push_back(dims[d] - x->shape().dim(d));
      pad.interior.push_back(0);
      only_cuts = only_cuts && pad.high.back() <= 0;
    }
    if (!only_cuts)
      return Put(Op::kPad, {x, Constant(Shape::Scalar(x->shape().type()))}, std::move(pad));
    return Put(Op::kSlice, {x}, SliceAttrs{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)});
  }
  // Its first element everywhere.
  if (x->shape().ElementCount() == 0) return nullptr;
  size_t rank = x->shape().dims().size();
  Instr* one = Put(Op::kSlice, {x}, SliceAttrs{Dims(rank, 0), Dims(rank, 1), Dims(rank, 1)});
  return BroadcastTo(Reshape(one, {}), dims);
}

Instr* ProgramBuilder::Adapt(Instr* x, const Shape& shape) {
  if (x->shape().type() != shape.type()) {
    Instr* typed = AnyThat([&](const Shape& other) { return other.type() == shape.type(); });
    x = typed != nullptr ? typed : Convert(x, shape.type());
  }
  Instr* resized = x == nullptr ? nullptr : Resize(x, shape.dims());
  return resized != nullptr ? resized : Constant(shape);
}

ElementType ProgramBuilder::AnyType() {
  return random().Pick(program_state_.types);
}

ElementType ProgramBuilder::AnyType(TypeClass types) {
  std::vector<ElementType> good;
  for (ElementType type : program_state_.types)
    if ((types >> static_cast<int>(KindOf(type)) & 1) != 0) good.push_back(type);
  if (!good.empty()) return random().Pick(good);
  if ((types & kReal) != 0) return ElementType::kF32;
  if ((types & kSignedClass) != 0) return ElementType::kS32;
  if ((types & kUnsignedClass) != 0) return ElementType::kU32;
  return (types & kComplexClass) != 0 ? ElementType::kC64 : ElementType::kPred;
}

ElementType ProgramBuilder::IndexType() {
  if (random().Percent(75)) return ElementType::kS32;
  return random().Pick({ElementType::kS64, ElementType::kU32, ElementType::kS8, ElementType::kU8});
}

Dims ProgramBuilder::AnyDims() {
  if (!values_.empty() && random().Percent(50)) return Any()->shape().dims();
  if (program_state_.size.wide) return WideDims();
  int64_t rank = random().Pick({0, 1, 1, 1, 2, 2, 2, 3, 3, 4});
  Dims dims;
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(random().Percent(2) ? 0 : random().Pick({1, 1, 2, 2, 3, 3, 4, 4, 5, 8}));
  return dims;
}

Dims ProgramBuilder::WideDims() {
  int64_t rank = random().Pick({0, 1, 1, 2, 2, 2, 2, 3, 3, 4}), elements = 1;
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t most = program_state_.size.max_elements / std::max<int64_t>(elements, 1);
    int64_t size = random().Pick({0, 1, 2, 3, 4, 5, 8, 16, 17, 31, 33, 64, 100, 127, 300});
    if (size == 0 && !random().Percent(20)) size = 7;
    dims.push_back(std::min(size, most));
    elements *= dims.back();
  }
  random().Shuffle(dims);
  return dims;
}

Shape ProgramBuilder::AnyShape(ElementType type) {
  Shape shape = Shape::Array(type, AnyDims());
  return shape.ElementCount() > program_state_.size.max_elements ? Shape::Scalar(type) : shape;
}

Dims ProgramBuilder::Permutation(int64_t rank) {
  Dims permutation;
  for (int64_t d = 0; d < rank; ++d) permutation.push_back(d);
  random().Shuffle(permutation);
  return permutation;
}

}  // namespace tokamak::fuzz
