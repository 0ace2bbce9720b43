#include "fusion/expand_ops.h"

#include <algorithm>
#include <span>

#include "gen/region.h"

namespace tokamak {
namespace {

bool IsEmpty(const Instr* instr) {
  const Shape& shape = instr->shape();
  return shape.IsArray() && !shape.HasDynamicDims() && shape.ElementCount() == 0;
}

Shape PlainShape(const Shape& shape) {
  return Shape::Array(shape.type(), shape.dims());
}

// The scalars `first`, `first` + 1 ... of its operands, as its results.
bool SpreadScalars(Instr& instr, size_t first) {
  Expansion make(instr);
  std::vector<Instr*> results;
  for (const Shape& part : PartsOf(instr.shape())) {
    Instr* scalar = instr.operand(first + results.size());
    if (!IsPlainArray(part) || scalar->shape().type() != part.type()) return false;
    results.push_back(scalar);
  }
  std::vector<Shape> parts = PartsOf(instr.shape());
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = make.Spread(results[i], PlainShape(parts[i]));
  if (instr.shape().IsTuple()) {
    make.Replace(make.Make(Op::kTuple, instr.shape(), results));
  } else {
    make.Replace(results[0]);
  }
  return true;
}

bool SpreadZero(Instr& instr) {
  if (!IsPlainArray(instr.shape())) return false;
  Expansion make(instr);
  Instr* zero = make.Constant(Literal::Scalar(instr.shape().type(), 0));
  make.Replace(make.Spread(zero, PlainShape(instr.shape())));
  return true;
}

bool LeaveOutEmpty(Instr& concatenate) {
  std::vector<Instr*> parts;
  for (Instr* operand : concatenate.operands())
    if (!IsEmpty(operand)) parts.push_back(operand);
  if (parts.empty() || parts.size() == concatenate.operand_count()) return false;
  Expansion make(concatenate);
  if (parts.size() == 1 && parts[0]->shape() == concatenate.shape()) {
    make.Replace(parts[0]);
  } else {
    make.Replace(make.Make(Op::kConcatenate, concatenate.shape(), parts, concatenate.attrs()));
  }
  return true;
}

}  // namespace

Instr* Expansion::Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs) {
  Instr* made =
      computation_.Append(op, std::move(shape), std::move(operands), std::move(attrs), of_.name());
  made->set_origins(of_.origins());
  made->set_pos(of_.pos());
  return made;
}

Instr* Expansion::Constant(Literal value) {
  Shape shape = Shape::Scalar(value.shape().type());
  return Make(Op::kConstant, shape, {}, ConstantAttrs{std::move(value)});
}

Instr* Expansion::Spread(Instr* scalar, const Shape& shape) {
  return Make(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{{}});
}

Instr* Expansion::Reshaped(Instr* x, const Dims& dims) {
  if (x->shape().dims() == dims) return x;
  return Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {x});
}

Instr* Expansion::Converted(Instr* x, ElementType type) {
  if (x->shape().type() == type) return x;
  return Make(Op::kConvert, Shape::Array(type, x->shape().dims()), {x});
}

Computation* AdditionFor(const Instr& of, ElementType type) {
  Computation* body = of.parent()->module()->AddComputation(of.name() + "_sum");
  body->is_public = false;
  Instr* x = body->AppendParameter(0, Shape::Scalar(type));
  Instr* y = body->AppendParameter(1, Shape::Scalar(type));
  body->set_root(body->Append(Op::kAdd, Shape::Scalar(type), {x, y}));
  return body;
}

void Expansion::Replace(Instr* by) {
  bool is_root = computation_.root() == &of_;
  computation_.ReplaceUses(&of_, by);
  if (is_root) computation_.set_root(by);
  computation_.Remove(&of_);
}

bool ExpandEmpty(Instr& instr) {
  bool any = false;
  for (const Instr* operand : instr.operands()) any = any || IsEmpty(operand);
  if (!any || (instr.shape().IsArray() && IsEmpty(&instr))) return false;
  size_t several = (instr.operand_count() - instr.captures()) / 2;
  switch (instr.op()) {
    case Op::kReduce:
    case Op::kReduceWindow:
      return SpreadScalars(instr, several);
    case Op::kSelectAndScatter:
      return SpreadScalars(instr, 2);
    case Op::kPad:
      return SpreadScalars(instr, 1);
    case Op::kDot:
    case Op::kConvolution:
      return SpreadZero(instr);
    case Op::kConcatenate:
      return LeaveOutEmpty(instr);
    case Op::kScatter:
    case Op::kDynamicUpdateSlice: {
      // An index vector without elements leaves the one window where it is.
      const Instr* update = instr.operand(instr.op() == Op::kScatter ? 2 : 1);
      if (!instr.shape().IsArray() || !IsEmpty(update)) return false;
      Expansion(instr).Replace(instr.operand(0));
      return true;
    }
    default:
      return false;
  }
}

namespace {

struct Row {
  bool (*expand)(Instr&);
  std::string_view rule;
};

// What is made is looked at, too.
void ExpandBy(std::span<const Row> rows, Module& module, DecisionLog& log) {
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    Computation& computation = *module.computations()[i];
    bool changed = false;
    for (bool again = true; again;) {
      again = false;
      for (Instr* instr : computation.Instrs()) {
        if (IsTied(*instr)) continue;
        std::string label = LabelOf(*instr);
        OriginId origins = instr->origins();
        auto row = std::ranges::find_if(rows, [&](const Row& r) { return r.expand(*instr); });
        if (row == rows.end()) continue;
        log.Add({.pass = "fuse", .rule = row->rule, .subject = label, .origins = origins});
        again = changed = true;
      }
    }
    if (changed) computation.PutInOrder();
  }
}

}  // namespace

void ExpandOps(Module& module, DecisionLog& log) {
  constexpr Row kRows[] = {{ExpandEmpty, "expand.of-nothing"},
                           {ExpandSelectAndScatter, "expand.wide-pick"},
                           {ExpandNarrowSolve, "expand.narrow-solve"},
                           {ExpandComplexAtan2, "expand.atan2"},
                           {ExpandPotrf, "expand.potrf"},
                           {ExpandComplexPower, "expand.power"},
                           {ExpandKnownShape, "expand.known-shape"},
                           {SplitConcatenate, "expand.long-concatenate"}};
  ExpandQuantized(module, log);
  ExpandBy(kRows, module, log);
}

void SplitWindows(Module& module, DecisionLog& log) {
  constexpr Row kRows[] = {{SplitWindow, "expand.long-window"}};
  ExpandBy(kRows, module, log);
}

}  // namespace tokamak
