#include "backend/cuda/call_kernels.h"

#include <gtest/gtest.h>

#include "backend/cuda/nvrtc.h"

namespace tokamak::cuda {
namespace {

// Real and complex elements, single and double precision.
TEST(CallKernels, NvrtcTakesThem) {
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
  for (MatrixElement element : {MatrixElement::kF32, MatrixElement::kC128}) {
    for (size_t i = 0; i < kCallKernels; ++i) {
      CudaSource source = CallKernelText(static_cast<CallKernel>(i), element);
      Result<CudaCode> code = nvrtc.value()->Compile(source, "sm_90");
      ASSERT_TRUE(code.ok()) << source.name << ": " << Render(code.error());
      EXPECT_NE(code.value().cubin.find(source.name), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tokamak::cuda
