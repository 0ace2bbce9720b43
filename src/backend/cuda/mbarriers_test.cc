#include "backend/cuda/mbarriers.h"

#include <gtest/gtest.h>

#include "backend/cuda/cuda_text.h"
#include "kernel/builder.h"

namespace tokamak::cuda {
namespace {

constexpr int64_t kBlocks = 2, kThreads = 1024, kAll = kBlocks * kThreads;

struct Form {
  int64_t every = 1;           // every n-th thread stores
  int64_t storing = kThreads;  // threads of a block that may store
  bool reads_late = false;     // between the stores and the barrier
};

// Each thread stores to one half of shared memory; after a barrier, each reads what another stored.
Kernel Exchange(const Form& form) {
  KernelBuilder b("exchange", Dialect::kGpu);
  ArrayId out =
      b.Argument({.name = "out", .type = ScalarType::kF32, .access = Access::kWrite, .size = kAll});
  ArrayId halves = b.Local("halves", ScalarType::kF32, Space::kShared, 2 * kAll);
  ArrayId sum = b.Local("sum", ScalarType::kF32, Space::kRegisters, 1);
  b.For("block", LoopRole::kThread, b.Index(kBlocks), [&](Scalar block) {
    b.For("t", LoopRole::kThread, b.Index(kThreads), [&](Scalar t) {
      Scalar own = block * b.Index(kThreads) + t;
      b.Store(sum, b.Index(0), own.As(ScalarType::kF32));
      b.For("k", LoopRole::kSerial, b.Index(5), [&](Scalar k) {
        Scalar half = k % b.Index(2) * b.Index(kAll);
        Scalar stores = (t % b.Index(form.every) == b.Index(0)) & (t < b.Index(form.storing));
        Scalar value = b.Read(sum, b.Index(0));
        b.If(stores, [&] { b.Store(halves, half + own, value); });
        if (form.reads_late) b.Store(sum, b.Index(0), b.Read(halves, half + own));
        b.Barrier(BarrierScope::kBlock);
        Scalar other = b.Read(halves, half + b.Index(kAll - 1) - own);
        b.Store(sum, b.Index(0), value + other);
      });
      b.Store(out, own, b.Read(sum, b.Index(0)));
    });
  });
  return b.Finish();
}

TEST(MbarrierPlan, CountsBytesThatReachABlock) {
  Kernel all = Exchange({});
  std::optional<MbarrierPlan> mbarriers = MbarrierPlanOf(all);
  ASSERT_TRUE(mbarriers.has_value());
  EXPECT_EQ(mbarriers->bytes, std::vector<int64_t>{kAll * 4});
  Result<CudaSource> text = CudaText(all);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text.value().text.find("AwaitAll(mbarriers + (k & 1) + 0, k >> 1 & 1, 8192);"),
            std::string::npos);
  Kernel some = Exchange({.every = 4});
  mbarriers = MbarrierPlanOf(some);
  ASSERT_TRUE(mbarriers.has_value());
  EXPECT_EQ(mbarriers->bytes, std::vector<int64_t>{kAll});
}

TEST(MbarrierPlan, AWarpThatStoresNothingNeedsABarrier) {
  EXPECT_FALSE(MbarrierPlanOf(Exchange({.storing = kThreads / 2})).has_value());
}

TEST(MbarrierPlan, AReadAfterAStoreNeedsABarrier) {
  Kernel late = Exchange({.reads_late = true});
  EXPECT_FALSE(MbarrierPlanOf(late).has_value());
  Result<CudaSource> text = CudaText(late);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value().text.find("AwaitAll"), std::string::npos);
  EXPECT_NE(text.value().text.find("StoreToAll<2>"), std::string::npos);
}

}  // namespace
}  // namespace tokamak::cuda
