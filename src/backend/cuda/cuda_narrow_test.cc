// Tests of the text of f16 and bf16 arithmetic. Where NVRTC is installed, it is also compiled.

#include <gtest/gtest.h>

#include "backend/cuda/cuda_text.h"
#include "backend/cuda/nvrtc.h"
#include "kernel/builder.h"
#include "kernel/verify.h"

namespace tokamak::cuda {
namespace {

using enum ScalarType;

// y = body(x, z) of 32 threads of 8 lanes, with both widened to f32.
template <typename Body>
std::string TextOf16(ScalarType type, Body&& body) {
  KernelBuilder b("k", Dialect::kGpu);
  auto argument = [&](const char* name, Access access) {
    return b.Argument({.name = name, .type = type, .access = access, .size = 256, .alignment = 16});
  };
  ArrayId x = argument("x", Access::kRead), z = argument("z", Access::kRead);
  ArrayId y = argument("y", Access::kWrite);
  b.For("t", LoopRole::kThread, b.Index(32), [&](Scalar t) {
    b.For("l", LoopRole::kVector, b.Index(8), [&](Scalar l) {
      Scalar at = t * b.Index(8) + l;
      b.Store(y, at, body(b.Load(x, at).As(kF32), b.Load(z, at).As(kF32)).As(type));
    });
  });
  Kernel kernel = b.Finish();
  EXPECT_TRUE(VerifyKernel(kernel).ok());
  Result<CudaSource> source = CudaText(kernel);
  EXPECT_TRUE(source.ok());
  if (Result<const Nvrtc*> nvrtc = Nvrtc::Open(); nvrtc.ok())
    for (const char* architecture : {"sm_80", "sm_90"}) {
      Result<CudaCode> code = nvrtc.value()->Compile(source.value(), architecture);
      EXPECT_TRUE(code.ok()) << Render(code.error()) << source.value().text;
    }
  return source.value().text.substr(source.value().text.find("__global__"));
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// One operation each, without f32.
TEST(CudaNarrow, OperationsOfTheType) {
  for (ScalarType type : {kBF16, kF16}) {
    std::string text = TextOf16(type, [&](Scalar x, Scalar z) {
      Scalar product = (x * z).As(type).As(kF32), sum = (product + x).As(type).As(kF32);
      return (sum - 1.5).As(type).As(kF32) * 0.5;
    });
    std::string prefix = type == kBF16 ? "Bf16" : "F16";
    for (const char* name : {"Mul(", "Add(", "Sub("}) EXPECT_TRUE(Has(text, prefix + name)) << text;
    EXPECT_TRUE(Has(text, type == kBF16 ? "0x3fc0" : "0x3e00")) << text;
    EXPECT_FALSE(Has(text, "float")) << text;
  }
}

TEST(CudaNarrow, OperandsOfExactOperations) {
  std::string text = TextOf16(kBF16, [](Scalar x, Scalar z) { return x * -z; });
  EXPECT_TRUE(Has(text, " ^ 0x8000")) << text;
  text = TextOf16(kBF16, [](Scalar x, Scalar z) { return x + AbsOf(z); });
  EXPECT_TRUE(Has(text, "Bf16Bits(")) << text;
  // A conversion of an operand of f16 would cost what it saves.
  text = TextOf16(kF16, [](Scalar x, Scalar z) { return x + AbsOf(z); });
  EXPECT_TRUE(Has(text, "F16FromF32(")) << text;
}

// A bf16 needs no correctly rounded f32 quotient; an f16 does.
TEST(CudaNarrow, Quotients) {
  std::string text = TextOf16(kBF16, [](Scalar x, Scalar z) { return x / z; });
  EXPECT_TRUE(Has(text, "Bf16Div(")) << text;
  text = TextOf16(kF16, [](Scalar x, Scalar z) { return x / z; });
  EXPECT_TRUE(Has(text, " / ")) << text;
}

TEST(CudaNarrow, OneRoundingStaysOne) {
  for (ScalarType type : {kBF16, kF16}) {
    std::string text = TextOf16(type, [](Scalar x, Scalar z) { return Fma(x, z, x); });
    EXPECT_TRUE(Has(text, "__fmaf_rn(")) << text;
    text = TextOf16(type, [](Scalar x, Scalar z) { return x * z + x; });
    EXPECT_TRUE(Has(text, "FromF32(")) << text;
    text = TextOf16(type, [](Scalar x, Scalar) { return x * 0.3; });
    EXPECT_TRUE(Has(text, "FromF32(")) << text;
  }
}

}  // namespace
}  // namespace tokamak::cuda
