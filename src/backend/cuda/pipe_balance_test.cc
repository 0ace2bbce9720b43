#include "backend/cuda/pipe_balance.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "backend/cuda/cuda_text.h"
#include "backend/cuda/nvrtc.h"
#include "kernel/builder.h"
#include "kernel/formulas.h"

namespace tokamak::cuda {
namespace {

constexpr ScalarType kU32 = ScalarType::kU32;

// y[t] = make(x[t], x[t + 32]).
template <typename Make>
Kernel OfWords(Make&& make) {
  KernelBuilder b("words");
  ArrayId x = b.Argument({.name = "x", .type = kU32, .access = Access::kRead, .size = 64});
  ArrayId y = b.Argument({.name = "y", .type = kU32, .access = Access::kWrite, .size = 32});
  b.For("t", LoopRole::kThread, b.Index(32),
        [&](Scalar t) { b.Store(y, t, make(b.Load(x, t), b.Load(x, t + b.Index(32)))); });
  return b.Finish();
}

Scalar Random(Scalar x, Scalar y) {
  std::array<Scalar, 2> words = ThreefryWords({x, y}, {y, x});
  return words[0] ^ words[1];
}

TEST(PipeBalance, RandomBitsUseBothPipes) {
  Kernel kernel = OfWords(Random);
  PipeBalance balance = BalancePipes(kernel);
  EXPECT_GE(balance.sums.size(), 20u);
  // Of 20: each takes the time of two additions in the other pipe.
  EXPECT_GE(balance.rotations.size(), 2u);
  EXPECT_LE(balance.rotations.size(), 8u);
  for (ValueId id : balance.rotations) EXPECT_GT(RotatedBits(kernel, id), 0);
  Result<CudaSource> source = CudaText(kernel);
  ASSERT_TRUE(source.ok());
  EXPECT_NE(source.value().text.find("RotateByProduct("), std::string::npos);
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
  EXPECT_TRUE(nvrtc.value()->Compile(source.value(), "sm_90").ok());
}

TEST(PipeBalance, FewSumsStay) {
  Kernel kernel = OfWords([](Scalar x, Scalar y) {
    Scalar bits = x.Like(13), rest = x.Like(19);
    return ((x << bits) | (x >> rest)) ^ (x + y);
  });
  PipeBalance balance = BalancePipes(kernel);
  EXPECT_TRUE(balance.sums.empty());
  EXPECT_TRUE(balance.rotations.empty());
}

// Only shifts of one value by amounts that add up to 32.
TEST(PipeBalance, Rotations) {
  auto bits = [](int left, int right, bool of_one) {
    Kernel kernel = OfWords([&](Scalar x, Scalar y) {
      return (x << x.Like(left)) | ((of_one ? x : y) >> x.Like(right));
    });
    int found = 0;
    for (size_t i = 0; i < kernel.nodes.size(); ++i)
      found = std::max(found, RotatedBits(kernel, ValueId{static_cast<uint32_t>(i)}));
    return found;
  };
  EXPECT_EQ(bits(13, 19, true), 13);
  EXPECT_EQ(bits(31, 1, true), 31);
  EXPECT_EQ(bits(13, 18, true), 0);
  EXPECT_EQ(bits(13, 19, false), 0);
}

}  // namespace
}  // namespace tokamak::cuda
