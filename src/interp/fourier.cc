#include "interp/fourier.h"

#include <cmath>
#include <numbers>

#include "interp/complex_product.h"

namespace tokamak {
namespace {

// largest prime factor of the mixed-radix algorithm (chosen); larger ones use Bluestein's
constexpr size_t kLargestFactor = 31;

// e^(2 pi i numerator / denominator), each part correctly rounded or nearly so.
Complex UnitRoot(size_t numerator, size_t denominator) {
  long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(numerator) /
                      static_cast<long double>(denominator);
  return Complex(static_cast<double>(std::cos(angle)), static_cast<double>(std::sin(angle)));
}

}  // namespace

FourierPlan::FourierPlan(size_t length, bool inverse) : length_(length) {
  size_t rest = length;
  for (size_t factor = 2; factor <= kLargestFactor && rest > 1; ++factor) {
    while (rest % factor == 0) {
      factors_.push_back(factor);
      rest /= factor;
    }
  }
  auto root = [&](size_t numerator, size_t denominator) {
    Complex r = UnitRoot(numerator, denominator);
    return inverse ? r : std::conj(r);
  };
  if (rest > 1) {
    padded_ = 1;
    while (padded_ < 2 * length - 1) padded_ *= 2;
    inner_.emplace_back(padded_, false);
    inner_.emplace_back(padded_, true);
    chirp_.resize(length);
    // k^2 modulo 2N, computed incrementally: (k+1)^2 = k^2 + 2k + 1.
    size_t square = 0;
    for (size_t k = 0; k < length; ++k) {
      chirp_[k] = root(square, 2 * length);
      square = (square + 2 * k + 1) % (2 * length);
    }
    chirp_spectrum_.assign(padded_, Complex());
    for (size_t k = 0; k < length; ++k) {
      chirp_spectrum_[k] = std::conj(chirp_[k]);
      if (k > 0) chirp_spectrum_[padded_ - k] = std::conj(chirp_[k]);
    }
    inner_[0].Transform(chirp_spectrum_);
    return;
  }
  roots_.resize(length);
  for (size_t k = 0; k < length; ++k) roots_[k] = root(k, length);
  scratch_.resize(length);
}

// Decimation in time: transforms of every f-th element, combined in sums of f.
void FourierPlan::MixedRadix(const Complex* from, size_t stride, Complex* to, size_t length,
                             size_t depth) {
  if (length == 1) {
    *to = *from;
    return;
  }
  const size_t factor = factors_[depth], part = length / factor;
  for (size_t f = 0; f < factor; ++f)
    MixedRadix(from + f * stride, stride * factor, to + f * part, part, depth + 1);
  // The roots of this length are every (stride)-th of roots_.
  const size_t step = length_ / length;
  Complex sums[kLargestFactor], terms[kLargestFactor];
  for (size_t k = 0; k < part; ++k) {
    for (size_t f = 0; f < factor; ++f) terms[f] = Times(to[f * part + k], roots_[f * k * step]);
    if (factor == 2) {
      to[k] = terms[0] + terms[1];
      to[part + k] = terms[0] - terms[1];
      continue;
    }
    for (size_t q = 0; q < factor; ++q) {
      sums[q] = terms[0];
      for (size_t f = 1; f < factor; ++f)
        sums[q] += Times(terms[f], roots_[f * q % factor * part * step]);
    }
    for (size_t q = 0; q < factor; ++q) to[q * part + k] = sums[q];
  }
}

void FourierPlan::Bluestein(std::vector<Complex>& x) {
  std::vector<Complex> work(padded_);
  for (size_t k = 0; k < length_; ++k) work[k] = Times(x[k], chirp_[k]);
  inner_[0].Transform(work);
  for (size_t k = 0; k < padded_; ++k) work[k] = Times(work[k], chirp_spectrum_[k]);
  inner_[1].Transform(work);
  const double scale = 1 / static_cast<double>(padded_);
  for (size_t k = 0; k < length_; ++k) x[k] = Times(work[k] * scale, chirp_[k]);
}

void FourierPlan::Transform(std::vector<Complex>& x) {
  if (length_ <= 1) return;
  if (padded_ > 0) {
    Bluestein(x);
    return;
  }
  MixedRadix(x.data(), 1, scratch_.data(), length_, 0);
  x.swap(scratch_);
}

}  // namespace tokamak
