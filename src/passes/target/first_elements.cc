#include "passes/target/first_elements.h"

#include "gen/region.h"
#include "gen/sort_keys.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// The number of leading elements that a slice takes along the last dimension; 0 for other slices.
int64_t FirstOf(const Instr& instr) {
  if (instr.op() != Op::kSlice) return 0;
  const SliceAttrs& attrs = instr.attrs<SliceAttrs>();
  const Dims& dims = instr.operand(0)->shape().dims();
  for (size_t d = 0; d < dims.size(); ++d) {
    bool whole = attrs.limits[d] == dims[d] || d + 1 == dims.size();
    if (attrs.starts[d] != 0 || attrs.strides[d] != 1 || !whole) return 0;
  }
  return attrs.limits.back();
}

class FirstElements {
 public:
  // `nearly`: the order of equal elements, and of NaN, is unspecified.
  explicit FirstElements(Instr& sort, bool nearly = false)
      : sort_(sort), dims_(sort.operand(0)->shape().dims()), nearly_(nearly) {}

  bool Find() {
    std::optional<std::vector<OperandKey>> keys = KeysOf(sort_);
    if (!keys || keys->size() != 1 || sort_.parent()->root() == &sort_) return false;
    SortOrder order = (*keys)[0].order;
    if (!nearly_ && (order == SortOrder::kFloatNanLast || order == SortOrder::kFloatIeee))
      return false;
    is_descending_ = (*keys)[0].is_descending;
    key_ = (*keys)[0].operand;
    int64_t along = sort_.attrs<SortAttrs>().dimension;
    auto rank = static_cast<int64_t>(dims_.size());
    if ((along < 0 ? along + rank : along) != rank - 1 || sort_.operand_count() > 2) return false;
    for (size_t i = 0; i < sort_.operand_count(); ++i)
      if (i != key_ && !IsIotaAlong(*sort_.operand(i), rank - 1)) return false;
    if (!sort_.shape().IsTuple()) return FindSlices(sort_, key_);
    for (Instr* part : sort_.users())
      if (part->op() != Op::kGetTupleElement || part->parent()->root() == part ||
          !FindSlices(*part, static_cast<size_t>(part->attrs<TupleIndexAttrs>().index)))
        return false;
    return !slices_.empty();
  }

  void Take() {
    Computation& computation = *sort_.parent();
    Dims dims = dims_;
    dims.back() = k_;
    Shape values = Shape::Array(sort_.operand(key_)->shape().type(), dims);
    Shape positions = Shape::Array(ElementType::kS32, dims);
    Editor make(sort_);
    Instr* top = make.Make(Op::kTopK, Shape::Tuple({values, positions}), {sort_.operand(key_)},
                           TopKAttrs{.k = k_, .largest = is_descending_});
    for (auto [slice, operand] : slices_) {
      bool is_key = operand == key_;
      Instr* part = make.Element(top, is_key ? 0 : 1);
      if (part->shape().type() != slice->shape().type())
        part = make.Make(Op::kConvert, slice->shape(), {part});
      make.Replace(*slice, part);
    }
    std::vector<Instr*> parts(sort_.users().begin(), sort_.users().end());
    for (Instr* part : parts) computation.Remove(part);
    computation.Remove(&sort_);
  }

 private:
  bool FindSlices(Instr& whole, size_t operand) {
    for (Instr* slice : whole.users()) {
      int64_t k = FirstOf(*slice);
      if (k == 0 || (k_ != 0 && k != k_) || HasControlDependencies(*slice)) return false;
      k_ = k;
      slices_.emplace_back(slice, operand);
    }
    return 2 * k_ <= dims_.back();
  }

  Instr& sort_;
  Dims dims_;
  bool nearly_;
  size_t key_ = 0;
  bool is_descending_ = false;
  int64_t k_ = 0;
  std::vector<std::pair<Instr*, size_t>> slices_;
};

}  // namespace

bool TryTopK(Instr& sort, PassContext& context) {
  if (!HasPlainOperands(sort) || HasControlDependencies(sort)) return false;
  FirstElements first(sort);
  if (!first.Find()) return false;
  context.Accepted("sort.first-elements", sort);
  first.Take();
  return true;
}

namespace {

// The dimension along which all results are shorter than the operands; -1 if there is none, or if
// the number of results differs.
int64_t ShortenedDimension(const Instr& call, size_t count) {
  std::vector<Shape> results = ResultShapesOf(call.shape());
  int64_t found = -1;
  if (count == 0 || results.size() != count) return -1;
  for (size_t i = 0; i < count; ++i) {
    const Shape &from = call.operand(i)->shape(), &to = results[i];
    if (!IsPlainArray(from) || !IsPlainArray(to) || from.rank() != to.rank()) return -1;
    if (from.type() != to.type() || from.dims() != call.operand(0)->shape().dims()) return -1;
    for (int64_t d = 0; d < from.rank(); ++d) {
      auto at = static_cast<size_t>(d);
      if (from.dim(at) == to.dim(at)) continue;
      if (from.dim(at) < to.dim(at) || (found >= 0 && found != d)) return -1;
      found = d;
    }
  }
  return found;
}

}  // namespace

bool TryApproxTopK(Instr& call, PassContext& context) {
  if (call.attrs<CustomCallAttrs>().target != "ApproxTopK" || call.called().size() != 1)
    return false;
  if (call.attrs<CustomCallAttrs>().has_side_effect || call.is_control_predecessor()) return false;
  if (call.has_extras() && (!call.extras().control_predecessors.empty() || call.captures() > 0))
    return false;
  size_t count = call.operand_count() / 2;
  int64_t along = call.operand_count() % 2 == 0 ? ShortenedDimension(call, count) : -1;
  if (along < 0 || call.called(0)->parameters().size() != 2 * count) return false;
  Editor make(call);
  std::vector<Instr*> operands, results;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < count; ++i) {
    operands.push_back(call.operand(i));
    shapes.push_back(call.operand(i)->shape().WithoutLayout());
  }
  bool several = count > 1;
  Instr* sorted = make.Make(Op::kSort, several ? Shape::Tuple(shapes) : shapes[0], operands,
                            SortAttrs{.dimension = along, .is_stable = true});
  sorted->set_called({call.called(0)});
  for (size_t i = 0; i < count; ++i) {
    Instr* part = sorted;
    if (several)
      part = make.Make(Op::kGetTupleElement, shapes[i], {sorted},
                       TupleIndexAttrs{static_cast<int64_t>(i)});
    Shape shape = ResultShapesOf(call.shape())[i].WithoutLayout();
    Dims zero(shape.dims().size()), one(shape.dims().size(), 1);
    results.push_back(make.Make(Op::kSlice, shape, {part}, SliceAttrs{zero, shape.dims(), one}));
  }
  Instr* value =
      call.shape().IsTuple() ? make.Make(Op::kTuple, call.shape(), results, {}) : results[0];
  context.Accepted("sort.approximate", call);
  make.Replace(value);
  if (FirstElements first(*sorted, true); HasPlainOperands(*sorted) && first.Find()) first.Take();
  return true;
}

}  // namespace tokamak
