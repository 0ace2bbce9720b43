#include "interp/devices.h"

#include <thread>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

Devices::Values One(int64_t x) {
  return {Value::Scalar<int64_t>(ElementType::kS64, x)};
}

TEST(Devices, RendezvousInOrderOfMembers) {
  Devices devices(1, 2);
  Devices::RendezvousKey key{Op::kAllReduce, 0, {1, 0}};
  std::vector<int64_t> seen;
  auto run = [&](int64_t self) {
    for (int64_t i = 0; i < 200; ++i) {
      auto brought = devices.Rendezvous(key, self, One(self * 1000 + i));
      ASSERT_TRUE(brought.ok());
      EXPECT_EQ(brought.value()[0][0].IntAt(0), 1000 + i);
      EXPECT_EQ(brought.value()[1][0].IntAt(0), i);
    }
    devices.End(false);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

// Two devices waiting in different rendezvous and one that has ended: the waiting ones get an
// error.
TEST(Devices, NoDeviceWaitsForever) {
  Devices devices(1, 3);
  auto wait = [&](int64_t self, int64_t channel) {
    auto brought = devices.Rendezvous({Op::kAllReduce, channel, {0, 1}}, self, One(self));
    EXPECT_FALSE(brought.ok());
    devices.End(!brought.ok());
  };
  std::thread a(wait, 0, 1), b(wait, 1, 2);
  devices.End(false);
  a.join();
  b.join();
}

TEST(Devices, FailureWakesThoseWhoWait) {
  Devices devices(1, 2);
  std::thread waiting([&] { EXPECT_FALSE(devices.Take({Op::kSend, 1, {}}).ok()); });
  devices.End(true);
  waiting.join();
}

}  // namespace
}  // namespace tokamak
