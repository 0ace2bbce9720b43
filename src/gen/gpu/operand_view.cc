#include "gen/gpu/operand_view.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "gen/dot_dimensions.h"

namespace tokamak::gpu {
namespace {

// Views between an operand and the array at most. Chosen: more than passes and programs leave.
constexpr size_t kMaxViews = 8;

// The strides of an array with dimensions `from` and these strides after a reshape to `to`; nullopt
// if they are not uniform.
std::optional<Dims> ReshapedStrides(const Dims& from, const Dims& strides, const Dims& to) {
  Dims reshaped(to.size(), 1);
  size_t next = from.size();     // dimensions of `from` that are left
  int64_t size = 1, stride = 1;  // what is left of adjacent dimensions of `from` that are as one
  for (size_t d = to.size(); d-- > 0;) {
    if (to[d] == 1) continue;
    if (size == 1) {
      while (next > 0 && from[next - 1] == 1) --next;
      if (next == 0) return std::nullopt;
      stride = strides[next - 1];
      int64_t outer = stride;  // the stride of the next dimension, if it is contiguous
      for (; next > 0 && (from[next - 1] == 1 || strides[next - 1] == outer); --next) {
        size *= from[next - 1];
        outer *= from[next - 1];
      }
    }
    if (size % to[d] != 0) return std::nullopt;
    reshaped[d] = stride;
    stride *= to[d];
    size /= to[d];
  }
  return reshaped;
}

std::optional<Dims> StridesBehind(const Instr& view, const Dims& strides) {
  switch (view.op()) {
    case Op::kReshape:
      return ReshapedStrides(view.operand(0)->shape().dims(), strides, view.shape().dims());
    case Op::kTranspose: {
      Dims moved;
      for (int64_t d : view.attrs<DimensionsAttrs>().dimensions)
        moved.push_back(strides[static_cast<size_t>(d)]);
      return moved;
    }
    default:
      return strides;
  }
}

int64_t StartOf(const Instr& slice, const Dims& strides) {
  const Dims& starts = slice.attrs<SliceAttrs>().starts;
  return std::inner_product(starts.begin(), starts.end(), strides.begin(), int64_t{0});
}

template <typename IsArray>
OperandView ViewOf(const Instr& operand, IsArray&& is_array) {
  std::vector<const Instr*> views;
  const Instr* array = &operand;
  for (; !is_array(*array); array = array->operand(0)) {
    if (!IsView(*array) || views.size() == kMaxViews) return {};
    views.push_back(array);
  }
  if (!IsPlainArray(array->shape())) return {};
  std::optional<Dims> strides = RowMajorStrides(array->shape().dims());
  int64_t start = 0;
  for (size_t i = views.size(); i-- > 0 && strides;) {
    if (views[i]->op() == Op::kSlice) start += StartOf(*views[i], *strides);
    strides = StridesBehind(*views[i], *strides);
  }
  return strides ? OperandView{array, std::move(*strides), start} : OperandView{};
}

}  // namespace

bool IsView(const Instr& instr) {
  if (instr.op() == Op::kReshape || instr.op() == Op::kTranspose)
    return IsPlainArray(instr.shape()) && IsPlainArray(instr.operand(0)->shape());
  if (instr.op() != Op::kSlice || !IsPlainArray(instr.operand(0)->shape())) return false;
  return std::ranges::all_of(instr.attrs<SliceAttrs>().strides,
                             [](int64_t stride) { return stride == 1; });
}

OperandView OperandViewOf(const FusedRegion& region, const Instr& operand) {
  return ViewOf(operand, [&](const Instr& instr) {
    return std::ranges::find(region.inputs, &instr) != region.inputs.end();
  });
}

OperandView OperandViewOf(const Instr& operand) {
  return ViewOf(operand, [](const Instr& instr) { return !IsView(instr); });
}

std::optional<RepeatedValue> RepeatedValueOf(const Instr& value) {
  bool is_merged = value.op() == Op::kReshape;
  const Instr& broadcast = is_merged ? *value.operand(0) : value;
  if (broadcast.op() != Op::kBroadcast || !IsPlainArray(broadcast.shape())) return std::nullopt;
  const Dims& sizes = broadcast.shape().dims();
  const Dims& kept = broadcast.attrs<DimensionsAttrs>().dimensions;
  RepeatedValue result{broadcast.operand(0), {}, {}, {&broadcast}};
  for (size_t d = 0; d < sizes.size(); ++d) {
    auto from = std::ranges::find(kept, static_cast<int64_t>(d));
    bool is_new = from == kept.end();
    // The new indices of a dimension follow it.
    if (is_new && is_merged && !result.times.empty() && sizes[d] != 1) {
      result.times.back() *= sizes[d];
    } else if (!is_new || sizes[d] != 1) {
      result.times.push_back(is_new ? sizes[d] : 1);
      result.from_dims.push_back(is_new ? -1 : from - kept.begin());
    }
  }
  if (is_merged) result.ops.insert(result.ops.begin(), &value);
  const Dims &from_sizes = result.from->shape().dims(), &all = value.shape().dims();
  if (result.times.size() != all.size()) return std::nullopt;
  for (size_t d = 0; d < all.size(); ++d) {
    int64_t from = result.from_dims[d];
    int64_t size = from < 0 ? 1 : from_sizes[static_cast<size_t>(from)];
    if (size * result.times[d] != all[d]) return std::nullopt;
  }
  return result;
}

}  // namespace tokamak::gpu
