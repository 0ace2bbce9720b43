#include "gen/dot_dimensions.h"

#include <algorithm>

namespace tokamak {
namespace {

Dims FreeDims(size_t rank, const Dims& batch, const Dims& contracting) {
  auto has = [](const Dims& dims, int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  Dims free;
  for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d)
    if (!has(batch, d) && !has(contracting, d)) free.push_back(d);
  return free;
}

}  // namespace

DotDimensions::DotDimensions(const Instr& dot)
    : attrs(dot.attrs<DotAttrs>()),
      lhs_dims(dot.operand(0)->shape().dims()),
      rhs_dims(dot.operand(1)->shape().dims()),
      lhs_free(FreeDims(lhs_dims.size(), attrs.lhs_batch, attrs.lhs_contracting)),
      rhs_free(FreeDims(rhs_dims.size(), attrs.rhs_batch, attrs.rhs_contracting)),
      m(SizeAlong(lhs_dims, lhs_free)),
      n(SizeAlong(rhs_dims, rhs_free)),
      k(SizeAlong(lhs_dims, attrs.lhs_contracting)),
      batch(SizeAlong(lhs_dims, attrs.lhs_batch)) {}

DotAttrs Exchanged(DotAttrs attrs) {
  std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
  std::reverse(attrs.precision.begin(), attrs.precision.end());
  if (attrs.algorithm) {
    std::swap(attrs.algorithm->lhs_type, attrs.algorithm->rhs_type);
    std::swap(attrs.algorithm->lhs_components, attrs.algorithm->rhs_components);
  }
  return attrs;
}

int64_t SizeAlong(const Dims& dims, const Dims& which) {
  int64_t size = 1;
  for (int64_t d : which) size *= dims[static_cast<size_t>(d)];
  return size;
}

Dims SizesAlong(const Dims& dims, const Dims& which) {
  Dims sizes;
  for (int64_t d : which) sizes.push_back(dims[static_cast<size_t>(d)]);
  return sizes;
}

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

std::optional<int64_t> LinearizedStride(const Dims& dims, const Dims& which) {
  return LinearizedStride(dims, RowMajorStrides(dims), which);
}

std::optional<int64_t> LinearizedStride(const Dims& dims, const Dims& strides, const Dims& which) {
  std::optional<int64_t> distance;
  int64_t next = 0;  // the stride that the dimension before must have
  for (auto it = which.rbegin(); it != which.rend(); ++it) {
    auto d = static_cast<size_t>(*it);
    if (dims[d] == 1) continue;
    if (!distance) {
      distance = strides[d];
    } else if (strides[d] != next) {
      return std::nullopt;
    }
    next = strides[d] * dims[d];
  }
  return distance.value_or(1);
}

}  // namespace tokamak
