#include <unordered_map>

#include "gen/region.h"
#include "gen/select_scatter.h"
#include "passes/target/expand_ops.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Copies the instructions of a computation into another one; returns the root.
Instr* Copied(const Computation& from, Computation& to, std::vector<Instr*> arguments) {
  std::unordered_map<const Instr*, Instr*> made;
  for (const Instr* instr : from.PostOrder()) {
    if (instr->op() == Op::kParameter) {
      made[instr] = arguments[static_cast<size_t>(instr->attrs<ParameterAttrs>().number)];
      continue;
    }
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(made[operand]);
    Instr* copy = to.Append(instr->op(), instr->shape(), std::move(operands), instr->attrs());
    copy->set_called({instr->called().begin(), instr->called().end()});
    made[instr] = copy;
  }
  return made[from.root()];
}

// Reduces two (value, index) pairs to the one that the window selects; an index below 0 means none.
Computation* PickBody(const Instr& instr) {
  Computation* body = instr.parent()->module()->AddComputation(instr.name() + "_pick");
  body->is_public = false;
  Shape value = Shape::Scalar(instr.operand(0)->shape().type()),
        index = Shape::Scalar(ElementType::kS32), pred = Shape::Scalar(ElementType::kPred);
  int64_t parameters = 0;
  auto parameter = [&](const Shape& shape) { return body->AppendParameter(parameters++, shape); };
  Instr *x = parameter(value), *i = parameter(index);
  Instr *y = parameter(value), *k = parameter(index);
  Instr* zero = body->Append(Op::kConstant, index, {},
                             ConstantAttrs{Literal::ScalarInt(ElementType::kS32, 0)});
  Instr* any = body->Append(Op::kCompare, pred, {i, zero},
                            CompareAttrs{CompareDirection::kGe, CompareType::kNone});
  Instr* better = Copied(*instr.called(0), *body, {x, y});
  Instr* keeps = body->Append(Op::kAnd, pred, {any, better});
  Instr* best = body->Append(Op::kSelect, value, {keeps, x, y});
  Instr* position = body->Append(Op::kSelect, index, {keeps, i, k});
  body->set_root(body->Append(Op::kTuple, Shape::Tuple({value, index}), {best, position}));
  return body;
}

}  // namespace

bool ExpandSelectAndScatter(Instr& instr) {
  if (instr.op() != Op::kSelectAndScatter || !WhyNoSelectAndScatterCode(instr)) return false;
  Instr *x = instr.operand(0), *source = instr.operand(1), *init = instr.operand(2);
  for (const Instr* operand : instr.operands())
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0) return false;
  int64_t count = x->shape().ElementCount(), windows = source->shape().ElementCount();
  if (instr.captures() > 0 || count > INT32_MAX) return false;
  WindowAttrs attrs = instr.attrs<WindowAttrs>();
  for (const WindowDim& dim : attrs.window)
    if (dim.base_dilation != 1 || dim.reversed) return false;
  // The window may have more positions than there are source elements.
  Editor make(instr);
  const Dims &dims = x->shape().dims(), &positions = source->shape().dims();
  for (size_t d = 0; d < dims.size(); ++d)
    if (WindowResults(attrs.window[d], dims[d]) != positions[d]) return false;
  ElementType type = x->shape().type(), index = ElementType::kS32;
  Instr* flat = make.Make(Op::kIota, Shape::Array(index, {count}), {}, IotaAttrs{0});
  Instr* numbers = make.Make(Op::kReshape, Shape::Array(index, dims), {flat});
  Instr* none = make.Constant(Literal::ScalarInt(index, -1));
  Instr* any = make.Constant(Literal::Scalar(type, 0));
  Instr* both =
      make.Make(Op::kReduceWindow,
                Shape::Tuple({Shape::Array(type, positions), Shape::Array(index, positions)}),
                {x, numbers, any, none}, std::move(attrs));
  both->set_called({PickBody(instr)});
  Instr* picked =
      make.Make(Op::kGetTupleElement, Shape::Array(index, positions), {both}, TupleIndexAttrs{1});
  Instr* starts = make.Make(Op::kReshape, Shape::Array(index, {windows, 1}), {picked});
  Instr* updates = make.Make(Op::kReshape, Shape::Array(type, {windows}), {source});
  ScatterAttrs scatter;
  scatter.inserted_window_dims = {0};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  Shape line = Shape::Array(type, {count});
  Instr* sums = make.Make(Op::kScatter, line, {make.Broadcast(init, line), starts, updates},
                          std::move(scatter));
  sums->set_called({instr.called(1)});
  make.Replace(make.Make(Op::kReshape, Shape::Array(type, dims), {sums}));
  return true;
}

}  // namespace tokamak
