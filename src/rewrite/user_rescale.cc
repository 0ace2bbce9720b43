// The pair of a rule for other extents than those of an example.

#include <algorithm>
#include <map>

#include "ir/clone.h"
#include "ir/infer.h"
#include "rewrite/user_rules.h"

namespace tokamak {
namespace {

// How dimensions change: whole shapes of elementwise rules, or single extents.
struct Rescaling {
  bool is_whole = false;
  Dims from, to;                       // is_whole
  std::map<int64_t, int64_t> extents;  // otherwise

  int64_t Extent(int64_t extent) const {
    auto it = extents.find(extent);
    return it == extents.end() ? extent : it->second;
  }
  Dims Of(const Dims& dims) const {
    if (is_whole) return dims == from ? to : dims;
    Dims made = dims;
    for (int64_t& extent : made) extent = Extent(extent);
    return made;
  }
  Shape Of(const Shape& shape) const {
    if (shape.IsArray()) return Shape::Array(shape.type(), Of(shape.dims()));
    if (!shape.IsTuple()) return shape;
    std::vector<Shape> elements;
    for (const Shape& element : shape.elements()) elements.push_back(Of(element));
    return Shape::Tuple(std::move(elements));
  }
};

// Adds the dimensions of an array; false if they are a second shape besides that of scalars.
bool IsOneShape(const Instr& instr, std::optional<Dims>& whole) {
  if (!instr.shape().IsArray()) return instr.op() == Op::kTuple;
  const Dims& dims = instr.shape().dims();
  bool is_pointwise = instr.info().Is(kElementwise) || instr.op() == Op::kParameter ||
                      instr.op() == Op::kConstant || instr.op() == Op::kBroadcast;
  if (!is_pointwise || !instr.called().empty()) return false;
  if (instr.op() == Op::kBroadcast && !instr.operand(0)->shape().IsScalar()) return false;
  if (dims.empty()) return true;
  if (!whole) whole = dims;
  return *whole == dims;
}

// The one shape of the arrays of an elementwise rule; null if it is not elementwise.
std::optional<Dims> WholeShapeOf(const RulePair& pair) {
  std::optional<Dims> whole;
  for (const Module* module : {pair.pattern.get(), pair.replacement.get()}) {
    if (module->computations().size() != 1) return std::nullopt;
    for (const Instr* instr : module->entry()->Instrs())
      if (!IsOneShape(*instr, whole)) return std::nullopt;
  }
  return whole.value_or(Dims{});
}

std::optional<Rescaling> WholeRescaling(const RulePair& pair, const std::vector<Shape>& variables) {
  std::optional<Dims> whole = WholeShapeOf(pair);
  if (!whole) return std::nullopt;
  Rescaling scale{.is_whole = true, .from = *whole, .to = {}, .extents = {}};
  bool is_known = false;
  for (size_t k = 0; k < variables.size(); ++k) {
    const Dims& dims = pair.pattern->entry()->parameter(k)->shape().dims();
    if (dims != *whole) {
      if (!variables[k].dims().empty()) return std::nullopt;
      continue;
    }
    if (is_known && scale.to != variables[k].dims()) return std::nullopt;
    scale.to = variables[k].dims();
    is_known = true;
  }
  return scale;
}

std::optional<Rescaling> ExtentRescaling(const RulePair& pair,
                                         const std::vector<Shape>& variables) {
  Rescaling scale;
  for (size_t k = 0; k < variables.size(); ++k) {
    const Dims& from = pair.pattern->entry()->parameter(k)->shape().dims();
    const Dims& to = variables[k].dims();
    if (from.size() != to.size()) return std::nullopt;
    for (size_t d = 0; d < from.size(); ++d) {
      auto [it, added] = scale.extents.emplace(from[d], to[d]);
      // An extent of 1 is a statement about the program, not a symbol.
      if ((!added && it->second != to[d]) || (from[d] <= 1 && from[d] != to[d]))
        return std::nullopt;
    }
  }
  return scale;
}

void RescaleAttrs(Instr& instr, const Rescaling& scale) {
  auto apply = [&](Dims& extents) {
    for (int64_t& extent : extents) extent = scale.Extent(extent);
  };
  if (instr.op() == Op::kSlice) {
    SliceAttrs attrs = instr.attrs<SliceAttrs>();
    apply(attrs.limits);
    instr.set_attrs(std::move(attrs));
  } else if (instr.op() == Op::kDynamicSlice) {
    DynamicSliceAttrs attrs = instr.attrs<DynamicSliceAttrs>();
    apply(attrs.sizes);
    instr.set_attrs(std::move(attrs));
  } else if (instr.op() == Op::kGather) {
    GatherAttrs attrs = instr.attrs<GatherAttrs>();
    apply(attrs.slice_sizes);
    instr.set_attrs(std::move(attrs));
  }
}

std::unique_ptr<Module> Rescaled(const Module& module, const Rescaling& scale) {
  std::unique_ptr<Module> made = CloneModule(module);
  made->entry_parameter_layouts.clear();
  made->entry_result_layout.reset();
  for (const auto& computation : made->computations())
    for (Instr* instr : computation->Instrs()) {
      Shape shape = scale.Of(instr->shape());
      if (!scale.is_whole) RescaleAttrs(*instr, scale);
      if (instr->op() == Op::kConstant && !Compatible(shape, instr->shape())) {
        const Literal& literal = instr->attrs<ConstantAttrs>().literal;
        if (!literal.is_splat() && instr->shape().ElementCount() != 1) return nullptr;
        auto bytes = static_cast<size_t>(BytesOf(literal.type()));
        instr->set_attrs(ConstantAttrs{Literal::Splat(shape, literal.data().Window(0, bytes))});
      }
      instr->set_shape(std::move(shape));
    }
  return VerifyModule(*made).ok() ? std::move(made) : nullptr;
}

}  // namespace

std::optional<RulePair> RescaledPair(const RulePair& example, const std::vector<Shape>& variables) {
  const Computation& entry = *example.pattern->entry();
  for (size_t k = 0; k < variables.size(); ++k)
    if (entry.parameter(k)->shape().type() != variables[k].type()) return std::nullopt;
  std::optional<Rescaling> scale = WholeRescaling(example, variables);
  if (!scale) scale = ExtentRescaling(example, variables);
  if (!scale) return std::nullopt;
  RulePair pair{Rescaled(*example.pattern, *scale), Rescaled(*example.replacement, *scale)};
  if (pair.pattern == nullptr || pair.replacement == nullptr) return std::nullopt;
  if (!Compatible(pair.pattern->entry()->root()->shape(),
                  pair.replacement->entry()->root()->shape()))
    return std::nullopt;
  return pair;
}

}  // namespace tokamak
