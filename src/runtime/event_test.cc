#include "runtime/event.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

SharedError SomeError() {
  return std::make_shared<const Error>(MakeError(ErrorCode::kHostCall, "no"));
}

TEST(Event, FiresOnce) {
  Ref<Event> event = MakeRef<Event>();
  EXPECT_FALSE(event->HasFired());
  EXPECT_TRUE(event->Fire());
  EXPECT_TRUE(event->HasFired());
  EXPECT_EQ(event->error(), nullptr);
  EXPECT_FALSE(event->Fire(SomeError()));
  EXPECT_EQ(event->error(), nullptr);
}

TEST(Event, KeepsItsError) {
  Ref<Event> event = Event::Failed(SomeError());
  ASSERT_NE(event->error(), nullptr);
  EXPECT_EQ((*event->error())->message, "no");
  event->Wait();
}

TEST(Event, WaitersRunInOrderAndAfterwardsAtOnce) {
  Ref<Event> event = MakeRef<Event>();
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) event->Then([&order, i](const SharedError&) { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  event->Fire();
  event->Then([&order](const SharedError&) { order.push_back(3); });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Event, AWaiterMayDropTheLastHold) {
  Event* event = MakeRef<Event>().Detach();
  bool ran = false;
  event->Then([&ran, event](const SharedError&) {
    event->Release();
    ran = true;
  });
  event->AddRef();  // a reference for the thread that fires it
  event->Fire();
  event->Release();
  EXPECT_TRUE(ran);
}

// Every waiter runs exactly once, whether it is pushed before or after the event fires.
TEST(Event, FiringRacesWithWaiters) {
  for (int repetition = 0; repetition < 200; ++repetition) {
    Ref<Event> event = MakeRef<Event>();
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i)
          event->Then([&](const SharedError& error) { ran += error == nullptr ? 100 : 1; });
        event->Wait();
      });
    }
    threads.emplace_back([&] { event->Fire(SomeError()); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ran, 30);
  }
}

TEST(Event, ReadyIsShared) {
  EXPECT_TRUE(Event::Ready()->HasFired());
  EXPECT_EQ(Event::Ready().get(), Event::Ready().get());
}

}  // namespace
}  // namespace tokamak
