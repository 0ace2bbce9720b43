// fft: complex to complex, real to half-complex and back, over the last dimensions.

#include "interp/evaluators.h"
#include "interp/fourier.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// Transforms every line along one dimension in place.
void TransformAlong(std::vector<Complex>& x, const Dims& dims, size_t along, bool inverse) {
  const int64_t length = dims[along], stride = StridesOf(dims)[along];
  if (x.empty() || length <= 1) return;
  FourierPlan plan(static_cast<size_t>(length), inverse);
  std::vector<Complex> line(static_cast<size_t>(length));
  const int64_t lines = static_cast<int64_t>(x.size()) / length;
  for (int64_t i = 0; i < lines; ++i) {
    Complex* start = x.data() + i / stride * stride * length + i % stride;
    for (int64_t k = 0; k < length; ++k) line[static_cast<size_t>(k)] = start[k * stride];
    plan.Transform(line);
    for (int64_t k = 0; k < length; ++k) start[k * stride] = line[static_cast<size_t>(k)];
  }
}

// Reconstructs the other half of the spectrum of real data: X[n - k...] = conj X[k...], where every
// transformed coordinate but the last is negated too.
std::vector<Complex> WholeSpectrum(std::span<const Complex> half, const Dims& half_dims,
                                   const Dims& dims, size_t first) {
  std::vector<Complex> whole(static_cast<size_t>(ProductOf(dims)));
  if (whole.empty() || half.empty()) return whole;
  Dims index(dims.size(), 0), strides = StridesOf(half_dims);
  size_t at = 0;
  const size_t last = dims.size() - 1;
  do {
    bool mirrored = index[last] >= half_dims[last];
    int64_t offset = 0;
    bool there = true;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t i = mirrored && d >= first ? (dims[d] - index[d]) % dims[d] : index[d];
      there = there && i < half_dims[d];
      offset += i * strides[d];
    }
    Complex value = there ? half[static_cast<size_t>(offset)] : Complex();
    whole[at++] = mirrored ? std::conj(value) : value;
  } while (NextIndex(index, dims));
  return whole;
}

void Scale(std::vector<Complex>& x, const Dims& dims, size_t first) {
  double count = 1;
  for (size_t d = first; d < dims.size(); ++d) count *= static_cast<double>(dims[d]);
  for (Complex& e : x) e /= count;
}

}  // namespace

Result<Value> EvalFft(const Instr& instr, std::span<const Value> operands, Context& context) {
  const FftAttrs& attrs = instr.attrs<FftAttrs>();
  const Value& operand = operands[0];
  Dims dims = operand.dims();
  const size_t first = dims.size() - attrs.length.size();
  std::vector<Complex> x;
  if (attrs.type == FftType::kIrfft) {
    for (size_t d = first; d < dims.size(); ++d) dims[d] = attrs.length[d - first];
    TOK_RETURN_IF_ERROR(CheckFits(instr, ElementType::kC128, dims));
    // The operand may have more or fewer coefficients than the length requires.
    Dims half = operand.dims();
    x = WholeSpectrum(operand.Data<Complex>(), half, dims, first);
  } else {
    x = ElementsAs<Complex>(operand);
  }
  const bool inverse = attrs.type == FftType::kIfft || attrs.type == FftType::kIrfft;
  for (size_t d = first; d < dims.size(); ++d) TransformAlong(x, dims, d, inverse);
  if (inverse) Scale(x, dims, first);
  ElementType type = instr.shape().type();
  if (attrs.type == FftType::kIrfft) {
    std::vector<double> real(x.size());
    for (size_t i = 0; i < x.size(); ++i) real[i] = context.Round(type, x[i].real());
    return Value::Array(ResultShape(instr, dims), std::move(real));
  }
  if (attrs.type == FftType::kRfft) {
    Dims half = dims;
    if (!half.empty()) half.back() = half.back() / 2 + (half.back() > 0 ? 1 : 0);
    x = ReadStrided(half, x.data(), StridedView{0, StridesOf(dims)});
    dims = half;
  }
  for (Complex& e : x) e = context.Round(type, e);
  return Value::Array(ResultShape(instr, dims), std::move(x));
}

}  // namespace tokamak
