#pragma once

// Dot products. Operands are first copied into contiguous order, so the inner loops run over
// adjacent elements. In the reference semantics, results of f32 and narrower types (and c64)
// accumulate in float, one product at a time in the order of the contracted indices. All others,
// and the oracle, accumulate in double, int64 or complex double. The sum is rounded to the result
// type once.

#include <complex>
#include <type_traits>

#include "interp/context.h"
#include "interp/results.h"
#include "interp/strided.h"
#include "interp/value.h"
#include "ir/attrs.h"

namespace tokamak {

template <typename T>
inline void MulAdd(T& sum, T a, T b) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    sum = static_cast<uint8_t>(sum | (a & b));
  } else if constexpr (std::is_same_v<T, int64_t>) {
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) +
                               static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else if constexpr (std::is_same_v<T, Complex> || std::is_same_v<T, std::complex<float>>) {
    // Written out because operator* of std::complex checks every product for NaN.
    sum = T(sum.real() + (a.real() * b.real() - a.imag() * b.imag()),
            sum.imag() + (a.real() * b.imag() + a.imag() * b.real()));
  } else {
    sum += a * b;
  }
}

// out[m, n] += sum over k of a[m, k] * b[k, n].
template <typename T>
void MultiplyMatrices(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = out + i * n;
    for (int64_t j = 0; j < k; ++j) {
      const T factor = a[i * k + j];
      const T* right = b + j * n;
      for (int64_t c = 0; c < n; ++c) MulAdd(row[c], factor, right[c]);
    }
  }
}

// The dimensions of a dot's result: batch, then the free dimensions of lhs, then of rhs.
Dims DotResultDims(const Dims& lhs, const Dims& rhs, const DotAttrs& attrs);

// The sums of a dot, not yet rounded, in the order of DotResultDims.
template <typename T>
std::vector<T> DotElements(std::span<const T> lhs, const Dims& lhs_dims, std::span<const T> rhs,
                           const Dims& rhs_dims, const DotAttrs& attrs);

// The sums of a convolution, not yet rounded, with the dimensions of the result.
template <typename T>
std::vector<T> ConvolutionElements(std::span<const T> input, const Dims& input_dims,
                                   std::span<const T> kernel, const Dims& kernel_dims,
                                   const ConvolutionAttrs& attrs, const Dims& result_dims);
Dims ConvolutionResultDims(const Dims& input, const Dims& kernel, const ConvolutionAttrs& attrs);

// Calls fn.template operator()<T>() with the accumulator type.
template <typename Fn>
Result<Value> DispatchSums(ElementType type, const Context& context, Fn&& fn) {
  if (context.mode() == NumericMode::kReference && RealPartOf(type) != ElementType::kF64) {
    if (IsReal(type)) return fn.template operator()<float>();
    if (IsComplex(type)) return fn.template operator()<std::complex<float>>();
  }
  return DispatchStorage(type, std::forward<Fn>(fn));
}

// Rounds the sums into an array of the instruction's type.
template <typename S>
Value RoundedArray(const Instr& instr, Dims dims, std::vector<S> sums, const Context& context) {
  using T =
      std::conditional_t<std::is_same_v<S, float>, double,
                         std::conditional_t<std::is_same_v<S, std::complex<float>>, Complex, S>>;
  ElementType type = instr.shape().type();
  if constexpr (std::is_same_v<S, T>) {
    for (T& sum : sums) sum = context.Round(type, sum);
    return Value::Array(ResultShape(instr, std::move(dims)), std::move(sums));
  } else {
    std::vector<T> wide(sums.begin(), sums.end());
    for (T& sum : wide) sum = context.Round(type, sum);
    return Value::Array(ResultShape(instr, std::move(dims)), std::move(wide));
  }
}

}  // namespace tokamak
