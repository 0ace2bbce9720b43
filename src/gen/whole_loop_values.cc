// The carried values of a fused loop: registers of a point, counters, loop invariants.

#include <algorithm>

#include "gen/whole_loop.h"

namespace tokamak {
namespace {

// Size of a dimension that a dynamic index may select registers along: a chain of selects. Chosen:
// bounds the code.
constexpr int64_t kMaxChoices = 32;

// A counter that never wraps around, so its value is start + iteration * step.
std::optional<Induction> CounterOf(const WhileLoop& loop, size_t i,
                                   std::optional<int64_t> trip_count) {
  if (!trip_count) return std::nullopt;
  std::optional<Induction> found = InductionOf(loop, i);
  if (!found || !found->start || InfoOf(found->type).bits < 32) return std::nullopt;
  // The greatest value of 32 bits, by definition of two's complement.
  constexpr double kMaxInt32 = 2147483647;
  double last = static_cast<double>(*found->start) +
                static_cast<double>(*trip_count) * static_cast<double>(found->step);
  double first = static_cast<double>(*found->start);
  double low = IsSigned(found->type) ? -kMaxInt32 : 0;
  if (std::min(first, last) < low || std::max(first, last) > kMaxInt32) return std::nullopt;
  return found;
}

}  // namespace

Coordinates WholeLoopContext::InPoint(const std::vector<int>& axes, const Coordinates& at) {
  Coordinates inner;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] < 0)
      inner.push_back(at[d]);
    else if (at[d].id() != point[static_cast<size_t>(axes[d])].id())
      Fail("an element is needed at another point");
  }
  return inner;
}

PointElements::PointElements(const WholeLoopContext& context, const Shape& shape,
                             const CarryForm& form)
    : shape_(shape), form_(form) {
  for (size_t d = 0; d < form.axes.size(); ++d)
    if (form.axes[d] < 0) own_.push_back(shape.dim(d));
  count_ = ProductOf(own_, 0, own_.size());
  int64_t element_stride = context.thread_map.elements_per_point;
  if (element_stride == 0 || count_ % element_stride != 0 || form.IsUniform()) return;
  element_stride_ = element_stride;
  count_ /= element_stride;
}

Coordinates PointElements::At(WholeLoopContext& context, int64_t element) const {
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

std::optional<int64_t> OffsetFromOwnElement(WholeLoopContext& context, Scalar index) {
  Range range = context.b.RangeOf(index - context.thread_map.element);
  if (!range.IsConstant()) return std::nullopt;
  return range.low;
}

Element PointElements::SelectDistributed(WholeLoopContext& context,
                                         const std::vector<Element>& values,
                                         const Coordinates& at) const {
  Coordinates inner = context.InPoint(form_.axes, at);
  std::optional<int64_t> offset = OffsetFromOwnElement(context, Linearized(context.b, inner, own_));
  if (!offset || *offset < 0 || *offset % element_stride_ != 0 ||
      *offset / element_stride_ >= count_) {
    context.Fail("an element of another thread is needed");
    return values[0];
  }
  return values[static_cast<size_t>(*offset / element_stride_)];
}

Element PointElements::SelectAt(WholeLoopContext& context, const std::vector<Element>& values,
                                const Coordinates& at) const {
  if (is_distributed()) return SelectDistributed(context, values, at);
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
    } else if (open == SIZE_MAX && shape_.dim(d) <= kMaxChoices) {
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
    found = Choose(here, other, found);
  }
  return found;
}

CarriedValues::CarriedValues(WholeLoopContext& context, const WhileLoop& loop,
                             const std::vector<CarryForm>& forms, std::optional<int64_t> trip_count,
                             std::shared_ptr<ElementSource> initial)
    : context_(context), forms_(forms), trip_count_(trip_count), initial_(std::move(initial)) {
  registers_.resize(loop.size());
  current_.resize(loop.size());
  // Compute all initial values before any is stored: they may read registers of the enclosing loop.
  std::vector<std::vector<Element>> values(loop.size());
  for (size_t i = 0; i < loop.size(); ++i) {
    own_.emplace_back(context, loop.init(i)->shape(), forms[i]);
    counters_.push_back(CounterOf(loop, i, trip_count));
    if (forms[i].kind != CarryKind::kHeld || counters_[i]) continue;
    context.register_elements += own_[i].count();
    if (context.register_elements > kMaxRegisterElements) {
      context.Fail("its carried values exceed the registers");
      return;
    }
    for (int64_t e = 0; e < own_[i].count(); ++e)
      values[i].push_back(initial_->At(own_[i].At(context, e), i));
  }
  KernelBuilder& b = context.b;
  for (size_t i = 0; i < loop.size(); ++i) {
    for (size_t e = 0; e < values[i].size(); ++e) {
      std::string name = "c" + std::to_string(i);
      if (values[i].size() > 1) name += "_" + std::to_string(e);
      ElementArrays own{};
      for (size_t component : {0, 1}) {
        if (!values[i][e][component].ok()) continue;
        own[component] = b.Local(name, values[i][e][component].type(), Space::kRegisters, 1);
        b.Store(own[component], b.Index(0), values[i][e][component]);
      }
      registers_[i].push_back(own);
    }
  }
  current_ = std::move(values);
}

void CarriedValues::ReadRegisters(std::optional<Scalar> iteration) {
  iteration_ = iteration;
  for (size_t i = 0; i < registers_.size(); ++i)
    for (size_t e = 0; e < registers_[i].size(); ++e)
      for (size_t component : {0, 1})
        if (current_[i][e][component].ok())
          current_[i][e][component] =
              context_.b.Read(registers_[i][e][component], context_.b.Index(0));
}

Element CarriedValues::CounterValue(size_t i) const {
  KernelBuilder& b = context_.b;
  const Induction& counter = *counters_[i];
  Scalar iteration = iteration_ ? *iteration_ : b.Index(*trip_count_);
  Scalar value = iteration * b.Index(counter.step) + b.Index(*counter.start);
  return {value.As(ComputeType(counter.type)), {}};
}

Element CarriedValues::At(size_t i, const Coordinates& at) const {
  if (forms_[i].kind == CarryKind::kInvariant) return initial_->At(at, i);
  if (counters_[i]) return CounterValue(i);
  if (forms_[i].kind == CarryKind::kStacked || registers_[i].empty()) {
    context_.Fail("it reads a value that it stacks");
    return initial_->At(at, i);
  }
  return own_[i].SelectAt(context_, current_[i], at);
}

bool CarriedValues::HasUniformArray() const {
  for (size_t i = 0; i < registers_.size(); ++i)
    if (InRegisters(i) && !forms_[i].axes.empty() && forms_[i].IsUniform()) return true;
  return false;
}

void CarriedValues::Store(size_t i, const std::vector<Element>& values) {
  for (size_t e = 0; e < registers_[i].size(); ++e)
    StoreElement(context_.b, registers_[i][e], context_.b.Index(0), values[e]);
}

}  // namespace tokamak
