#include "kernel/cluster.h"

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace tokamak {
namespace {

Kernel OfThreads(int64_t blocks, int64_t threads) {
  KernelBuilder b("threads", Dialect::kGpu);
  ArrayId y = b.Argument(
      {.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = blocks * threads});
  b.For("block", LoopRole::kGrid, b.Index(1), [&](Scalar) {
    b.For("block", LoopRole::kThread, b.Index(blocks), [&](Scalar block) {
      b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
        b.Store(y, block * b.Index(threads) + t, b.Constant(ScalarType::kF32, 0));
      });
    });
  });
  return b.Finish();
}

// A thread block within the hardware limit is not a cluster, even if it reaches the limit.
TEST(Cluster, ValuesOfNoBlock) {
  EXPECT_EQ(ClusterSizeOf(OfThreads(2, 64)), 1);
  EXPECT_EQ(ClusterSizeOf(OfThreads(2, kMaxThreadsPerBlock / 2)), 1);
  EXPECT_EQ(ClusterSizeOf(OfThreads(2, kMaxThreadsPerBlock)), 2);
  EXPECT_EQ(ClusterSizeOf(OfThreads(4, kMaxThreadsPerBlock / 2)), 4);
}

}  // namespace
}  // namespace tokamak
