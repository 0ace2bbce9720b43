#pragma once

// Iteration over arrays by strides. Most data movement, and the loops of reductions and
// convolutions, iterate over a box of coordinates with an offset into each of several arrays:
//
//   offset = base + sum over d of coordinate[d] * strides[d]

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/shape.h"

namespace tokamak {

struct StridedView {
  int64_t base = 0;
  Dims strides;
};

// Row-major.
inline Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  return strides;
}

inline int64_t ProductOf(std::span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims) product *= d;
  return product;
}

// Advances `index` to the next coordinate of a box in row-major order; false after the last.
inline bool NextIndex(Dims& index, const Dims& dims) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

// Visits the box row by row, in row-major order: fn(offsets, count, steps) covers `count`
// coordinates whose offsets begin at `offsets` and advance by `steps`. Dimensions that all views
// traverse with a common stride are merged first, so a plain copy is a single row.
template <size_t N, typename Fn>
void ForEachRow(const Dims& dims, const std::array<StridedView, N>& views, Fn&& fn) {
  struct Axis {
    int64_t size;
    std::array<int64_t, N> steps;
  };
  std::vector<Axis> axes;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return;
    if (dims[d] == 1) continue;
    Axis axis{dims[d], {}};
    for (size_t v = 0; v < N; ++v) axis.steps[v] = views[v].strides[d];
    bool merges = !axes.empty();
    for (size_t v = 0; v < N && merges; ++v)
      merges = axes.back().steps[v] == axis.steps[v] * axis.size;
    if (merges) {
      axes.back() = Axis{axes.back().size * axis.size, axis.steps};
    } else {
      axes.push_back(axis);
    }
  }
  std::array<int64_t, N> offsets;
  for (size_t v = 0; v < N; ++v) offsets[v] = views[v].base;
  if (axes.empty()) {
    fn(offsets, int64_t{1}, std::array<int64_t, N>{});
    return;
  }
  const Axis inner = axes.back();
  axes.pop_back();
  std::vector<int64_t> index(axes.size(), 0);
  while (true) {
    fn(offsets, inner.size, inner.steps);
    size_t d = axes.size();
    while (d-- > 0) {
      for (size_t v = 0; v < N; ++v) offsets[v] += axes[d].steps[v];
      if (++index[d] < axes[d].size) break;
      for (size_t v = 0; v < N; ++v) offsets[v] -= axes[d].steps[v] * axes[d].size;
      index[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

// to[...] = from[...] over a box.
template <typename T>
void CopyStrided(const Dims& dims, const T* from, const StridedView& from_view, T* to,
                 const StridedView& to_view) {
  ForEachRow<2>(
      dims, {from_view, to_view},
      [&](const std::array<int64_t, 2>& at, int64_t count, const std::array<int64_t, 2>& step) {
        const T* source = from + at[0];
        T* target = to + at[1];
        if (step[0] == 1 && step[1] == 1) {
          std::copy_n(source, count, target);
        } else {
          for (int64_t i = 0; i < count; ++i) target[i * step[1]] = source[i * step[0]];
        }
      });
}

// Copies a box of `from` into a new row-major array.
template <typename T>
std::vector<T> ReadStrided(const Dims& dims, const T* from, const StridedView& view) {
  std::vector<T> to(static_cast<size_t>(ProductOf(dims)));
  CopyStrided(dims, from, view, to.data(), StridedView{0, StridesOf(dims)});
  return to;
}

// `dims` after a transpose: dimension i is the old dimension permutation[i].
inline Dims Permuted(const Dims& dims, const Dims& permutation) {
  Dims result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[i] = dims[static_cast<size_t>(permutation[i])];
  return result;
}

// The elements of a row-major array, transposed.
template <typename T>
std::vector<T> TransposeElements(std::span<const T> from, const Dims& dims,
                                 const Dims& permutation) {
  return ReadStrided(Permuted(dims, permutation), from.data(),
                     StridedView{0, Permuted(StridesOf(dims), permutation)});
}

}  // namespace tokamak
