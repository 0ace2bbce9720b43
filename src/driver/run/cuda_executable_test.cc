#include "driver/run/cuda_executable.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "driver/run/make_executable.h"
#include "text/read.h"

namespace tokamak {
namespace {

// Two kernels per iteration with a grid barrier between them; a horizontally fused launch before
// the loop.
constexpr std::string_view kLoop = R"(HloModule m
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}
condition {
  i = s32[] parameter(0)
  x = s32[40,256] parameter(1)
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  i = s32[] parameter(0)
  x = s32[40,256] parameter(1)
  zero = s32[] constant(0)
  s = s32[256] reduce(x, zero), dimensions={0}, to_apply=sum
  t = s32[40] reduce(x, zero), dimensions={1}, to_apply=sum
  ss = s32[40,256] broadcast(s), dimensions={1}
  tt = s32[40,256] broadcast(t), dimensions={0}
  u = s32[40,256] subtract(ss, tt)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT o = (s32[], s32[40,256]) tuple(next, u)
}
ENTRY main {
  i = s32[] constant(0)
  x = s32[40,256] parameter(0)
  r = (s32[], s32[40,256]) while(i, x), condition=condition, body=body
  ROOT y = s32[40,256] get-tuple-element(r), index=1
})";

bool Has(const Executable& executable, std::string_view rule) {
  return std::ranges::any_of(executable.compilation().log.all(),
                             [&](const Decision& decision) { return decision.rule == rule; });
}

std::vector<int32_t> ResultsOfLoop(const Executable& executable) {
  std::vector<int32_t> x(40 * 256), y(40 * 256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(i * i % 97) - 48;
  std::array<const void*, 1> inputs{x.data()};
  std::array<void*, 1> outputs{y.data()};
  Status status = executable.Run(inputs, outputs, {});
  EXPECT_TRUE(status.ok());
  return y;
}

std::shared_ptr<const Executable> CompiledLoop(const CompileOptions& options) {
  Result<std::unique_ptr<Module>> module = ReadHloText(kLoop, "loop.hlo");
  EXPECT_TRUE(module.ok());
  Result<std::shared_ptr<const Executable>> executable =
      CompileAndLoad(std::move(module.value()), options);
  EXPECT_TRUE(executable.ok());
  return executable.ok() ? executable.value() : nullptr;
}

// If the device rejects both the loop as one launch and kernels of several instructions, the
// program runs without either, and records report it.
TEST(CudaExecutable, FallsBackWhereAFormIsRejected) {
  CompileOptions options;
  options.backend = "sim-cuda";
  options.check_memory = false;  // it would prevent persistent loops
  std::shared_ptr<const Executable> plain = CompiledLoop(options);
  options.reject_launches = true;
  std::shared_ptr<const Executable> rejected = CompiledLoop(options);
  ASSERT_TRUE(plain != nullptr && rejected != nullptr);
  EXPECT_FALSE(Has(*plain, "device.separate-launches"));
  EXPECT_FALSE(Has(*plain, "device.unfused"));
  EXPECT_TRUE(Has(*rejected, "device.separate-launches"));
  EXPECT_TRUE(Has(*rejected, "device.unfused"));
  EXPECT_GT(rejected->Launches(), plain->Launches());
  EXPECT_EQ(ResultsOfLoop(*rejected), ResultsOfLoop(*plain));
}

}  // namespace
}  // namespace tokamak
