#include "gen/scatter_elements.h"

#include <algorithm>

namespace tokamak {

std::string WhyNotScatterRegion(const FusedRegion& region) {
  if (region.roots.size() != 1 || region.roots[0]->op() != Op::kScatter)
    return "a scatter has no other roots";
  const Instr* old = region.roots[0]->operand(0);
  if (std::find(region.inputs.begin(), region.inputs.end(), old) != region.inputs.end())
    return "it reads the array that it overwrites";
  return "";
}

ScatterElements::ScatterElements(KernelBuilder& b, ElementEmitter& emitter, const Instr& scatter)
    : b_(b),
      emitter_(emitter),
      scatter_(scatter),
      indices_(*IndexMapOf(scatter, 1)),
      updates_(*IndexMapOf(scatter, 2)),
      windows_(updates_.IteratedSizes()),
      axes_(updates_.result_rank) {
  // The first term of an expression with a condition is the dimension of the array, the second one
  // its batching dimension.
  auto add = [&](const IndexExpr& expr) -> Axis& {
    std::span<const IndexTerm> terms = updates_.TermsOf(expr);
    Axis& axis = axes_[terms[0].variable];
    axis.start = expr.start;
    if (terms.size() > 1) axis.batching = terms[1].variable - updates_.result_rank;
    return axis;
  };
  extent_.assign(axes_.size(), 1);
  for (const IndexExpr& guard : updates_.guards) add(guard);
  for (const IndexExpr& expr : updates_.dims) {
    if (!expr.last) continue;  // numbers windows
    add(expr).in_window = window_.size();
    window_.push_back(*expr.last + 1);
    extent_[updates_.TermsOf(expr)[0].variable] = window_.back();
  }
}

bool ScatterElements::WindowsMayPartlyOverlap() const {
  for (size_t d = 0; d < axes_.size(); ++d)
    if (extent_[d] > 1 && axes_[d].start.Moves()) return true;
  return false;
}

std::vector<Scalar> ScatterElements::Starts(const Coordinates& window_at) {
  std::vector<Scalar> starts(axes_.size());
  for (size_t d = 0; d < axes_.size(); ++d) {
    const RunTimeStart& start = axes_[d].start;
    if (start.kind == RunTimeStart::Kind::kNone) continue;
    Coordinates iterated = window_at;
    iterated.push_back(b_.Index(start.component));
    Coordinates at = ReadCoordinates(indices_, Coordinates(axes_.size()), iterated);
    starts[d] = emitter_.At(*scatter_.operand(start.operand), at)[0].As(ScalarType::kIndex);
  }
  return starts;
}

Scalar ScatterElements::IsInBounds(const std::vector<Scalar>& starts) {
  Scalar fits = b_.ConstantBits(ScalarType::kPred, 1);
  for (size_t d = 0; d < starts.size(); ++d)
    if (starts[d].ok())
      fits = fits & (b_.Index(0) <= starts[d]) & (starts[d] <= b_.Index(axes_[d].start.last));
  return fits;
}

std::vector<bool> ScatterElements::IsBatching() const {
  std::vector<bool> is_batching(windows_.size());
  for (const Axis& axis : axes_)
    if (axis.batching) is_batching[*axis.batching] = true;
  return is_batching;
}

int64_t ScatterElements::batch_count() const {
  std::vector<bool> is_batching = IsBatching();
  int64_t count = 1;
  for (size_t d = 0; d < windows_.size(); ++d)
    if (is_batching[d]) count *= windows_[d];
  return count;
}

Coordinates ScatterElements::WindowCoordinates(Scalar batch, Scalar linear_in_batch) {
  std::vector<bool> is_batching = IsBatching();
  Dims dims[2];
  for (size_t d = 0; d < windows_.size(); ++d) dims[is_batching[d] ? 0 : 1].push_back(windows_[d]);
  Coordinates of[2] = {Delinearized(b_, batch, dims[0]),
                       Delinearized(b_, linear_in_batch, dims[1])},
              all;
  for (size_t d = 0, next[2] = {0, 0}; d < windows_.size(); ++d) {
    int which = is_batching[d] ? 0 : 1;
    all.push_back(of[which][next[which]++]);
  }
  return all;
}

Coordinates ScatterElements::CoordinatesInWindow(const Coordinates& window_at,
                                                 const std::vector<Scalar>& starts,
                                                 const Coordinates& at, Scalar& inside) {
  Coordinates in_window;
  for (size_t d = 0; d < at.size(); ++d) {
    Scalar offset = starts[d].ok() ? at[d] - starts[d] : at[d];
    if (axes_[d].batching) offset = offset - window_at[*axes_[d].batching];
    inside = inside & (b_.Index(0) <= offset) & (offset < b_.Index(extent_[d]));
    if (axes_[d].in_window) in_window.push_back(offset);
  }
  return in_window;
}

Scalar ScatterElements::IndexOf(const Coordinates& window_at, const std::vector<Scalar>& starts,
                                const Coordinates& in_window) {
  Coordinates at(axes_.size());
  for (size_t d = 0; d < at.size(); ++d) {
    const Axis& axis = axes_[d];
    at[d] = axis.in_window  ? in_window[*axis.in_window]
            : axis.batching ? window_at[*axis.batching]
                            : b_.Index(0);
    if (starts[d].ok()) at[d] = at[d] + starts[d];
  }
  return Linearized(b_, at, scatter_.shape().dims());
}

std::vector<Scalar> ScatterElements::ClampedStarts(const std::vector<Scalar>& starts) {
  std::vector<Scalar> bounded = starts;
  for (size_t d = 0; d < starts.size(); ++d)
    if (starts[d].ok())
      bounded[d] = LesserOf(GreaterOf(starts[d], b_.Index(0)), b_.Index(axes_[d].start.last));
  return bounded;
}

Scalar ScatterElements::FirstIndex(const Coordinates& window_at,
                                   const std::vector<Scalar>& starts) {
  return IndexOf(window_at, starts, Coordinates(window_.size(), b_.Index(0)));
}

void ScatterElements::Combine(const Coordinates& window_at, const std::vector<Scalar>& starts,
                              const Coordinates& in_window) {
  Scalar index = IndexOf(window_at, starts, in_window);
  Store(index, CombineElements(Old(index), UpdateAt(window_at, in_window)));
}

Element ScatterElements::UpdateAt(const Coordinates& window_at, const Coordinates& in_window) {
  Coordinates array(axes_.size());  // relative to the start of the window
  for (size_t d = 0; d < array.size(); ++d)
    if (axes_[d].in_window) array[d] = in_window[*axes_[d].in_window];
  return emitter_.At(*scatter_.operand(2), ReadCoordinates(updates_, array, window_at));
}

Element ScatterElements::Old(Scalar index) {
  const Computation& body = *scatter_.called(0);
  if (body.root() != body.parameter(0) && body.parameter(0)->users().empty())
    return ConstantElement(b_, scatter_.shape().type(), 0);
  return emitter_.ReadRoot(scatter_, index);
}

Element ScatterElements::CombineElements(const Element& old, const Element& update) {
  if (!emitter_.failure().empty()) return old;
  Element both[2] = {old, update};
  std::optional<std::vector<Element>> results =
      ApplyBody(b_, *scatter_.called(0), both, /*wide=*/false);
  if (results) return (*results)[0];
  emitter_.Fail("scatter: its computation has no scalar formula");
  return old;
}

void ScatterElements::Store(Scalar index, const Element& value) {
  if (emitter_.failure().empty()) emitter_.StoreLinear(scatter_, 0, index, value);
}

}  // namespace tokamak
