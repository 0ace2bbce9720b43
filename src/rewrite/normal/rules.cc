// The rules of the normal form. Each brings two spellings of one value
// together: StableHLO's and the one that XLA's importer makes of it. A rule
// never undoes another, so applying them as instructions are made suffices.

#include <algorithm>
#include <numeric>

#include "interp/interp.h"
#include "rewrite/normal/expand/expand.h"
#include "rewrite/normal/graph.h"

namespace tokamak {
namespace {

struct Site {
  NormalGraph& graph;
  Op op;
  const Shape& shape;
  std::span<Instr* const> operands;
  const Attrs& attrs;

  Instr* x() const { return operands[0]; }
  Instr* y() const { return operands[1]; }
};

// Folding more than this is not a question of spelling.
constexpr int64_t kMaxFoldedElements = 1 << 16;

bool IsConstant(const Instr* instr) {
  return instr->op() == Op::kConstant;
}
// A constant, or a scalar constant broadcast: the two forms that Constant() leaves.
const Literal* ScalarOf(const Instr* instr) {
  if (instr->op() == Op::kBroadcast && instr->operand(0)->shape().IsScalar())
    instr = instr->operand(0);
  if (!IsConstant(instr) || !instr->shape().IsScalar()) return nullptr;
  return &instr->attrs<ConstantAttrs>().literal;
}
bool IsSplatOf(const Instr* instr, double number) {
  const Literal* scalar = ScalarOf(instr);
  if (scalar == nullptr) return false;
  if (IsComplex(scalar->type())) return scalar->ComplexAt(0) == std::complex<double>(number, 0);
  return scalar->DoubleAt(0) == number;
}

Instr* SplatOf(NormalGraph& graph, Instr* scalar, const Shape& shape) {
  if (shape.IsScalar()) return scalar;
  // One element taken out of an array of one and put back.
  if (scalar->op() == Op::kReshape && scalar->operand(0)->shape().dims() == shape.dims())
    return scalar->operand(0);
  return graph.Intern(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{});
}

// ---- leaves ----

Instr* SimplifyConstant(const Site& site) {
  const Literal& literal = site.attrs.As<ConstantAttrs>().literal;
  if (!site.shape.IsArray() || site.shape.IsScalar() || site.shape.quant() != nullptr)
    return nullptr;
  bool one = literal.is_splat() || site.shape.ElementCount() == 1;
  if (!one) return nullptr;
  Literal scalar = Literal::Array(Shape::Scalar(literal.type()), literal.data());
  return SplatOf(site.graph, site.graph.Constant(scalar), site.shape);
}

Instr* SimplifyIota(const Site& site) {
  int64_t dimension = site.attrs.As<IotaAttrs>().dimension;
  int64_t size = site.shape.dim(static_cast<size_t>(dimension));
  if (size == 1)
    return SplatOf(site.graph, site.graph.Constant(Literal::ScalarInt(site.shape.type(), 0)),
                   site.shape);
  if (site.shape.rank() == 1) return nullptr;
  Instr* line = site.graph.Make(Op::kIota, site.shape.WithDims({size}), {}, IotaAttrs{0});
  return site.graph.Make(Op::kBroadcast, site.shape, {line}, DimensionsAttrs{{dimension}});
}

// ---- data movement ----

Dims WithoutOnes(const Dims& dims) {
  Dims kept;
  for (int64_t d : dims)
    if (d != 1) kept.push_back(d);
  return kept;
}

Instr* SimplifyReshape(const Site& site) {
  Instr* x = site.x();
  if (x->shape().dims() == site.shape.dims()) return x;
  if (x->op() == Op::kReshape) return site.graph.Make(Op::kReshape, site.shape, {x->operand(0)});
  if (x->shape().IsScalar()) return SplatOf(site.graph, x, site.shape);
  if (!site.shape.IsScalar() && !site.shape.HasDynamicDims() && site.shape.ElementCount() == 1) {
    Instr* scalar = site.graph.Make(Op::kReshape, site.shape.WithDims({}), {x});
    return SplatOf(site.graph, scalar, site.shape);
  }
  if (x->op() == Op::kBroadcast && x->operand(0)->shape().IsScalar())
    return SplatOf(site.graph, x->operand(0), site.shape);
  // A reshape that only adds or drops ones of a broadcast is a broadcast.
  if (x->op() == Op::kBroadcast &&
      WithoutOnes(x->shape().dims()) == WithoutOnes(site.shape.dims())) {
    const Dims& source = x->attrs<DimensionsAttrs>().dimensions;
    Dims moved;  // where each dimension of x went, -1 for dropped ones
    std::vector<int64_t> to(static_cast<size_t>(x->shape().rank()), -1);
    size_t at = 0;
    for (size_t i = 0; i < to.size(); ++i) {
      if (x->shape().dim(i) == 1) continue;
      while (site.shape.dim(at) == 1) ++at;
      to[i] = static_cast<int64_t>(at++);
    }
    for (int64_t d : source) moved.push_back(to[static_cast<size_t>(d)]);
    if (std::ranges::find(moved, -1) == moved.end())
      return site.graph.Make(Op::kBroadcast, site.shape, {x->operand(0)}, DimensionsAttrs{moved});
  }
  return nullptr;
}

Instr* SimplifyBroadcast(const Site& site) {
  Instr* x = site.x();
  const Dims& dimensions = site.attrs.As<DimensionsAttrs>().dimensions;
  if (x->shape().HasDynamicDims() || site.shape.HasDynamicDims()) return nullptr;
  if (x->shape().IsScalar()) return SplatOf(site.graph, x, site.shape);
  if (x->op() == Op::kBroadcast) {
    Dims composed;
    for (int64_t d : x->attrs<DimensionsAttrs>().dimensions)
      composed.push_back(dimensions[static_cast<size_t>(d)]);
    return site.graph.Make(Op::kBroadcast, site.shape, {x->operand(0)}, DimensionsAttrs{composed});
  }
  // Dimensions of one element say nothing: dropped from the operand.
  if (std::ranges::find(x->shape().dims(), 1) != x->shape().dims().end()) {
    Dims kept;
    for (size_t i = 0; i < dimensions.size(); ++i)
      if (x->shape().dim(i) != 1) kept.push_back(dimensions[i]);
    Instr* squeezed =
        site.graph.Make(Op::kReshape, x->shape().WithDims(WithoutOnes(x->shape().dims())), {x});
    return site.graph.Make(Op::kBroadcast, site.shape, {squeezed}, DimensionsAttrs{kept});
  }
  if (!std::is_sorted(dimensions.begin(), dimensions.end())) {
    Dims order(dimensions.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int64_t i) { return dimensions[static_cast<size_t>(i)]; });
    Dims sizes, sorted;
    for (int64_t i : order) {
      sizes.push_back(x->shape().dim(static_cast<size_t>(i)));
      sorted.push_back(dimensions[static_cast<size_t>(i)]);
    }
    Instr* turned =
        site.graph.Make(Op::kTranspose, x->shape().WithDims(sizes), {x}, DimensionsAttrs{order});
    return site.graph.Make(Op::kBroadcast, site.shape, {turned}, DimensionsAttrs{sorted});
  }
  if (x->shape().ElementCount() == site.shape.ElementCount() && !x->shape().IsScalar())
    return site.graph.Make(Op::kReshape, site.shape, {x});
  if (site.shape.IsScalar()) return x;
  return nullptr;
}

// Dimensions of one element are taken out before and put back after; `moved`
// holds the permutation of the others.
Instr* TransposeWithoutOnes(const Site& site, const Dims& moved) {
  Dims rank_of(static_cast<size_t>(site.x()->shape().rank()), 0);
  int64_t next = 0;
  for (size_t i = 0; i < rank_of.size(); ++i)
    if (site.x()->shape().dim(i) != 1) rank_of[i] = next++;
  Dims permutation;
  for (int64_t d : moved) permutation.push_back(rank_of[static_cast<size_t>(d)]);
  Instr* squeezed = site.graph.Make(
      Op::kReshape, site.shape.WithDims(WithoutOnes(site.x()->shape().dims())), {site.x()});
  Instr* turned =
      site.graph.Make(Op::kTranspose, site.shape.WithDims(WithoutOnes(site.shape.dims())),
                      {squeezed}, DimensionsAttrs{permutation});
  return site.graph.Make(Op::kReshape, site.shape, {turned});
}

Instr* SimplifyTranspose(const Site& site) {
  Instr* x = site.x();
  const Dims& permutation = site.attrs.As<DimensionsAttrs>().dimensions;
  if (x->op() == Op::kBroadcast && x->operand(0)->shape().IsScalar())
    return SplatOf(site.graph, x->operand(0), site.shape);
  Dims moved;  // the order of what is longer than one
  for (int64_t d : permutation)
    if (x->shape().dim(static_cast<size_t>(d)) != 1) moved.push_back(d);
  if (std::is_sorted(moved.begin(), moved.end()))
    return site.graph.Make(Op::kReshape, site.shape, {x});
  if (moved.size() < permutation.size()) return TransposeWithoutOnes(site, moved);
  if (x->op() == Op::kTranspose) {
    Dims composed;
    for (int64_t d : permutation)
      composed.push_back(x->attrs<DimensionsAttrs>().dimensions[static_cast<size_t>(d)]);
    return site.graph.Make(Op::kTranspose, site.shape, {x->operand(0)}, DimensionsAttrs{composed});
  }
  if (x->op() == Op::kBroadcast) {
    std::vector<int64_t> inverse(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i)
      inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
    Dims composed;
    for (int64_t d : x->attrs<DimensionsAttrs>().dimensions)
      composed.push_back(inverse[static_cast<size_t>(d)]);
    return site.graph.Make(Op::kBroadcast, site.shape, {x->operand(0)}, DimensionsAttrs{composed});
  }
  return nullptr;
}

// A slice of a concatenate reads only the parts that it meets.
Instr* SliceOfConcatenate(const Site& site) {
  size_t along = static_cast<size_t>(site.x()->attrs<DimensionAttrs>().dimension);
  SliceAttrs attrs = site.attrs.As<SliceAttrs>();
  std::vector<Instr*> met;
  int64_t begin = 0, skipped = 0, total = 0;
  for (Instr* part : site.x()->operands()) {
    int64_t size = part->shape().dim(along), end = begin + size;
    if (begin < attrs.limits[along] && end > attrs.starts[along]) {
      if (met.empty()) skipped = begin;
      met.push_back(part);
      total += size;
    }
    begin = end;
  }
  if (met.empty() || met.size() == site.x()->operand_count()) return nullptr;
  attrs.starts[along] -= skipped;
  attrs.limits[along] -= skipped;
  Dims dims = site.x()->shape().dims();
  dims[along] = total;
  Instr* fewer = met.size() == 1
                     ? met[0]
                     : site.graph.Make(Op::kConcatenate, site.x()->shape().WithDims(dims), met,
                                       site.x()->attrs());
  return site.graph.Make(Op::kSlice, site.shape, {fewer}, attrs);
}

Instr* SimplifyReverse(const Site& site) {
  Dims turned;  // one element is the same both ways
  const Dims& dimensions = site.attrs.As<DimensionsAttrs>().dimensions;
  for (int64_t d : dimensions)
    if (site.shape.dim(static_cast<size_t>(d)) != 1) turned.push_back(d);
  if (turned.empty()) return site.x();
  if (turned.size() == dimensions.size()) return nullptr;
  return site.graph.Make(Op::kReverse, site.shape, {site.x()}, DimensionsAttrs{turned});
}

Instr* SimplifySlice(const Site& site) {
  Instr* x = site.x();
  if (x->shape().dims() == site.shape.dims()) return x;
  if (x->op() == Op::kBroadcast && x->operand(0)->shape().IsScalar())
    return SplatOf(site.graph, x->operand(0), site.shape);
  if (x->op() == Op::kConcatenate) return SliceOfConcatenate(site);
  if (x->op() != Op::kSlice) return nullptr;
  const SliceAttrs& outer = site.attrs.As<SliceAttrs>();
  const SliceAttrs& inner = x->attrs<SliceAttrs>();
  SliceAttrs both;
  for (size_t i = 0; i < outer.starts.size(); ++i) {
    int64_t stride = inner.strides[i];
    both.starts.push_back(inner.starts[i] + outer.starts[i] * stride);
    both.strides.push_back(stride * outer.strides[i]);
    both.limits.push_back(std::min(inner.limits[i], inner.starts[i] + outer.limits[i] * stride));
  }
  return site.graph.Make(Op::kSlice, site.shape, {x->operand(0)}, both);
}

// The end of a strided slice may be said in several ways: the last one read, plus one.
Instr* TightenSlice(const Site& site) {
  SliceAttrs attrs = site.attrs.As<SliceAttrs>();
  for (size_t i = 0; i < attrs.starts.size(); ++i) {
    if (site.shape.dim(i) == kDynamic) return nullptr;
    int64_t size = site.shape.dim(i);
    if (size <= 1) attrs.strides[i] = 1;
    attrs.limits[i] =
        size == 0 ? attrs.starts[i] : attrs.starts[i] + (size - 1) * attrs.strides[i] + 1;
  }
  if (attrs == site.attrs.As<SliceAttrs>()) return nullptr;
  return site.graph.Make(Op::kSlice, site.shape, {site.x()}, attrs);
}

Instr* SimplifyDynamicSlice(const Site& site) {
  SliceAttrs attrs;
  for (size_t i = 1; i < site.operands.size(); ++i) {
    const Literal* index = ScalarOf(site.operands[i]);
    if (index == nullptr || site.shape.dim(i - 1) == kDynamic) return nullptr;
    int64_t size = site.shape.dim(i - 1);
    int64_t start = std::clamp<int64_t>(index->IntAt(0), 0, site.x()->shape().dim(i - 1) - size);
    attrs.starts.push_back(start);
    attrs.limits.push_back(start + size);
    attrs.strides.push_back(1);
  }
  return site.graph.Make(Op::kSlice, site.shape, {site.x()}, attrs);
}

Instr* SimplifyConcatenate(const Site& site) {
  size_t dimension = static_cast<size_t>(site.attrs.As<DimensionAttrs>().dimension);
  std::vector<Instr*> parts;
  for (Instr* part : site.operands) {
    bool nested = part->op() == Op::kConcatenate &&
                  static_cast<size_t>(part->attrs<DimensionAttrs>().dimension) == dimension;
    if (nested) {
      parts.insert(parts.end(), part->operands().begin(), part->operands().end());
    } else if (part->shape().dim(dimension) != 0) {
      parts.push_back(part);
    }
  }
  if (parts.size() == 1) return parts[0];
  if (parts.empty() || std::ranges::equal(parts, site.operands)) return nullptr;
  return site.graph.Make(Op::kConcatenate, site.shape, parts, site.attrs);
}

Instr* SimplifyPad(const Site& site) {
  if (!site.x()->shape().HasDynamicDims() && site.x()->shape().ElementCount() == 0)
    return SplatOf(site.graph, site.y(), site.shape);
  return site.x()->shape().dims() == site.shape.dims() &&
                 std::ranges::all_of(site.attrs.As<PadAttrs>().low,
                                     [](int64_t v) { return v == 0; }) &&
                 std::ranges::all_of(site.attrs.As<PadAttrs>().interior,
                                     [](int64_t v) { return v == 0; })
             ? site.x()
             : nullptr;
}

// ---- arithmetic ----

// Of floats too, as XLA's importer does: -0 + 0 becomes -0.
Instr* SimplifyAdd(const Site& site) {
  if (IsSplatOf(site.y(), 0)) return site.x();
  if (IsSplatOf(site.x(), 0)) return site.y();
  return nullptr;
}

Instr* SimplifySubtract(const Site& site) {
  return IsSplatOf(site.y(), 0) ? site.x() : nullptr;
}

Instr* SimplifyMultiply(const Site& site) {
  if (site.shape.type() == ElementType::kPred) return nullptr;
  if (IsSplatOf(site.y(), 1)) return site.x();
  if (IsSplatOf(site.x(), 1)) return site.y();
  if (!IsInteger(site.shape.type())) return nullptr;
  if (IsSplatOf(site.y(), 0)) return site.y();
  return IsSplatOf(site.x(), 0) ? site.x() : nullptr;
}

Instr* SimplifyDivide(const Site& site) {
  return IsSplatOf(site.y(), 1) ? site.x() : nullptr;
}

bool IsAllOnes(const Instr* instr) {
  const Literal* scalar = ScalarOf(instr);
  if (scalar == nullptr) return false;
  int bits = InfoOf(scalar->type()).bits;
  return scalar->BitsAt(0) == (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
}

Instr* SimplifyAnd(const Site& site) {
  for (size_t i : {0, 1}) {
    if (IsAllOnes(site.operands[i])) return site.operands[1 - i];
    if (IsSplatOf(site.operands[i], 0)) return site.operands[i];
  }
  return site.x() == site.y() ? site.x() : nullptr;
}

Instr* SimplifyOr(const Site& site) {
  for (size_t i : {0, 1}) {
    if (IsAllOnes(site.operands[i])) return site.operands[i];
    if (IsSplatOf(site.operands[i], 0)) return site.operands[1 - i];
  }
  return site.x() == site.y() ? site.x() : nullptr;
}

Instr* SimplifyConvert(const Site& site) {
  if (site.x()->shape().type() == site.shape.type()) return site.x();
  if (site.x()->op() == Op::kBroadcast) {  // convert where it is cheaper
    Instr* source = site.x()->operand(0);
    Instr* converted =
        site.graph.Make(Op::kConvert, source->shape().WithType(site.shape.type()), {source});
    return site.graph.Make(Op::kBroadcast, site.shape, {converted}, site.x()->attrs());
  }
  return nullptr;
}

CompareDirection TurnedAround(CompareDirection direction) {
  switch (direction) {
    case CompareDirection::kLt:
      return CompareDirection::kGt;
    case CompareDirection::kLe:
      return CompareDirection::kGe;
    case CompareDirection::kGt:
      return CompareDirection::kLt;
    case CompareDirection::kGe:
      return CompareDirection::kLe;
    case CompareDirection::kEq:
    case CompareDirection::kNe:
      return direction;
  }
  return direction;
}

Instr* Truth(const Site& site, bool value) {
  return SplatOf(site.graph, site.graph.Constant(Literal::ScalarInt(ElementType::kPred, value)),
                 site.shape);
}

// A pred compared with a constant, and an integer with itself.
Instr* DecideCompare(const Site& site) {
  const CompareAttrs& attrs = site.attrs.As<CompareAttrs>();
  ElementType type = site.x()->shape().type();
  bool equal = attrs.direction == CompareDirection::kEq ||
               attrs.direction == CompareDirection::kLe || attrs.direction == CompareDirection::kGe;
  if (site.x() == site.y() && !IsReal(type) && !IsComplex(type)) return Truth(site, equal);
  if (type != ElementType::kPred) return nullptr;
  bool same = attrs.direction == CompareDirection::kEq;
  if (!same && attrs.direction != CompareDirection::kNe) return nullptr;
  for (size_t i : {0, 1}) {
    if (!IsSplatOf(site.operands[i], same ? 1 : 0)) continue;
    return site.operands[1 - i];
  }
  return nullptr;
}

Instr* SimplifyCompare(const Site& site) {
  if (Instr* decided = DecideCompare(site)) return decided;
  if (site.graph.HashOf(site.x()) <= site.graph.HashOf(site.y())) return nullptr;
  CompareAttrs attrs = site.attrs.As<CompareAttrs>();
  attrs.direction = TurnedAround(attrs.direction);
  return site.graph.Make(Op::kCompare, site.shape, {site.y(), site.x()}, attrs);
}

Instr* SimplifySelect(const Site& site) {
  if (site.operands[1] == site.operands[2]) return site.operands[1];
  if (const Literal* chosen = ScalarOf(site.x()))
    return site.operands[chosen->BitsAt(0) != 0 ? 1 : 2];
  // A scalar predicate is the same as that predicate everywhere.
  if (site.x()->shape().IsScalar() && !site.shape.IsScalar() && !site.shape.HasDynamicDims()) {
    Instr* wide = SplatOf(site.graph, site.x(), site.shape.WithType(ElementType::kPred));
    return site.graph.Make(Op::kSelect, site.shape, {wide, site.operands[1], site.operands[2]});
  }
  return nullptr;
}

// A complex number put together from its own parts.
Instr* SimplifyComplex(const Site& site) {
  bool parts = site.x()->op() == Op::kReal && site.y()->op() == Op::kImag &&
               site.x()->operand(0) == site.y()->operand(0) &&
               site.x()->operand(0)->shape() == site.shape;
  return parts ? site.x()->operand(0) : nullptr;
}

Instr* SimplifyClamp(const Site& site) {
  std::vector<Instr*> operands(site.operands.begin(), site.operands.end());
  bool changed = false;
  for (size_t i : {0, 2}) {
    if (!operands[i]->shape().IsScalar() || site.shape.IsScalar() || site.shape.HasDynamicDims())
      continue;
    operands[i] = SplatOf(site.graph, operands[i], site.shape);
    changed = true;
  }
  return changed ? site.graph.Make(Op::kClamp, site.shape, operands) : nullptr;
}

Instr* SimplifyReduce(const Site& site, std::span<Computation* const> called) {
  if (!site.attrs.As<DimensionsAttrs>().dimensions.empty() || site.operands.size() != 2)
    return nullptr;
  // Over no dimension: one application of the body, which must be a binary op to be spelled out.
  const Instr* root = called[0]->root();
  bool binary = root->operand_count() == 2 && root->operand(0)->op() == Op::kParameter &&
                root->operand(1)->op() == Op::kParameter && root->operand(0) != root->operand(1);
  if (!binary || !IsCommutative(root->op())) return nullptr;
  return site.graph.Make(root->op(), site.shape,
                         {site.x(), SplatOf(site.graph, site.y(), site.shape)}, root->attrs());
}

// HLO text does not print the first version of the interface, and layouts are not compared.
Instr* SimplifyCustomCall(const Site& site, std::span<Computation* const> called) {
  CustomCallAttrs attrs = site.attrs.As<CustomCallAttrs>();
  if (attrs.api_version == CustomCallApi::kOriginal)
    attrs.api_version = CustomCallApi::kUnspecified;
  attrs.operand_layouts.reset();
  attrs.result_layouts.reset();
  attrs.operand_layout_constraints.reset();
  if (attrs == site.attrs.As<CustomCallAttrs>()) return nullptr;
  return site.graph.Intern(site.op, site.shape, {site.operands.begin(), site.operands.end()}, attrs,
                           {called.begin(), called.end()});
}

Instr* Fold(const Site& site) {
  if (site.operands.empty() || !site.shape.IsArray() || site.shape.HasDynamicDims()) return nullptr;
  if (site.shape.ElementCount() > kMaxFoldedElements || site.op == Op::kBroadcast) return nullptr;
  const OpInfo& info = InfoOf(site.op);
  if (!info.Is(kElementwise) && !info.Is(kDataMovement)) return nullptr;
  bool all_scalar = true;
  for (const Instr* operand : site.operands) {
    bool scalar = ScalarOf(operand) != nullptr;
    if (!scalar && !IsConstant(operand)) return nullptr;
    if (!operand->shape().IsArray() || operand->shape().ElementCount() > kMaxFoldedElements)
      return nullptr;
    all_scalar = all_scalar && scalar && operand->shape().dims() == site.shape.dims();
  }
  // A scratch instruction to evaluate; splats are evaluated once.
  bool once = all_scalar && info.Is(kElementwise);
  Module scratch;
  Computation* computation = scratch.AddComputation("fold");
  std::vector<Instr*> parameters;
  std::vector<Value> values;
  for (const Instr* operand : site.operands) {
    const Literal* scalar = ScalarOf(operand);
    Literal literal = scalar == nullptr ? operand->attrs<ConstantAttrs>().literal
                      : once            ? *scalar
                                        : Literal::Splat(operand->shape(), scalar->data());
    parameters.push_back(
        computation->AppendParameter(static_cast<int64_t>(parameters.size()), literal.shape()));
    Result<Value> value = ValueFromLiteral(literal);
    if (!value.ok()) return nullptr;
    values.push_back(std::move(value).value());
  }
  Shape shape = once ? Shape::Scalar(site.shape.type()) : site.shape;
  Instr* instr = computation->Append(site.op, shape, parameters, site.attrs);
  Result<Value> folded = EvaluateInstr(*instr, values);
  if (!folded.ok()) return nullptr;
  Instr* constant = site.graph.Constant(LiteralFromValue(folded.value()));
  return once ? SplatOf(site.graph, constant, site.shape) : constant;
}

Instr* SimplifyOp(const Site& site, std::span<Computation* const> called) {
  switch (site.op) {
    case Op::kConstant:
      return SimplifyConstant(site);
    case Op::kIota:
      return SimplifyIota(site);
    case Op::kReshape:
      return SimplifyReshape(site);
    case Op::kBroadcast:
      return SimplifyBroadcast(site);
    case Op::kTranspose:
      return SimplifyTranspose(site);
    case Op::kReverse:
      return SimplifyReverse(site);
    case Op::kSlice:
      if (Instr* simpler = SimplifySlice(site)) return simpler;
      return TightenSlice(site);
    case Op::kDynamicSlice:
      return SimplifyDynamicSlice(site);
    case Op::kConcatenate:
      return SimplifyConcatenate(site);
    case Op::kPad:
      return SimplifyPad(site);
    case Op::kAdd:
      return SimplifyAdd(site);
    case Op::kSubtract:
      return SimplifySubtract(site);
    case Op::kMultiply:
      return SimplifyMultiply(site);
    case Op::kDivide:
      return SimplifyDivide(site);
    case Op::kAnd:
      return SimplifyAnd(site);
    case Op::kOr:
      return SimplifyOr(site);
    case Op::kConvert:
      return SimplifyConvert(site);
    case Op::kCompare:
      return SimplifyCompare(site);
    case Op::kSelect:
      return SimplifySelect(site);
    case Op::kClamp:
      return SimplifyClamp(site);
    case Op::kReduce:
      return SimplifyReduce(site, called);
    case Op::kCustomCall:
      return SimplifyCustomCall(site, called);
    case Op::kReal:
      return site.x()->op() == Op::kComplex ? site.x()->operand(0) : nullptr;
    case Op::kImag:
      return site.x()->op() == Op::kComplex ? site.x()->operand(1) : nullptr;
    case Op::kComplex:
      return SimplifyComplex(site);
    case Op::kCopy:
    case Op::kShardingConstraint:
    case Op::kReshard:
    case Op::kPropagationBarrier:
    case Op::kDomain:
      return site.x();
    default:
      return nullptr;
  }
}

}  // namespace

Instr* Simplify(NormalGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands,
                const Attrs& attrs, std::span<Computation* const> called) {
  for (const Instr* operand : operands)
    if (operand->shape().quant() != nullptr) return nullptr;
  if (shape.IsArray() && shape.quant() != nullptr) return nullptr;
  Site site{graph, op, shape, operands, attrs};
  bool pure = op != Op::kConstant && InfoOf(op).traits != 0 && !InfoOf(op).Is(kControlFlow);
  if (pure && shape.IsArray() && !shape.HasDynamicDims() && shape.ElementCount() == 0)
    return graph.Constant(Literal::Array(shape, {}));
  if (Instr* expanded = ExpandAsJax(graph, op, shape, operands)) return expanded;
  if (Instr* folded = Fold(site)) return folded;
  return SimplifyOp(site, called);
}

}  // namespace tokamak
