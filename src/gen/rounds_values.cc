// What a loop carries: registers of one place, counters, values that stay.

#include <algorithm>

#include "gen/rounds.h"

namespace tokamak {
namespace {

// Dimensions along which a place that is not known looks for an element.
constexpr int64_t kMostChoices = 32;

// A counter whose values are all its type's: start + round * step.
std::optional<Induction> CounterOf(const WhileLoop& loop, size_t i, std::optional<int64_t> rounds) {
  if (!rounds) return std::nullopt;
  std::optional<Induction> found = InductionOf(loop, i);
  if (!found || !found->start || InfoOf(found->type).bits < 32) return std::nullopt;
  constexpr double kFar = 2147483647;
  double last = static_cast<double>(*found->start) +
                static_cast<double>(*rounds) * static_cast<double>(found->step);
  double first = static_cast<double>(*found->start);
  double low = IsSigned(found->type) ? -kFar : 0;
  if (std::min(first, last) < low || std::max(first, last) > kFar) return std::nullopt;
  return found;
}

}  // namespace

OwnElements::OwnElements(const RoundsContext& context, const Shape& shape, const CarryForm& form)
    : shape_(shape), form_(form) {
  for (size_t d = 0; d < form.axes.size(); ++d)
    if (form.axes[d] < 0) own_.push_back(shape.dim(d));
  count_ = ProductOf(own_, 0, own_.size());
  int64_t apart = context.spread.elements;
  if (apart == 0 || count_ % apart != 0 || form.IsShared()) return;
  apart_ = apart;
  count_ /= apart;
}

Coordinates OwnElements::At(RoundsContext& context, int64_t element) const {
  Coordinates at(form_.axes.size());
  if (is_spread()) {
    KernelBuilder& b = context.b;
    Coordinates inner = Delinearized(b, context.spread.element + b.Index(element * apart_), own_);
    for (size_t d = 0, next = 0; d < at.size(); ++d)
      at[d] = form_.axes[d] < 0 ? inner[next++] : context.place[static_cast<size_t>(form_.axes[d])];
    return at;
  }
  for (size_t d = at.size(); d-- > 0;) {
    if (form_.axes[d] >= 0) {
      at[d] = context.place[static_cast<size_t>(form_.axes[d])];
      continue;
    }
    at[d] = context.b.Index(element % shape_.dim(d));
    element /= shape_.dim(d);
  }
  return at;
}

std::optional<int64_t> BehindElement(RoundsContext& context, Scalar index) {
  Range range = context.b.RangeOf(index - context.spread.element);
  if (!range.IsConstant()) return std::nullopt;
  return range.low;
}

Element OwnElements::FindSpread(RoundsContext& context, const std::vector<Element>& values,
                                const Coordinates& at) const {
  Coordinates inner;
  for (size_t d = 0; d < at.size(); ++d) {
    int axis = form_.axes[d];
    if (axis < 0)
      inner.push_back(at[d]);
    else if (at[d].id() != context.place[static_cast<size_t>(axis)].id())
      context.Fail("an element is needed at another place than its own");
  }
  std::optional<int64_t> behind = BehindElement(context, Linearized(context.b, inner, own_));
  if (!behind || *behind < 0 || *behind % apart_ != 0 || *behind / apart_ >= count_) {
    context.Fail("an element is needed that another thread has");
    return values[0];
  }
  return values[static_cast<size_t>(*behind / apart_)];
}

Element OwnElements::Find(RoundsContext& context, const std::vector<Element>& values,
                          const Coordinates& at) const {
  if (is_spread()) return FindSpread(context, values, at);
  int64_t index = 0;
  size_t open = SIZE_MAX;  // a dimension along which the coordinate is not known
  int64_t open_stride = 0, stride = 1;
  for (size_t d = at.size(); d-- > 0;) {
    int axis = form_.axes[d];
    if (axis >= 0) {
      if (at[d].id() != context.place[static_cast<size_t>(axis)].id())
        context.Fail("an element is needed at another place than its own");
      continue;
    }
    Range range = context.b.RangeOf(at[d]);
    if (range.IsConstant()) {
      index += range.low * stride;
    } else if (open == SIZE_MAX && shape_.dim(d) <= kMostChoices) {
      open = d;
      open_stride = stride;
    } else {
      context.Fail("an element is needed whose place is not known");
    }
    stride *= shape_.dim(d);
  }
  if (!context.fault.empty()) return values[0];
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

CarriedValues::CarriedValues(RoundsContext& context, const WhileLoop& loop,
                             const std::vector<CarryForm>& forms, std::optional<int64_t> rounds,
                             std::shared_ptr<ElementGiver> first_values)
    : context_(context), forms_(forms), rounds_(rounds), first_(std::move(first_values)) {
  registers_.resize(loop.size());
  now_.resize(loop.size());
  // All of them before any is stored: what is held elsewhere is read first.
  std::vector<std::vector<Element>> first(loop.size());
  for (size_t i = 0; i < loop.size(); ++i) {
    own_.emplace_back(context, loop.init(i)->shape(), forms[i]);
    counters_.push_back(CounterOf(loop, i, rounds));
    if (forms[i].kind != CarryKind::kHeld || counters_[i]) continue;
    context.held += own_[i].count();
    if (context.held > kMostHeld) {
      context.Fail("it carries more than registers hold");
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

void CarriedValues::Read(std::optional<Scalar> round) {
  round_ = round;
  for (size_t i = 0; i < registers_.size(); ++i)
    for (size_t e = 0; e < registers_[i].size(); ++e)
      for (size_t part : {0, 1})
        if (now_[i][e][part].ok())
          now_[i][e][part] = context_.b.Read(registers_[i][e][part], context_.b.Index(0));
}

Element CarriedValues::Counted(size_t i) const {
  KernelBuilder& b = context_.b;
  const Induction& counter = *counters_[i];
  Scalar round = round_ ? *round_ : b.Index(*rounds_);
  Scalar value = round * b.Index(counter.step) + b.Index(*counter.start);
  return {value.As(ComputeType(counter.type)), {}};
}

Element CarriedValues::At(size_t i, const Coordinates& at) const {
  if (forms_[i].kind == CarryKind::kStays) return first_->At(at, i);
  if (counters_[i]) return Counted(i);
  if (forms_[i].kind == CarryKind::kStacked || registers_[i].empty()) {
    context_.Fail("what it stacks is read by it, too");
    return first_->At(at, i);
  }
  return own_[i].Find(context_, now_[i], at);
}

bool CarriedValues::HoldsSharedArray() const {
  for (size_t i = 0; i < registers_.size(); ++i)
    if (IsHeld(i) && !forms_[i].axes.empty() && forms_[i].IsShared()) return true;
  return false;
}

void CarriedValues::Store(size_t i, const std::vector<Element>& values) {
  for (size_t e = 0; e < registers_[i].size(); ++e)
    for (size_t part : {0, 1})
      if (values[e][part].ok())
        context_.b.Store(registers_[i][e][part], context_.b.Index(0), values[e][part]);
}

}  // namespace tokamak
