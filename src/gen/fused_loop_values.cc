// The carried values of a fused loop: registers of a point, counters, loop invariants.

#include <algorithm>

#include "gen/fused_loop.h"

namespace tokamak {
namespace {

// Size of a dimension that a dynamic index may select registers along: a chain of selects. Chosen:
// bounds the code.
constexpr int64_t kMostChoices = 32;

// A counter that never wraps around, so its value is start + iteration * step.
std::optional<Induction> CounterOf(const WhileLoop& loop, size_t i,
                                   std::optional<int64_t> trip_count) {
  if (!trip_count) return std::nullopt;
  std::optional<Induction> found = InductionOf(loop, i);
  if (!found || !found->start || InfoOf(found->type).bits < 32) return std::nullopt;
  constexpr double kMaxInt32 = 2147483647;
  double last = static_cast<double>(*found->start) +
                static_cast<double>(*trip_count) * static_cast<double>(found->step);
  double first = static_cast<double>(*found->start);
  double low = IsSigned(found->type) ? -kMaxInt32 : 0;
  if (std::min(first, last) < low || std::max(first, last) > kMaxInt32) return std::nullopt;
  return found;
}

}  // namespace

OwnElements::OwnElements(const FusedLoopContext& context, const Shape& shape, const CarryForm& form)
    : shape_(shape), form_(form) {
  for (size_t d = 0; d < form.axes.size(); ++d)
    if (form.axes[d] < 0) own_.push_back(shape.dim(d));
  count_ = ProductOf(own_, 0, own_.size());
  int64_t element_stride = context.thread_map.elements;
  if (element_stride == 0 || count_ % element_stride != 0 || form.IsUniform()) return;
  element_stride_ = element_stride;
  count_ /= element_stride;
}

Coordinates OwnElements::At(FusedLoopContext& context, int64_t element) const {
  Coordinates at(form_.axes.size());
  if (is_distributed()) {
    KernelBuilder& b = context.b;
    Coordinates inner =
        Delinearized(b, context.thread_map.element + b.Index(element * element_stride_), own_);
    for (size_t d = 0, next = 0; d < at.size(); ++d)
      at[d] = form_.axes[d] < 0 ? inner[next++] : context.point[static_cast<size_t>(form_.axes[d])];
    return at;
  }
  for (size_t d = at.size(); d-- > 0;) {
    if (form_.axes[d] >= 0) {
      at[d] = context.point[static_cast<size_t>(form_.axes[d])];
      continue;
    }
    at[d] = context.b.Index(element % shape_.dim(d));
    element /= shape_.dim(d);
  }
  return at;
}

std::optional<int64_t> BehindElement(FusedLoopContext& context, Scalar index) {
  Range range = context.b.RangeOf(index - context.thread_map.element);
  if (!range.IsConstant()) return std::nullopt;
  return range.low;
}

Element OwnElements::FindDistributed(FusedLoopContext& context, const std::vector<Element>& values,
                                     const Coordinates& at) const {
  Coordinates inner;
  for (size_t d = 0; d < at.size(); ++d) {
    int axis = form_.axes[d];
    if (axis < 0)
      inner.push_back(at[d]);
    else if (at[d].id() != context.point[static_cast<size_t>(axis)].id())
      context.Fail("an element is needed at another point");
  }
  std::optional<int64_t> behind = BehindElement(context, Linearized(context.b, inner, own_));
  if (!behind || *behind < 0 || *behind % element_stride_ != 0 ||
      *behind / element_stride_ >= count_) {
    context.Fail("an element of another thread is needed");
    return values[0];
  }
  return values[static_cast<size_t>(*behind / element_stride_)];
}

Element OwnElements::Find(FusedLoopContext& context, const std::vector<Element>& values,
                          const Coordinates& at) const {
  if (is_distributed()) return FindDistributed(context, values, at);
  int64_t index = 0;
  size_t open = SIZE_MAX;  // the dimension with a dynamic coordinate
  int64_t open_stride = 0, stride = 1;
  for (size_t d = at.size(); d-- > 0;) {
    int axis = form_.axes[d];
    if (axis >= 0) {
      if (at[d].id() != context.point[static_cast<size_t>(axis)].id())
        context.Fail("an element is needed at another point");
      continue;
    }
    Range range = context.b.RangeOf(at[d]);
    if (range.IsConstant()) {
      index += range.low * stride;
    } else if (open == SIZE_MAX && shape_.dim(d) <= kMostChoices) {
      open = d;
      open_stride = stride;
    } else {
      context.Fail("an element is needed at a dynamic index");
    }
    stride *= shape_.dim(d);
  }
  if (!context.failure.empty()) return values[0];
  if (open == SIZE_MAX) return values[static_cast<size_t>(index)];
  Element found = values[static_cast<size_t>(index)];
  for (int64_t k = 1; k < shape_.dim(open); ++k) {
    const Element& other = values[static_cast<size_t>(index + k * open_stride)];
    Scalar here = at[open] == context.b.Index(k);
    for (size_t part : {0, 1})
      if (found[part].ok()) found[part] = Choose(here, other[part], found[part]);
  }
  return found;
}

CarriedValues::CarriedValues(FusedLoopContext& context, const WhileLoop& loop,
                             const std::vector<CarryForm>& forms, std::optional<int64_t> trip_count,
                             std::shared_ptr<ElementSource> first_values)
    : context_(context), forms_(forms), trip_count_(trip_count), first_(std::move(first_values)) {
  registers_.resize(loop.size());
  now_.resize(loop.size());
  // Compute all initial values before any is stored: they may read registers of the enclosing loop.
  std::vector<std::vector<Element>> first(loop.size());
  for (size_t i = 0; i < loop.size(); ++i) {
    own_.emplace_back(context, loop.init(i)->shape(), forms[i]);
    counters_.push_back(CounterOf(loop, i, trip_count));
    if (forms[i].kind != CarryKind::kHeld || counters_[i]) continue;
    context.held += own_[i].count();
    if (context.held > kMostHeld) {
      context.Fail("its carried values exceed the registers");
      return;
    }
    for (int64_t e = 0; e < own_[i].count(); ++e)
      first[i].push_back(first_->At(own_[i].At(context, e), i));
  }
  KernelBuilder& b = context.b;
  for (size_t i = 0; i < loop.size(); ++i) {
    for (size_t e = 0; e < first[i].size(); ++e) {
      std::string name = "c" + std::to_string(i);
      if (first[i].size() > 1) name += "_" + std::to_string(e);
      std::array<ArrayId, 2> own{};
      for (size_t part : {0, 1}) {
        if (!first[i][e][part].ok()) continue;
        own[part] = b.Local(name, first[i][e][part].type(), Space::kRegisters, 1);
        b.Store(own[part], b.Index(0), first[i][e][part]);
      }
      registers_[i].push_back(own);
    }
  }
  now_ = std::move(first);
}

void CarriedValues::Read(std::optional<Scalar> iteration) {
  iteration_ = iteration;
  for (size_t i = 0; i < registers_.size(); ++i)
    for (size_t e = 0; e < registers_[i].size(); ++e)
      for (size_t part : {0, 1})
        if (now_[i][e][part].ok())
          now_[i][e][part] = context_.b.Read(registers_[i][e][part], context_.b.Index(0));
}

Element CarriedValues::Counted(size_t i) const {
  KernelBuilder& b = context_.b;
  const Induction& counter = *counters_[i];
  Scalar iteration = iteration_ ? *iteration_ : b.Index(*trip_count_);
  Scalar value = iteration * b.Index(counter.step) + b.Index(*counter.start);
  return {value.As(ComputeType(counter.type)), {}};
}

Element CarriedValues::At(size_t i, const Coordinates& at) const {
  if (forms_[i].kind == CarryKind::kInvariant) return first_->At(at, i);
  if (counters_[i]) return Counted(i);
  if (forms_[i].kind == CarryKind::kStacked || registers_[i].empty()) {
    context_.Fail("it reads a value that it stacks");
    return first_->At(at, i);
  }
  return own_[i].Find(context_, now_[i], at);
}

bool CarriedValues::HoldsUniformArray() const {
  for (size_t i = 0; i < registers_.size(); ++i)
    if (IsHeld(i) && !forms_[i].axes.empty() && forms_[i].IsUniform()) return true;
  return false;
}

void CarriedValues::Store(size_t i, const std::vector<Element>& values) {
  for (size_t e = 0; e < registers_[i].size(); ++e)
    for (size_t part : {0, 1})
      if (values[e][part].ok())
        context_.b.Store(registers_[i][e][part], context_.b.Index(0), values[e][part]);
}

}  // namespace tokamak
