// The scatter generator: updates are combined into the array in place, in the order of their
// indices. Elements of one window never meet, so that windows are cut into vectors and these are
// the grid; each walks through all windows:
//
//   for each vector of a window (the grid)
//     for each index vector (serial)
//       if its window lies inside: combine
//
// Windows that begin anywhere, and single elements, are one thread's work.

#include <algorithm>

#include "gen/element.h"
#include "gen/generator.h"

namespace tokamak {
namespace {

bool Contains(const Dims& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

class ScatterBuilder {
 public:
  ScatterBuilder(const Region& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        scatter_(*region.roots[0]),
        attrs_(scatter_.attrs<ScatterAttrs>()),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    FindDims();
    int64_t window = ProductOf(window_, 0, window_.size()), lanes = 1;
    if (!window_.empty())
      while (lanes < machine_.Lanes(32) && window_.back() % (2 * lanes) == 0) lanes *= 2;
    BuiltKernel built;
    bool apart = !WindowsShift();
    built.grid = apart ? window / lanes : 1;
    auto combine = [&](const Coordinates& batch, const std::vector<Scalar>& starts, Scalar w) {
      if (lanes == 1) return Combine(batch, starts, w);
      b_.For("l", LoopRole::kVector, b_.Index(lanes),
             [&](Scalar l) { Combine(batch, starts, w * b_.Index(lanes) + l); });
    };
    b_.For("g", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
      int64_t vectors = ProductOf(batch_, 0, batch_.size());
      b_.For("i", LoopRole::kSerial, b_.Index(vectors), [&](Scalar i) {
        Coordinates batch = Delinearized(b_, i, batch_);
        std::vector<Scalar> starts = Starts(batch);
        if (!emitter_.fault().empty()) return;
        b_.If(Fits(starts), [&] {
          if (apart) return combine(batch, starts, g);
          b_.For("w", LoopRole::kSerial, b_.Index(window / lanes),
                 [&](Scalar w) { combine(batch, starts, w); });
        });
      });
    });
    if (!emitter_.fault().empty()) return {std::nullopt, emitter_.fault()};
    built.kernel = b_.Finish();
    built.arguments = ArgumentsOf(region_);
    built.updates.emplace_back(built.arguments.size() - 1, scatter_.operand(0));
    FinishFacts(built, false);
    return {std::move(built), ""};
  }

 private:
  void FindDims() {
    const Dims& update = scatter_.operand(2)->shape().dims();
    for (size_t d = 0; d < update.size(); ++d)
      (Contains(attrs_.update_window_dims, d) ? window_ : batch_).push_back(update[d]);
    extent_.assign(scatter_.shape().dims().size(), 1);
    for (size_t d = 0, next = 0; d < extent_.size(); ++d)
      if (!IsOutsideOfWindow(d)) extent_[d] = window_[next++];
  }

  // Whether an element of one window may meet another element of another window: windows of several
  // elements begin anywhere along their dimension.
  bool WindowsShift() const {
    for (int64_t dimension : attrs_.scatter_dims_to_operand_dims) {
      auto d = static_cast<size_t>(dimension);
      if (extent_[d] > 1 && extent_[d] < scatter_.shape().dim(d)) return true;
    }
    return false;
  }

  bool IsOutsideOfWindow(size_t d) const {
    return Contains(attrs_.inserted_window_dims, d) || Contains(attrs_.input_batching_dims, d);
  }

  // The run-time index of each dimension of the array that has one; others are not ok().
  std::vector<Scalar> Starts(const Coordinates& batch) {
    std::vector<Scalar> starts(extent_.size());
    const Instr& indices = *scatter_.operand(1);
    auto vector_dim = static_cast<size_t>(attrs_.index_vector_dim);
    for (size_t i = 0; i < attrs_.scatter_dims_to_operand_dims.size(); ++i) {
      Coordinates at = batch;
      if (vector_dim < static_cast<size_t>(indices.shape().rank()))
        at.insert(at.begin() + static_cast<int64_t>(vector_dim), b_.Index(static_cast<int64_t>(i)));
      starts[static_cast<size_t>(attrs_.scatter_dims_to_operand_dims[i])] =
          emitter_.At(indices, at)[0].As(ScalarType::kIndex);
    }
    return starts;
  }

  Scalar Fits(const std::vector<Scalar>& starts) {
    Scalar fits = b_.ConstantBits(ScalarType::kPred, 1);
    for (size_t d = 0; d < starts.size(); ++d) {
      if (!starts[d].ok()) continue;
      Scalar last = b_.Index(scatter_.shape().dim(d) - extent_[d]);
      fits = fits & (b_.Index(0) <= starts[d]) & (starts[d] <= last);
    }
    return fits;
  }

  void Combine(const Coordinates& batch, const std::vector<Scalar>& starts, Scalar element) {
    Coordinates window = Delinearized(b_, element, window_), update, place(extent_.size());
    const Dims& update_dims = scatter_.operand(2)->shape().dims();
    for (size_t d = 0, in_window = 0, in_batch = 0; d < update_dims.size(); ++d)
      update.push_back(Contains(attrs_.update_window_dims, d) ? window[in_window++]
                                                              : batch[in_batch++]);
    for (size_t d = 0, next = 0; d < place.size(); ++d) {
      place[d] = IsOutsideOfWindow(d) ? b_.Index(0) : window[next++];
      if (starts[d].ok()) place[d] = place[d] + starts[d];
    }
    auto vector_dim = static_cast<size_t>(attrs_.index_vector_dim);
    for (size_t i = 0; i < attrs_.input_batching_dims.size(); ++i) {
      auto from = static_cast<size_t>(attrs_.scatter_indices_batching_dims[i]);
      place[static_cast<size_t>(attrs_.input_batching_dims[i])] =
          batch[from > vector_dim ? from - 1 : from];
    }
    Scalar index = Linearized(b_, place, scatter_.shape().dims());
    Element both[2] = {emitter_.ReadRoot(scatter_, index),
                       emitter_.At(*scatter_.operand(2), update)};
    if (!emitter_.fault().empty()) return;
    std::optional<std::vector<Element>> results =
        ApplyBody(b_, *scatter_.called(0), both, /*wide=*/false);
    if (!results) return emitter_.Fail("scatter: its computation has no formula");
    emitter_.StoreLinear(scatter_, 0, index, (*results)[0]);
  }

  const Region& region_;
  const Machine& machine_;
  const Instr& scatter_;
  const ScatterAttrs& attrs_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  Dims window_, batch_, extent_;  // extent_: of a window, per dimension of the array
};

}  // namespace

std::optional<std::string> WhyNoScatter(const Instr& scatter) {
  if (scatter.operand_count() != 3 || scatter.captures() > 0 || !scatter.shape().IsArray())
    return "scatter: of several arrays";
  ElementType type = scatter.shape().type();
  for (const Instr* operand : scatter.operands())
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0)
      return "scatter: of an empty array";
  const Computation& body = *scatter.called(0);
  if (scatter.operand(0)->shape().type() != type || scatter.operand(2)->shape().type() != type ||
      body.parameters().size() != 2)
    return "scatter: of mixed types";
  KernelBuilder b("probe");
  std::vector<Element> arguments;
  for (const Instr* parameter : body.parameters()) {
    if (!parameter->shape().IsArray() || parameter->shape().type() != type)
      return "scatter: its computation takes other types";
    arguments.push_back(ConstantElement(b, type, 1));
  }
  if (!ApplyBody(b, body, arguments, false)) return "scatter: its computation has no formula";
  return std::nullopt;
}

BuildOutcome BuildScatter(const Region& region, const Machine& machine, const std::string& name) {
  if (region.roots.size() != 1 || region.roots[0]->op() != Op::kScatter)
    return {std::nullopt, "a scatter has no other roots"};
  const Instr* old = region.roots[0]->operand(0);
  if (std::find(region.inputs.begin(), region.inputs.end(), old) != region.inputs.end())
    return {std::nullopt, "it reads what it overwrites"};
  return ScatterBuilder(region, machine, name).Build();
}

}  // namespace tokamak
