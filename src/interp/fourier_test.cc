#include "interp/fourier.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Compares with the defining sum for every length up to past the largest small factor.
TEST(Fourier, AgreesWithTheSum) {
  for (size_t n = 1; n < 80; ++n) {
    for (bool inverse : {false, true}) {
      std::vector<Complex> x(n), expected(n);
      for (size_t i = 0; i < n; ++i)
        x[i] =
            Complex(std::sin(3.0 * static_cast<double>(i)), std::cos(static_cast<double>(i * i)));
      for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < n; ++i) {
          double angle = 2 * std::numbers::pi * static_cast<double>(i * k % n) /
                         static_cast<double>(n) * (inverse ? 1 : -1);
          expected[k] += x[i] * Complex(std::cos(angle), std::sin(angle));
        }
      }
      FourierPlan(n, inverse).Transform(x);
      for (size_t k = 0; k < n; ++k)
        EXPECT_LT(std::abs(x[k] - expected[k]), 1e-12) << "n " << n << " k " << k;
    }
  }
}

}  // namespace
}  // namespace tokamak
