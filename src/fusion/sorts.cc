#include "fusion/sorts.h"

#include <limits>
#include <unordered_map>

#include "fusion/library_functions.h"
#include "fusion/sort_keys.h"
#include "gen/region.h"
#include "ir/builder.h"
#include "support/check.h"

namespace tokamak {
namespace {

bool IsSortable(const Instr& sort) {
  if (sort.captures() > 0 || sort.operand_count() == 0) return false;
  for (const Instr* operand : sort.operands()) {
    const Shape& shape = operand->shape();
    if (!IsPlainArray(shape) || shape.ElementCount() == 0 || shape.rank() == 0) return false;
  }
  return true;
}

bool IsTopK(const Instr& instr) {
  const Shape& shape = instr.operand(0)->shape();
  if (!IsPlainArray(shape) || shape.ElementCount() == 0 || shape.rank() == 0) return false;
  if (shape.dims().back() > std::numeric_limits<int32_t>::max()) return false;
  for (const Shape& part : PartsOf(instr.shape()))
    if (!IsPlainArray(part) || part.ElementCount() == 0) return false;
  ElementType index = PartsOf(instr.shape())[1].type();
  bool counts = index == ElementType::kS32 || index == ElementType::kU32 ||
                index == ElementType::kS64 || index == ElementType::kU64;
  return counts && TotalOrderOf(shape.type()).has_value();
}

// ---- a sort of which only the first elements are needed

// The number of first elements that a slice takes along the last dimension; 0 for other slices.
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
  explicit FirstElements(Instr& sort) : sort_(sort), dims_(sort.operand(0)->shape().dims()) {}

  bool Find() {
    std::optional<std::vector<KeyOfSort>> keys = KeysOf(sort_);
    if (!keys || keys->size() != 1 || sort_.parent()->root() == &sort_) return false;
    KeyOrder order = (*keys)[0].order;
    if (order == KeyOrder::kNumbers || order == KeyOrder::kPlain) return false;
    is_descending_ = (*keys)[0].is_descending;
    key_ = (*keys)[0].operand;
    int64_t along = sort_.attrs<SortAttrs>().dimension;
    auto rank = static_cast<int64_t>(dims_.size());
    if ((along < 0 ? along + rank : along) != rank - 1 || sort_.operand_count() > 2) return false;
    for (size_t i = 0; i < sort_.operand_count(); ++i)
      if (i != key_ && !CountsAlong(*sort_.operand(i), rank - 1)) return false;
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
    Shape places = Shape::Array(ElementType::kS32, dims);
    auto make = [&](Op op, const Shape& shape, Instr* operand, Attrs attrs) {
      Instr* made = computation.Append(op, shape, {operand}, std::move(attrs), sort_.name());
      made->set_origins(sort_.origins());
      made->set_pos(sort_.pos());
      return made;
    };
    Instr* top = make(Op::kTopK, Shape::Tuple({values, places}), sort_.operand(key_),
                      TopKAttrs{.k = k_, .largest = is_descending_});
    for (auto [slice, operand] : slices_) {
      bool is_key = operand == key_;
      Instr* part = make(Op::kGetTupleElement, is_key ? values : places, top,
                         TupleIndexAttrs{is_key ? 0 : 1});
      if (part->shape().type() != slice->shape().type())
        part = make(Op::kConvert, slice->shape(), part, {});
      bool is_root = computation.root() == slice;
      computation.ReplaceUses(slice, part);
      if (is_root) computation.set_root(part);
    }
    for (auto [slice, operand] : slices_) computation.Remove(slice);
    std::vector<Instr*> parts(sort_.users().begin(), sort_.users().end());
    for (Instr* part : parts) computation.Remove(part);
    computation.Remove(&sort_);
  }

 private:
  bool FindSlices(Instr& whole, size_t operand) {
    for (Instr* slice : whole.users()) {
      int64_t k = FirstOf(*slice);
      if (k == 0 || (k_ != 0 && k != k_) || slice->has_extras()) return false;
      k_ = k;
      slices_.emplace_back(slice, operand);
    }
    return 2 * k_ <= dims_.back();
  }

  Instr& sort_;
  Dims dims_;
  size_t key_ = 0;
  bool is_descending_ = false;
  int64_t k_ = 0;
  std::vector<std::pair<Instr*, size_t>> slices_;
};

bool TryTopK(Instr& sort, DecisionLog& log) {
  if (!IsSortable(sort) || sort.has_extras() || sort.is_control_predecessor()) return false;
  FirstElements first(sort);
  if (!first.Find()) return false;
  log.Add({.pass = "fuse",
           .rule = "sort.first-elements",
           .subject = LabelOf(sort),
           .origins = sort.origins()});
  first.Take();
  return true;
}

// ---- keys that are computed

// Whether what a comparison computes from one element can be computed for a whole array.
bool IsElementwise(const Instr& value) {
  std::vector<const Instr*> open = {&value};
  std::unordered_map<const Instr*, bool> seen;
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (!seen.emplace(instr, true).second) continue;
    bool known =
        instr->op() == Op::kParameter || instr->op() == Op::kConstant ||
        (instr->info().Is(kElementwise) && instr->called().empty() && instr->operand_count() > 0);
    if (!known || !IsPlainArray(instr->shape()) || instr->shape().rank() != 0) return false;
    for (const Instr* operand : instr->operands()) open.push_back(operand);
  }
  return true;
}

// Sorts by computed keys: first the keys, then the operands, of which the results are taken.
class Rewriter {
 public:
  Rewriter(Instr& sort, std::vector<ComparedKey> keys)
      : sort_(sort), computation_(*sort.parent()), keys_(std::move(keys)) {}

  void Run() {
    std::vector<Instr*> operands;
    for (const ComparedKey& key : keys_) operands.push_back(Array(key.value));
    std::vector<Shape> shapes;
    for (Instr* operand : sort_.operands()) operands.push_back(operand);
    for (const Instr* operand : operands) shapes.push_back(Plain(operand->shape()));
    Instr* sorted = Make(Op::kSort, Shape::Tuple(shapes), operands, sort_.attrs());
    sorted->set_called({Less(operands)});
    std::vector<Instr*> results;
    for (size_t k = 0; k < sort_.operand_count(); ++k) {
      size_t part = keys_.size() + k;
      results.push_back(Make(Op::kGetTupleElement, shapes[part], {sorted},
                             TupleIndexAttrs{static_cast<int64_t>(part)}));
    }
    Instr* value =
        sort_.shape().IsTuple() ? Make(Op::kTuple, sort_.shape(), results, {}) : results[0];
    bool is_root = computation_.root() == &sort_;
    computation_.ReplaceUses(&sort_, value);
    if (is_root) computation_.set_root(value);
    computation_.Remove(&sort_);
  }

 private:
  static Shape Plain(const Shape& shape) { return Shape::Array(shape.type(), shape.dims()); }

  Instr* Make(Op op, const Shape& shape, std::vector<Instr*> operands, Attrs attrs) {
    Instr* made =
        computation_.Append(op, shape, std::move(operands), std::move(attrs), sort_.name());
    made->set_origins(sort_.origins());
    made->set_pos(sort_.pos());
    return made;
  }

  Instr* Array(const Instr* value) {
    auto known = arrays_.find(value);
    if (known != arrays_.end()) return known->second;
    Shape shape = Shape::Array(value->shape().type(), sort_.operand(0)->shape().dims());
    Instr* made = nullptr;
    if (value->op() == Op::kParameter) {
      made = sort_.operand(static_cast<size_t>(value->attrs<ParameterAttrs>().number / 2));
    } else if (value->op() == Op::kConstant) {
      made = Make(Op::kConstant, value->shape(), {}, value->attrs());
      made = Make(Op::kBroadcast, shape, {made}, DimensionsAttrs{});
    } else {
      std::vector<Instr*> operands;
      for (const Instr* operand : value->operands()) operands.push_back(Array(operand));
      made = Make(value->op(), shape, std::move(operands), value->attrs());
    }
    arrays_.emplace(value, made);
    return made;
  }

  // The keys are compared one after the other.
  Computation* Less(const std::vector<Instr*>& operands) {
    Builder b(*computation_.module(), "by_keys");
    std::vector<Instr*> parameters;
    for (const Instr* operand : operands)
      for (int side = 0; side < 2; ++side)
        parameters.push_back(b.Parameter(Shape::Scalar(operand->shape().type())));
    Instr* less = nullptr;
    for (size_t k = keys_.size(); k-- > 0;) {
      Instr *x = Alike(b, parameters[2 * k], k), *y = Alike(b, parameters[2 * k + 1], k);
      bool plain = keys_[k].order == KeyOrder::kPlain || !IsReal(x->shape().type());
      CompareType type = plain ? CompareType::kNone : CompareType::kTotalOrder;
      auto compare = [&](CompareDirection direction) {
        return b.Append(Op::kCompare, {x, y}, CompareAttrs{direction, type});
      };
      Instr* own = compare(keys_[k].is_descending ? CompareDirection::kGt : CompareDirection::kLt);
      less = less == nullptr ? own : b.Or(own, b.And(compare(CompareDirection::kEq), less));
    }
    Result<Computation*> made = b.Finish(less);
    TOK_CHECK(made.ok(), "the computation of a sort");
    made.value()->is_public = false;
    return made.value();
  }

  Instr* Alike(Builder& b, Instr* x, size_t k) {
    if (keys_[k].order != KeyOrder::kNumbers) return x;
    ElementType type = x->shape().type();
    Instr* zero = b.Scalar(type, 0);
    Instr* nan = b.Scalar(type, std::numeric_limits<double>::quiet_NaN());
    Instr* number = b.Select(b.Compare(x, zero, CompareDirection::kEq), zero, x);
    return b.Select(b.Compare(x, x, CompareDirection::kNe), nan, number);
  }

  Instr& sort_;
  Computation& computation_;
  std::vector<ComparedKey> keys_;
  std::unordered_map<const Instr*, Instr*> arrays_;
};

bool TryPrepare(Instr& sort, DecisionLog& log) {
  if (!IsSortable(sort) || sort.has_extras() || sort.is_control_predecessor() || KeysOf(sort))
    return false;
  std::optional<std::vector<ComparedKey>> keys = ComparedKeysOf(*sort.called(0));
  if (!keys) return false;
  for (const ComparedKey& key : *keys)
    if (!IsElementwise(*key.value)) return false;
  log.Add({.pass = "fuse",
           .rule = "sort.computed-keys",
           .subject = LabelOf(sort),
           .origins = sort.origins(),
           .because = std::to_string(keys->size()) + " keys"});
  Rewriter(sort, std::move(*keys)).Run();
  return true;
}

}  // namespace

std::optional<std::vector<KeyOfSort>> KeysOf(const Instr& sort) {
  std::optional<std::vector<ComparedKey>> compared = ComparedKeysOf(*sort.called(0));
  if (!compared) return std::nullopt;
  std::vector<KeyOfSort> keys;
  for (const ComparedKey& key : *compared) {
    if (key.value->op() != Op::kParameter) return std::nullopt;
    auto operand = static_cast<size_t>(key.value->attrs<ParameterAttrs>().number / 2);
    if (operand >= sort.operand_count() ||
        sort.operand(operand)->shape().type() != key.value->shape().type())
      return std::nullopt;
    keys.push_back({operand, key.order, key.is_descending});
  }
  return keys;
}

bool CountsAlong(const Instr& instr, int64_t dimension) {
  if (!instr.shape().IsArray() || !IsInteger(instr.shape().type()) ||
      InfoOf(instr.shape().type()).bits < 8)
    return false;
  if (dimension < 0) dimension += instr.shape().rank();
  if (instr.op() == Op::kIota) return instr.attrs<IotaAttrs>().dimension == dimension;
  return instr.op() == Op::kBroadcast && instr.operand(0)->op() == Op::kIota &&
         instr.operand(0)->shape().rank() == 1 &&
         instr.attrs<DimensionsAttrs>().dimensions == Dims{dimension};
}

bool IsForRuntime(const Instr& instr, const Machine& machine) {
  if (machine.is_gpu()) return false;
  if (HasLibraryFunction(instr)) return true;
  if (instr.op() == Op::kSort) return IsSortable(instr) && KeysOf(instr).has_value();
  return instr.op() == Op::kTopK && IsTopK(instr);
}

void PrepareSorts(Module& module, DecisionLog& log, const Machine& machine) {
  if (machine.is_gpu()) return;
  for (size_t i = 0, count = module.computations().size(); i < count; ++i) {
    Computation& computation = *module.computations()[i];
    bool changed = false;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kSort && (TryTopK(*instr, log) || TryPrepare(*instr, log)))
        changed = true;
    if (changed) computation.PutInOrder();
  }
}

}  // namespace tokamak
