#include "backend/cuda/opened_library.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

TEST(OpenedLibrary, SaysWhatIsNotThere) {
  Result<OpenedLibrary> none = OpenedLibrary::Open("cuNone", "libcunone.so", "cunoneGet", 1);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNoDriver);
  EXPECT_TRUE(none.error().message.starts_with("cuNone is not there: "));
}

TEST(OpenedLibrary, SaysWhatIsTooOldOrMissing) {
  Result<OpenedLibrary> there = OpenedLibrary::Open("cuFFT", "libcufft.so", "cufftGetProperty", 1);
  if (!there.ok()) GTEST_SKIP() << there.error().message;
  Result<OpenedLibrary> old = OpenedLibrary::Open("cuFFT", "libcufft.so", "cufftGetProperty", 999);
  ASSERT_FALSE(old.ok());
  EXPECT_NE(old.error().message.find("needed is 999 or later"), std::string::npos);
  int (*function)() = nullptr;
  there.value().Find("cufftNothing", function);
  ASSERT_FALSE(there.value().missing().ok());
  EXPECT_EQ(there.value().missing().error().message, "cuFFT lacks cufftNothing");
}

}  // namespace
}  // namespace tokamak::cuda
