#include "runtime/child_process.h"

#include <csignal>
#include <cstdlib>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr std::chrono::seconds kLong{30};

TEST(ChildProcess, SharesMemory) {
  SharedMemory memory(sizeof(int));
  ASSERT_NE(memory.data(), nullptr);
  auto set = [](void* data) { *static_cast<int*>(data) = 7; };
  EXPECT_EQ(RunInChild(set, memory.data(), kLong), "");
  EXPECT_EQ(*reinterpret_cast<int*>(memory.data()), 7);
}

TEST(ChildProcess, ReportsHowItEnds) {
  EXPECT_EQ(RunInChild([](void*) { std::raise(SIGSEGV); }, nullptr, kLong), "SIGSEGV");
  EXPECT_EQ(RunInChild([](void*) { std::raise(SIGKILL); }, nullptr, kLong), "signal 9");
  EXPECT_EQ(RunInChild([](void*) { _exit(3); }, nullptr, kLong), "it ended the process");
  auto forever = [](void*) {
    for (;;) pause();
  };
  EXPECT_EQ(RunInChild(forever, nullptr, std::chrono::milliseconds(10)), "it ran longer than 0 s");
}

}  // namespace
}  // namespace tokamak
