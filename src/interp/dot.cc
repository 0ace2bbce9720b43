// dot, scaled-dot: measured cost about 0.6 ns per multiply-add of reals.

#include <algorithm>

#include "interp/contraction.h"
#include "interp/evaluators.h"

namespace tokamak {
namespace {

bool Contains(const Dims& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
}

Dims FreeDims(size_t rank, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (size_t d = 0; d < rank; ++d)
    if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(static_cast<int64_t>(d));
  return free;
}

Dims Joined(const Dims& a, const Dims& b, const Dims& c) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// Elements of a block share one scale: along dimension d, operand[d] / scale[d] adjacent elements.
template <typename T>
void ScaleBlocks(std::vector<T>& elements, const Dims& dims, const Value& scale) {
  std::vector<T> factors = ElementsAs<T>(scale);
  if (scale.shape().rank() != static_cast<int64_t>(dims.size())) {
    for (T& e : elements) e *= factors[0];
    return;
  }
  Dims strides = StridesOf(scale.dims()), index(dims.size(), 0);
  size_t at = 0;
  if (elements.empty()) return;
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t block = std::max<int64_t>(1, dims[d] / std::max<int64_t>(1, scale.dims()[d]));
      offset += std::min(index[d] / block, scale.dims()[d] - 1) * strides[d];
    }
    elements[at++] *= factors[static_cast<size_t>(offset)];
  } while (NextIndex(index, dims));
}

}  // namespace

Dims DotResultDims(const Dims& lhs, const Dims& rhs, const DotAttrs& attrs) {
  return Joined(Permuted(lhs, attrs.lhs_batch),
                Permuted(lhs, FreeDims(lhs.size(), attrs.lhs_batch, attrs.lhs_contracting)),
                Permuted(rhs, FreeDims(rhs.size(), attrs.rhs_batch, attrs.rhs_contracting)));
}

template <typename T>
std::vector<T> DotElements(std::span<const T> lhs, const Dims& lhs_dims, std::span<const T> rhs,
                           const Dims& rhs_dims, const DotAttrs& attrs) {
  Dims lhs_free = FreeDims(lhs_dims.size(), attrs.lhs_batch, attrs.lhs_contracting);
  Dims rhs_free = FreeDims(rhs_dims.size(), attrs.rhs_batch, attrs.rhs_contracting);
  int64_t batch = ProductOf(Permuted(lhs_dims, attrs.lhs_batch));
  int64_t m = ProductOf(Permuted(lhs_dims, lhs_free)), n = ProductOf(Permuted(rhs_dims, rhs_free));
  int64_t k = ProductOf(Permuted(lhs_dims, attrs.lhs_contracting));
  std::vector<T> sums(static_cast<size_t>(batch * m * n));
  if (sums.empty() || k == 0) return sums;
  // A wide result iterates along n. A narrow one is transposed, so that its longer side, or else
  // the contracted dimension, is the inner loop.
  bool swap = n < 4 && m > n;
  std::vector<T> a =
      TransposeElements(lhs, lhs_dims,
                        swap ? Joined(attrs.lhs_batch, attrs.lhs_contracting, lhs_free)
                             : Joined(attrs.lhs_batch, lhs_free, attrs.lhs_contracting));
  std::vector<T> b =
      TransposeElements(rhs, rhs_dims,
                        swap ? Joined(attrs.rhs_batch, rhs_free, attrs.rhs_contracting)
                             : Joined(attrs.rhs_batch, attrs.rhs_contracting, rhs_free));
  std::vector<T> transposed(swap ? static_cast<size_t>(m * n) : 0);
  for (int64_t i = 0; i < batch; ++i) {
    const T *left = a.data() + i * m * k, *right = b.data() + i * k * n;
    T* out = sums.data() + i * m * n;
    if (!swap) {
      MultiplyMatrices(left, right, out, m, n, k);
      continue;
    }
    std::fill(transposed.begin(), transposed.end(), T{});
    MultiplyMatrices(right, left, transposed.data(), n, m, k);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) out[r * n + c] = transposed[static_cast<size_t>(c * m + r)];
  }
  return sums;
}
#define TOK_INSTANTIATE(T)                                                                 \
  template std::vector<T> DotElements(std::span<const T>, const Dims&, std::span<const T>, \
                                      const Dims&, const DotAttrs&);
TOK_INSTANTIATE(uint8_t)
TOK_INSTANTIATE(int64_t)
TOK_INSTANTIATE(uint64_t)
TOK_INSTANTIATE(double)
TOK_INSTANTIATE(Complex)
TOK_INSTANTIATE(float)
TOK_INSTANTIATE(std::complex<float>)
#undef TOK_INSTANTIATE

Result<Value> EvalDot(const Instr& instr, std::span<const Value> operands, Context& context) {
  const DotAttrs& attrs = instr.attrs<DotAttrs>();
  Dims dims = DotResultDims(operands[0].dims(), operands[1].dims(), attrs);
  TOK_RETURN_IF_ERROR(CheckFits(instr, instr.shape().type(), dims));
  return DispatchSums(instr.shape().type(), context, [&]<typename T>() -> Result<Value> {
    // A dot algorithm names the required precision; ours is never lower.
    std::vector<T> lhs = ElementsAs<T>(operands[0]), rhs = ElementsAs<T>(operands[1]);
    std::vector<T> sums = DotElements<T>(lhs, operands[0].dims(), rhs, operands[1].dims(), attrs);
    return RoundedArray(instr, std::move(dims), std::move(sums), context);
  });
}

Result<Value> EvalScaledDot(const Instr& instr, std::span<const Value> operands, Context& context) {
  const DotAttrs& attrs = instr.attrs<DotAttrs>();
  Dims dims = DotResultDims(operands[0].dims(), operands[1].dims(), attrs);
  TOK_RETURN_IF_ERROR(CheckFits(instr, instr.shape().type(), dims));
  return DispatchSums(instr.shape().type(), context, [&]<typename T>() -> Result<Value> {
    std::vector<T> lhs = ElementsAs<T>(operands[0]), rhs = ElementsAs<T>(operands[1]);
    ScaleBlocks(lhs, operands[0].dims(), operands[2]);
    ScaleBlocks(rhs, operands[1].dims(), operands[3]);
    std::vector<T> sums = DotElements<T>(lhs, operands[0].dims(), rhs, operands[1].dims(), attrs);
    return RoundedArray(instr, std::move(dims), std::move(sums), context);
  });
}

}  // namespace tokamak
