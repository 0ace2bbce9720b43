#include "gen/scatter_elements.h"

#include <algorithm>

namespace tokamak {
namespace {

bool IsAmongDims(const Dims& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

}  // namespace

std::string WhyNotScatterRegion(const FusedRegion& region) {
  if (region.roots.size() != 1 || region.roots[0]->op() != Op::kScatter)
    return "a scatter has no other roots";
  const Instr* old = region.roots[0]->operand(0);
  if (std::find(region.inputs.begin(), region.inputs.end(), old) != region.inputs.end())
    return "it reads the array that it overwrites";
  return "";
}

ScatterElements::ScatterElements(KernelBuilder& b, ElementEmitter& emitter, const Instr& scatter)
    : b_(b), emitter_(emitter), scatter_(scatter), attrs_(scatter.attrs<ScatterAttrs>()) {
  const Dims& update = scatter_.operand(2)->shape().dims();
  for (size_t d = 0; d < update.size(); ++d)
    (IsAmongDims(attrs_.update_window_dims, d) ? window_ : windows_).push_back(update[d]);
  extent_.assign(scatter_.shape().dims().size(), 1);
  for (size_t d = 0, next = 0; d < extent_.size(); ++d)
    if (!LacksWindowDim(d)) extent_[d] = window_[next++];
}

bool ScatterElements::WindowsMayPartlyOverlap() const {
  for (int64_t dimension : attrs_.scatter_dims_to_operand_dims) {
    auto d = static_cast<size_t>(dimension);
    if (extent_[d] > 1 && extent_[d] < scatter_.shape().dim(d)) return true;
  }
  return false;
}

bool ScatterElements::LacksWindowDim(size_t d) const {
  return IsAmongDims(attrs_.inserted_window_dims, d) || IsAmongDims(attrs_.input_batching_dims, d);
}

std::vector<Scalar> ScatterElements::Starts(const Coordinates& window_at) {
  std::vector<Scalar> starts(extent_.size());
  const Instr& indices = *scatter_.operand(1);
  auto vector_dim = static_cast<size_t>(attrs_.index_vector_dim);
  for (size_t i = 0; i < attrs_.scatter_dims_to_operand_dims.size(); ++i) {
    Coordinates at = window_at;
    if (vector_dim < static_cast<size_t>(indices.shape().rank()))
      at.insert(at.begin() + static_cast<int64_t>(vector_dim), b_.Index(static_cast<int64_t>(i)));
    starts[static_cast<size_t>(attrs_.scatter_dims_to_operand_dims[i])] =
        emitter_.At(indices, at)[0].As(ScalarType::kIndex);
  }
  return starts;
}

Scalar ScatterElements::IsInBounds(const std::vector<Scalar>& starts) {
  Scalar fits = b_.ConstantBits(ScalarType::kPred, 1);
  for (size_t d = 0; d < starts.size(); ++d) {
    if (!starts[d].ok()) continue;
    Scalar last = b_.Index(scatter_.shape().dim(d) - extent_[d]);
    fits = fits & (b_.Index(0) <= starts[d]) & (starts[d] <= last);
  }
  return fits;
}

size_t ScatterElements::BatchingDim(size_t i) const {
  auto vector_dim = static_cast<size_t>(attrs_.index_vector_dim);
  auto from = static_cast<size_t>(attrs_.scatter_indices_batching_dims[i]);
  return from > vector_dim ? from - 1 : from;
}

Scalar ScatterElements::BatchingIndex(const Coordinates& window_at, size_t i) const {
  return window_at[BatchingDim(i)];
}

std::vector<bool> ScatterElements::IsBatching() const {
  std::vector<bool> is_batching(windows_.size());
  for (size_t i = 0; i < attrs_.scatter_indices_batching_dims.size(); ++i)
    is_batching[BatchingDim(i)] = true;
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
    for (size_t i = 0; i < attrs_.input_batching_dims.size(); ++i)
      if (static_cast<size_t>(attrs_.input_batching_dims[i]) == d)
        offset = offset - BatchingIndex(window_at, i);
    inside = inside & (b_.Index(0) <= offset) & (offset < b_.Index(extent_[d]));
    if (!LacksWindowDim(d)) in_window.push_back(offset);
  }
  return in_window;
}

Scalar ScatterElements::IndexOf(const Coordinates& window_at, const std::vector<Scalar>& starts,
                                const Coordinates& in_window) {
  Coordinates at(extent_.size());
  for (size_t d = 0, next = 0; d < at.size(); ++d) {
    at[d] = LacksWindowDim(d) ? b_.Index(0) : in_window[next++];
    if (starts[d].ok()) at[d] = at[d] + starts[d];
  }
  for (size_t i = 0; i < attrs_.input_batching_dims.size(); ++i)
    at[static_cast<size_t>(attrs_.input_batching_dims[i])] = BatchingIndex(window_at, i);
  return Linearized(b_, at, scatter_.shape().dims());
}

std::vector<Scalar> ScatterElements::ClampedStarts(const std::vector<Scalar>& starts) {
  std::vector<Scalar> bounded = starts;
  for (size_t d = 0; d < starts.size(); ++d) {
    if (!starts[d].ok()) continue;
    Scalar last = b_.Index(scatter_.shape().dim(d) - extent_[d]);
    bounded[d] = LesserOf(GreaterOf(starts[d], b_.Index(0)), last);
  }
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
  Coordinates update;
  const Dims& update_dims = scatter_.operand(2)->shape().dims();
  for (size_t d = 0, next_in = 0, next_at = 0; d < update_dims.size(); ++d)
    update.push_back(IsAmongDims(attrs_.update_window_dims, d) ? in_window[next_in++]
                                                               : window_at[next_at++]);
  return emitter_.At(*scatter_.operand(2), update);
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
