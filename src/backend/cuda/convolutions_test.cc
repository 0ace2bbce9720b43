#include "backend/cuda/convolutions.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cuda/simulated_convolution.h"

namespace tokamak::cuda {
namespace {

std::vector<float> Drawn(int64_t count, uint32_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    values.push_back(static_cast<float>(seed >> 8) / float{1 << 24} - 0.5F);
  }
  return values;
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST(Convolutions, GradientsAreThoseOfTheForwardOne) {
  Convolution c;
  c.batch = 2;
  c.inputs = 4;
  c.outputs = 6;
  c.groups = 2;
  c.space = {{.x = 7, .w = 3, .y = 4, .pad_low = 1, .pad_high = 1, .stride = 2},
             {.x = 6, .w = 2, .y = 4, .dilation = 2}};
  std::vector<float> x = Drawn(c.XCount(), 1), w = Drawn(c.WCount(), 2), dy = Drawn(c.YCount(), 3);
  std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
  Convolve(c, {x.data(), w.data(), y.data()});
  c.form = Convolution::Form::kBackwardData;
  Convolve(c, {dy.data(), w.data(), dx.data()});
  c.form = Convolution::Form::kBackwardFilter;
  Convolve(c, {x.data(), dy.data(), dw.data()});
  EXPECT_NEAR(Dot(y, dy), Dot(x, dx), 1e-4);
  EXPECT_NEAR(Dot(y, dy), Dot(w, dw), 1e-4);
}

TEST(Convolutions, AreWrittenWithAllThatMatters) {
  Convolution c;
  c.tf32 = true;
  c.batch = 32;
  c.inputs = c.outputs = 64;
  c.groups = 2;
  c.space = {{.x = 56, .w = 3, .y = 28, .pad_high = 1, .stride = 2},
             {.x = 56, .w = 3, .y = 56, .pad_low = 2, .pad_high = 2, .dilation = 2}};
  EXPECT_EQ(ToString(c),
            "f32 (tf32) forward 32 x 56x56 x 64, 3x3 to 28x56 x 64 in 2 groups; 0_1 by 2; 2_2 by "
            "1, dilated by 2");
}

// Without a GPU or cuDNN, the error states the reason.
TEST(Convolutions, TheLibraryOpensOrSaysWhyNot) {
  Result<Cudnn*> cudnn = Cudnn::Open();
  if (!cudnn.ok()) {
    EXPECT_NE(cudnn.error().message.find("cuDNN"), std::string::npos);
  }
}

}  // namespace
}  // namespace tokamak::cuda
