#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "ir/attrs.h"

namespace tokamak {

// The outputs of a sliding window that read an input element through one tap of the window, along
// one dimension: outputs first_out, first_out + step_out ... (`count` of them) read inputs
// first_in, first_in + step_in ... Outputs that read padding, or a zero of the base dilation, are
// excluded.
struct TapOverlap {
  int64_t first_out = 0, step_out = 1, first_in = 0, step_in = 1, count = 0;
};

inline TapOverlap OverlapOf(const WindowDim& window, int64_t tap, int64_t input_size,
                            int64_t output_size) {
  // Output o reads position o * stride + offset of the dilated input.
  const int64_t stride = window.stride, base = window.base_dilation;
  const int64_t offset = tap * window.window_dilation - window.pad_low;
  const int64_t last_position = (input_size - 1) * base;
  TapOverlap overlap;
  if (input_size == 0) return overlap;
  int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  overlap.step_out = base / std::gcd(stride, base);
  overlap.step_in = overlap.step_out * stride / base;
  for (int64_t tries = 0; tries < overlap.step_out; ++tries, ++first)
    if ((first * stride + offset) % base == 0) break;
  if (last_position < offset || (first * stride + offset) % base != 0) return overlap;
  int64_t last = std::min((last_position - offset) / stride, output_size - 1);
  if (first > last) return overlap;
  overlap.first_out = first;
  overlap.first_in = (first * stride + offset) / base;
  overlap.count = (last - first) / overlap.step_out + 1;
  return overlap;
}

// The taps that read any input element, [first, second): a window may be far larger than its input.
inline std::pair<int64_t, int64_t> TapsInside(const WindowDim& window, int64_t input_size,
                                              int64_t output_size) {
  if (input_size == 0 || output_size == 0) return {0, 0};
  const int64_t dilation = window.window_dilation;
  const int64_t reach = (input_size - 1) * window.base_dilation + window.pad_low;
  const int64_t skipped = window.pad_low - (output_size - 1) * window.stride;
  int64_t first = skipped <= 0 ? 0 : (skipped + dilation - 1) / dilation;
  int64_t limit = reach < 0 ? 0 : std::min(window.size, reach / dilation + 1);
  return {std::min(first, limit), limit};
}

// The number of window positions along one dimension.
inline int64_t WindowedSize(const WindowDim& window, int64_t input_size) {
  int64_t dilated = input_size == 0 ? 0 : (input_size - 1) * window.base_dilation + 1;
  int64_t padded = dilated + window.pad_low + window.pad_high;
  int64_t extent = window.size == 0 ? 0 : (window.size - 1) * window.window_dilation + 1;
  return padded < extent || padded <= 0 ? 0 : (padded - extent) / window.stride + 1;
}

}  // namespace tokamak
