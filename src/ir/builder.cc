// Builder: appends instructions to one computation, with shapes inferred from operands and
// attributes. All methods go through Append, which checks operands, infers the shape and records
// the first error. After an error every method returns null and accepts null operands, so a chain
// of calls needs a single check, in Finish:
//
//   b.Finish(b.Add(b.Dot(x, w, attrs), bias))      any failure inside becomes the error of Finish
//
// Ops whose shape is not determined by their operands (broadcast, reshape, iota, convert) pass it
// in Extra::shape, and inference checks it. Instructions inherit origins and text position from the
// builder.

#include "ir/builder.h"

#include "ir/verify_shape.h"

namespace tokamak {
namespace {

std::vector<Instr*> Joined(std::vector<Instr*> a, const std::vector<Instr*>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Builder::Builder(const Instr& of, std::string name)
    : computation_(of.parent()->module()->AddComputation(std::move(name))),
      origins_(of.origins()),
      pos_(of.pos()) {
  computation_->is_public = false;
  computation_->origins = of.origins();
}

// Null operands are an error here only if no earlier call failed: they usually result from that
// failure.
Instr* Builder::Append(Op op, std::vector<Instr*> operands, Attrs attrs, Extra extra) {
  if (error_) return nullptr;
  std::vector<Shape> shapes;
  for (const Instr* operand : operands) {
    if (operand == nullptr) {
      error_ = MakeError(ErrorCode::kOperandElsewhere,
                         std::string(InfoOf(op).name) + ": an operand is a null pointer");
      return nullptr;
    }
    shapes.push_back(operand->shape());
  }
  for (const Computation* called : extra.called) {
    if (called != nullptr) continue;
    error_ = MakeError(ErrorCode::kCalledElsewhere,
                       std::string(InfoOf(op).name) + ": a called computation is a null pointer");
    return nullptr;
  }
  Status sound = extra.shape ? VerifyShape(*extra.shape, InfoOf(op).name) : Ok();
  if (!sound.ok()) {
    error_ = std::move(sound.error());
    return nullptr;
  }
  auto shape = InferShape(
      {op, shapes, attrs, extra.called, extra.captures, extra.shape ? &*extra.shape : nullptr});
  if (!shape.ok()) {
    error_ = std::move(shape.error());
    return nullptr;
  }
  Instr* instr = computation_->Append(op, std::move(shape).value(), std::move(operands),
                                      std::move(attrs), std::move(extra.name));
  instr->set_called(std::move(extra.called));
  instr->set_captures(extra.captures);
  instr->set_origins(origins_);
  instr->set_pos(pos_);
  return instr;
}

std::optional<Shape> Builder::Like(const Instr* x, Dims dims) const {
  return x == nullptr ? std::nullopt : std::optional(x->shape().WithDims(std::move(dims)));
}

Instr* Builder::Parameter(Shape shape, std::string name) {
  Status sound = VerifyShape(shape, "parameter");
  if (!sound.ok() && !error_) error_ = std::move(sound.error());
  if (error_) return nullptr;
  auto number = static_cast<int64_t>(computation_->parameters().size());
  Instr* instr = computation_->AppendParameter(number, std::move(shape), std::move(name));
  instr->set_origins(origins_);
  instr->set_pos(pos_);
  return instr;
}

Instr* Builder::Constant(Literal literal) {
  return Append(Op::kConstant, {}, ConstantAttrs{std::move(literal)});
}

Instr* Builder::Scalar(ElementType type, double value) {
  return Constant(Literal::Scalar(type, value));
}

Instr* Builder::Iota(Shape shape, int64_t dimension) {
  return Append(Op::kIota, {}, IotaAttrs{dimension}, {.shape = std::move(shape)});
}

Instr* Builder::Convert(Instr* x, ElementType type) {
  if (x == nullptr) return Append(Op::kConvert, {x});
  return Append(Op::kConvert, {x}, {}, {.shape = x->shape().WithType(type)});
}

Instr* Builder::BitcastConvert(Instr* x, Shape shape) {
  return Append(Op::kBitcastConvert, {x}, {}, {.shape = std::move(shape)});
}

Instr* Builder::Compare(Instr* x, Instr* y, CompareDirection direction) {
  return Append(Op::kCompare, {x, y}, CompareAttrs{direction, CompareType::kNone});
}

Instr* Builder::Broadcast(Instr* x, Dims result, Dims dimensions) {
  return Append(Op::kBroadcast, {x}, DimensionsAttrs{std::move(dimensions)},
                {.shape = Like(x, std::move(result))});
}

Instr* Builder::Reshape(Instr* x, Dims result) {
  return Append(Op::kReshape, {x}, {}, {.shape = Like(x, std::move(result))});
}

Instr* Builder::Transpose(Instr* x, Dims permutation) {
  return Append(Op::kTranspose, {x}, DimensionsAttrs{std::move(permutation)});
}

Instr* Builder::Reverse(Instr* x, Dims dimensions) {
  return Append(Op::kReverse, {x}, DimensionsAttrs{std::move(dimensions)});
}

Instr* Builder::Slice(Instr* x, Dims starts, Dims limits, Dims strides) {
  if (strides.empty()) strides.assign(starts.size(), 1);
  return Append(Op::kSlice, {x},
                SliceAttrs{std::move(starts), std::move(limits), std::move(strides)});
}

Instr* Builder::DynamicSlice(Instr* x, std::vector<Instr*> starts, Dims sizes) {
  return Append(Op::kDynamicSlice, Joined({x}, starts), DynamicSliceAttrs{std::move(sizes)});
}

Instr* Builder::DynamicUpdateSlice(Instr* x, Instr* update, std::vector<Instr*> starts) {
  return Append(Op::kDynamicUpdateSlice, Joined({x, update}, starts));
}

Instr* Builder::Concatenate(std::vector<Instr*> parts, int64_t dimension) {
  return Append(Op::kConcatenate, std::move(parts), DimensionAttrs{dimension});
}

Instr* Builder::Pad(Instr* x, Instr* value, PadAttrs padding) {
  return Append(Op::kPad, {x, value}, std::move(padding));
}

Instr* Builder::Gather(Instr* x, Instr* indices, GatherAttrs attrs) {
  return Append(Op::kGather, {x, indices}, std::move(attrs));
}

Instr* Builder::Reduce(std::vector<Instr*> inputs, std::vector<Instr*> inits, Dims dimensions,
                       Computation* body) {
  return Append(Op::kReduce, Joined(std::move(inputs), inits),
                DimensionsAttrs{std::move(dimensions)}, {.called = {body}});
}

Instr* Builder::ReduceWindow(std::vector<Instr*> inputs, std::vector<Instr*> inits, Window window,
                             Computation* body) {
  return Append(Op::kReduceWindow, Joined(std::move(inputs), inits), WindowAttrs{std::move(window)},
                {.called = {body}});
}

Instr* Builder::Scatter(std::vector<Instr*> inputs, Instr* indices, std::vector<Instr*> updates,
                        ScatterAttrs attrs, Computation* body) {
  inputs.push_back(indices);
  return Append(Op::kScatter, Joined(std::move(inputs), updates), std::move(attrs),
                {.called = {body}});
}

Instr* Builder::Sort(std::vector<Instr*> operands, int64_t dimension, bool is_stable,
                     Computation* comparator) {
  return Append(Op::kSort, std::move(operands), SortAttrs{dimension, is_stable},
                {.called = {comparator}});
}

Instr* Builder::Map(std::vector<Instr*> operands, Computation* body) {
  Dims dimensions;
  if (!operands.empty() && operands[0] != nullptr)
    for (int64_t i = 0; i < operands[0]->shape().rank(); ++i) dimensions.push_back(i);
  return Append(Op::kMap, std::move(operands), DimensionsAttrs{std::move(dimensions)},
                {.called = {body}});
}

// `type` is the accumulation type that the program requests; it is set after inference and verified
// again.
Instr* Builder::Dot(Instr* lhs, Instr* rhs, DotAttrs attrs, std::optional<ElementType> type) {
  Instr* dot = Append(Op::kDot, {lhs, rhs}, std::move(attrs));
  if (dot == nullptr || !type || dot->shape().type() == *type) return dot;
  dot->set_shape(dot->shape().WithType(*type));
  Status sound = VerifyInstr(*dot);
  if (sound.ok()) return dot;
  error_ = std::move(sound.error());
  return nullptr;
}

Instr* Builder::Convolution(Instr* lhs, Instr* rhs, ConvolutionAttrs attrs) {
  return Append(Op::kConvolution, {lhs, rhs}, std::move(attrs));
}

Instr* Builder::Tuple(std::vector<Instr*> elements) {
  return Append(Op::kTuple, std::move(elements));
}

Instr* Builder::GetTupleElement(Instr* tuple, int64_t index) {
  return Append(Op::kGetTupleElement, {tuple}, TupleIndexAttrs{index});
}

Instr* Builder::Call(Computation* callee, std::vector<Instr*> arguments) {
  return Append(Op::kCall, std::move(arguments), {}, {.called = {callee}});
}

Instr* Builder::While(Computation* condition, Computation* body, std::vector<Instr*> state) {
  return Append(Op::kWhile, std::move(state), {}, {.called = {condition, body}});
}

Instr* Builder::Conditional(Instr* index, std::vector<Computation*> branches,
                            std::vector<Instr*> arguments) {
  return Append(Op::kConditional, Joined({index}, arguments), {}, {.called = std::move(branches)});
}

Result<Computation*> Builder::Finish(Instr* root) {
  if (!error_ && (root == nullptr || root->parent() != computation_))
    error_ = MakeError(ErrorCode::kNoRoot, "computation " + computation_->name() + " has no root");
  if (error_) return *error_;
  computation_->set_root(root);
  return computation_;
}

Computation* Builder::FinishValid(Instr* root) {
  Result<Computation*> finished = Finish(root);
  TOK_CHECK(finished.ok(), "a computation that a pass builds is valid");
  return finished.value();
}

}  // namespace tokamak
