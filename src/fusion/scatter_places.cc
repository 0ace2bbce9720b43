#include "fusion/scatter_places.h"

#include <algorithm>
#include <limits>

#include "fusion/expand_ops.h"
#include "gen/generator.h"
#include "gen/reducer.h"

namespace tokamak {
namespace {

// Updates worth more than one thread, elements of an array that threads may share, and batches that
// they do share.
constexpr int64_t kMany = 1 << 17, kFewElements = 64, kSomeBatches = 4;

bool IsNarrow(ElementType type) {
  return InfoOf(type).bits < 32;
}

bool HasType(PlacedOp op, ElementType type) {
  if (!IsReal(type) && !IsInteger(type) && type != ElementType::kPred) return false;
  int bits = InfoOf(type).bits;
  if (op == PlacedOp::kSet) return bits >= 8 || type == ElementType::kPred;
  if (IsReal(type))
    return type == ElementType::kF32 || type == ElementType::kF64 || type == ElementType::kBF16;
  if (!IsInteger(type) || bits < 8) return false;
  return op == PlacedOp::kAdd || !IsNarrow(type);
}

// Makes the places of a scatter's updates.
class Placement {
 public:
  explicit Placement(Instr& scatter)
      : scatter_(scatter), attrs_(scatter.attrs<ScatterAttrs>()), make_(scatter) {
    indices_ = scatter.operand(1);
    count_ = scatter.operand(2)->shape().ElementCount();
    size_ = scatter.shape().ElementCount();
    ElementType type = indices_->shape().type();
    bool fits = InfoOf(type).bits < (IsSigned(type) ? 33 : 32);
    type_ = fits ? ElementType::kS32 : ElementType::kS64;
  }

  void Run() {
    const Shape& shape = scatter_.shape();
    ScatterAttrs attrs;
    attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
    attrs.index_vector_dim = 1;
    attrs.indices_are_sorted = false;
    attrs.unique_indices = attrs_.unique_indices;
    Instr* placed = make_.Make(
        Op::kScatter, Shape::Array(shape.type(), {size_}),
        {InLine(scatter_.operand(0), size_), Places(), InLine(scatter_.operand(2), count_)},
        std::move(attrs));
    placed->set_called({scatter_.called(0)});
    make_.Replace(placed->shape().dims() == shape.dims()
                      ? placed
                      : make_.Make(Op::kReshape, shape, {placed}));
  }

 private:
  Instr* InLine(Instr* x, int64_t count) {
    if (x->shape().dims() == Dims{count}) return x;
    return make_.Make(Op::kReshape, Shape::Array(x->shape().type(), {count}), {x});
  }

  Instr* Number(int64_t value) {
    return make_.Spread(make_.Constant(Literal::ScalarInt(type_, value)), Line());
  }

  Shape Line() const { return Shape::Array(type_, {count_}); }

  // Component k of all index vectors.
  Instr* Component(size_t k) {
    Instr* x = indices_;
    auto along = static_cast<size_t>(attrs_.index_vector_dim);
    if (attrs_.scatter_dims_to_operand_dims.size() > 1) {
      SliceAttrs slice;
      slice.limits = x->shape().dims();
      slice.starts.assign(slice.limits.size(), 0);
      slice.strides.assign(slice.limits.size(), 1);
      slice.starts[along] = static_cast<int64_t>(k);
      slice.limits[along] = slice.starts[along] + 1;
      Dims dims = x->shape().dims();
      dims[along] = 1;
      x = make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x}, std::move(slice));
    }
    x = InLine(x, count_);
    return x->shape().type() == type_ ? x : make_.Make(Op::kConvert, Line(), {x});
  }

  // Where an update is along a batching dimension of the indices.
  Instr* Batch(int64_t of_indices) {
    Dims dims = indices_->shape().dims();
    if (attrs_.index_vector_dim < static_cast<int64_t>(dims.size()))
      dims[static_cast<size_t>(attrs_.index_vector_dim)] = 1;
    return InLine(make_.Make(Op::kIota, Shape::Array(type_, dims), {}, IotaAttrs{of_indices}),
                  count_);
  }

  Instr* Compared(Instr* x, Instr* y) {
    CompareAttrs compare;
    compare.direction = CompareDirection::kLt;
    return make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, {count_}), {x, y},
                      std::move(compare));
  }

  // Places of the array in a row; -1 where an index lies outside.
  Instr* Places() {
    const Dims& dims = scatter_.shape().dims();
    const Dims& moved = attrs_.scatter_dims_to_operand_dims;
    if (moved.size() == 1 && dims[static_cast<size_t>(moved[0])] == size_ &&
        type_ == ElementType::kS32 && attrs_.input_batching_dims.empty())
      return Component(0);
    Instr *place = nullptr, *outside = nullptr;
    auto add = [&](Instr* along, int64_t d) {
      int64_t stride = ProductOf(dims, static_cast<size_t>(d) + 1, dims.size());
      if (stride != 1) along = make_.Make(Op::kMultiply, Line(), {along, Number(stride)});
      place = place == nullptr ? along : make_.Make(Op::kAdd, Line(), {place, along});
    };
    for (size_t k = 0; k < moved.size(); ++k) {
      Instr* x = Component(k);
      int64_t last = dims[static_cast<size_t>(moved[k])] - 1;
      for (Instr* out : {Compared(x, Number(0)), Compared(Number(last), x)})
        outside = outside == nullptr ? out : make_.Make(Op::kOr, out->shape(), {outside, out});
      add(x, moved[k]);
    }
    for (size_t i = 0; i < attrs_.input_batching_dims.size(); ++i)
      add(Batch(attrs_.scatter_indices_batching_dims[i]), attrs_.input_batching_dims[i]);
    Instr* chosen = make_.Make(Op::kSelect, Line(), {outside, Number(-1), place});
    if (type_ == ElementType::kS32) return chosen;
    return make_.Make(Op::kConvert, Shape::Array(ElementType::kS32, {count_}), {chosen});
  }

  Instr& scatter_;
  const ScatterAttrs attrs_;
  Expansion make_;
  Instr* indices_;
  int64_t count_, size_;
  ElementType type_;
};

// A scatter that the runtime could do if its places were an array.
bool IsWanted(const Instr& scatter) {
  if (WhyNoScatter(scatter) || IsTied(scatter)) return false;
  const Shape &shape = scatter.shape(), &updates = scatter.operand(2)->shape();
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  if (attrs.scatter_dims_to_operand_dims.empty()) return false;
  for (int64_t d : attrs.update_window_dims)
    if (updates.dim(static_cast<size_t>(d)) != 1) return false;
  if (updates.ElementCount() < kMany || shape.ElementCount() < kFewElements ||
      shape.ElementCount() > std::numeric_limits<int32_t>::max())
    return false;
  // Batches are shared out among threads as they are.
  int64_t batches = 1;
  for (int64_t d : attrs.input_batching_dims) batches *= shape.dim(static_cast<size_t>(d));
  if (batches >= kSomeBatches) return false;
  std::optional<PlacedOp> op = PlacedOpOf(scatter);
  return op && HasType(*op, shape.type());
}

}  // namespace

std::optional<PlacedOp> PlacedOpOf(const Instr& scatter) {
  const Computation& body = *scatter.called(0);
  if (body.parameters().size() == 2 && body.root() == body.parameter(1)) return PlacedOp::kSet;
  std::optional<Op> op = AnyOrderOp(body);
  if (!op) return std::nullopt;
  switch (*op) {
    case Op::kAdd:
      return PlacedOp::kAdd;
    case Op::kMultiply:
      return PlacedOp::kMultiply;
    case Op::kMinimum:
      return PlacedOp::kMinimum;
    case Op::kMaximum:
      return PlacedOp::kMaximum;
    default:
      return std::nullopt;
  }
}

bool IsPlacedScatter(const Instr& scatter) {
  if (scatter.op() != Op::kScatter || !IsWanted(scatter)) return false;
  const Shape& indices = scatter.operand(1)->shape();
  return scatter.shape().rank() == 1 && indices.rank() == 1 &&
         indices.type() == ElementType::kS32 && scatter.operand(2)->shape().rank() == 1 &&
         scatter.attrs<ScatterAttrs>().index_vector_dim == 1;
}

void PlaceScatters(Module& module, DecisionLog& log, const Machine& machine) {
  if (machine.is_gpu()) return;
  for (const auto& computation : module.computations()) {
    bool changed = false;
    for (Instr* instr : computation->Instrs()) {
      if (instr->op() != Op::kScatter || !IsWanted(*instr) || IsPlacedScatter(*instr)) continue;
      log.Add({.pass = "fuse",
               .rule = "scatter.places",
               .subject = LabelOf(*instr),
               .origins = instr->origins(),
               .because = "many single elements"});
      Placement(*instr).Run();
      changed = true;
    }
    if (changed) computation->PutInOrder();
  }
}

}  // namespace tokamak
