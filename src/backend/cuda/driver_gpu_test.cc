// The device on a fake driver: memory is host memory, streams execute at once, and calls fail on
// request of the test.

#include "backend/cuda/driver_gpu.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace tokamak::cuda {
namespace {

size_t g_memory = size_t{1} << 30, g_allocated = 0;
int g_copy_result = 0, g_wait_result = 0, g_major = 9;

int Good() {
  return 0;
}

DriverApi PretendedDriver() {
  DriverApi api;
  api.supports = 13000;
  api.error_name = [](int, const char** text) { return *text = "CUDA_ERROR_OF_A_TEST", 0; };
  api.error_text = [](int, const char** text) { return *text = "as the test says", 0; };
  api.device_count = [](int* count) { return *count = 1, 0; };
  api.device = [](int* device, int number) { return *device = number, 0; };
  api.device_name = [](char* name, int, int) { return std::strcpy(name, "Pretended GPU"), 0; };
  api.device_memory = [](size_t* bytes, int) { return *bytes = g_memory, 0; };
  api.device_attribute = [](int* value, int attribute, int) {
    return *value = attribute == kAttributeMajor ? g_major : 0, 0;
  };
  api.retain_context = [](Handle* context, int) { return *context = nullptr, 0; };
  api.set_current = [](Handle) { return Good(); };
  api.create_stream = [](Handle*, unsigned) { return Good(); };
  api.allocate = [](Address* address, size_t bytes) {
    if (g_allocated + bytes > g_memory) return kOutOfDeviceMemory;
    g_allocated += bytes;
    *address = reinterpret_cast<uintptr_t>(std::aligned_alloc(256, bytes));
    return 0;
  };
  api.free = [](Address address) { return std::free(reinterpret_cast<void*>(address)), 0; };
  api.allocate_host = [](void** data, size_t bytes, unsigned) {
    return *data = std::malloc(bytes), 0;
  };
  api.free_host = [](void* data) { return std::free(data), 0; };
  api.copy_in = [](Address to, const void* from, size_t bytes, Handle) {
    return std::memcpy(reinterpret_cast<void*>(to), from, bytes), g_copy_result;
  };
  api.copy_out = [](void* to, Address from, size_t bytes, Handle) {
    return std::memcpy(to, reinterpret_cast<void*>(from), bytes), g_copy_result;
  };
  api.synchronize = [](Handle) { return g_wait_result; };
  api.stream_wait = [](Handle, Handle, unsigned) { return Good(); };
  api.create_event = [](Handle* event, unsigned) { return *event = &g_allocated, 0; };
  api.record = [](Handle, Handle) { return Good(); };
  api.query = [](Handle) { return g_wait_result; };
  api.wait = [](Handle) { return g_wait_result; };
  return api;
}

class DriverGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    g_allocated = 0;
    g_copy_result = g_wait_result = 0;
    g_major = 9;
    Result<std::unique_ptr<DriverGpu>> opened = DriverGpu::Open(api_, 0);
    ASSERT_TRUE(opened.ok()) << Render(opened.error());
    gpu_ = std::move(opened.value());
  }
  DriverApi api_ = PretendedDriver();
  std::unique_ptr<DriverGpu> gpu_;
};

TEST_F(DriverGpuTest, CopiesOfAllSizesGoThroughStaging) {
  for (size_t bytes :
       {size_t{1}, size_t{65536}, size_t{65537}, size_t{4} << 20, (size_t{9} << 20) + 5}) {
    std::vector<uint8_t> there(bytes), back(bytes, 0);
    std::iota(there.begin(), there.end(), uint8_t{7});
    DeviceMemory memory = DeviceMemory::Take(*gpu_, bytes, "test").value();
    ASSERT_TRUE(gpu_->CopyIn(memory.data(), there.data(), bytes).ok());
    ASSERT_TRUE(gpu_->CopyOut(back.data(), memory.data(), bytes).ok());
    EXPECT_EQ(there, back) << bytes;
    std::fill(back.begin(), back.end(), uint8_t{0});
    Ref<Event> event = MakeRef<Event>();
    gpu_->CopyOutThen(back.data(), memory.data(), bytes, event);
    event->Wait();
    EXPECT_EQ(event->error(), nullptr);
    EXPECT_EQ(there, back) << bytes;
  }
}

// A device error found by a wait poisons all later calls.
TEST_F(DriverGpuTest, ADeviceFaultIsSticky) {
  constexpr int kIllegalAddress = 700;
  g_wait_result = kIllegalAddress;
  Ref<Event> event = MakeRef<Event>();
  gpu_->FireWhenDone(event);
  event->Wait();
  ASSERT_NE(event->error(), nullptr);
  EXPECT_EQ((*event->error())->code, ErrorCode::kDeviceFault);
  g_wait_result = 0;
  int value = 0;
  Status status = gpu_->CopyIn(&value, &value, sizeof value);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kDeviceFault);
}

// A rejected call poisons nothing.
TEST_F(DriverGpuTest, ARejectionIsNotSticky) {
  int value = 0;
  DeviceMemory memory = DeviceMemory::Take(*gpu_, 4, "test").value();
  g_copy_result = 1;
  EXPECT_FALSE(gpu_->CopyIn(memory.data(), &value, sizeof value).ok());
  g_copy_result = 0;
  EXPECT_TRUE(gpu_->CopyIn(memory.data(), &value, sizeof value).ok());
}

TEST_F(DriverGpuTest, MemoryIsBounded) {
  Result<void*> much = gpu_->Allocate(size_t{2} << 30, "results of 'f'");
  ASSERT_FALSE(much.ok());
  EXPECT_EQ(much.error().code, ErrorCode::kDeviceMemory);
  EXPECT_LT(gpu_->MemoryStats().limit, int64_t{1} << 30);
}

TEST_F(DriverGpuTest, OldDevicesAreRejected) {
  g_major = 7;
  Result<std::unique_ptr<DriverGpu>> opened = DriverGpu::Open(api_, 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kNoDevice);
  EXPECT_EQ(DriverGpu::Open(api_, 1).error().code, ErrorCode::kNoDevice);
}

// wgmma and tensor maps need a Hopper GPU and its driver. Another form of the program may do.
TEST_F(DriverGpuTest, OtherDevicesHaveNoAsynchronousWork) {
  KernelBuilder b("async");
  ArrayId x =
      b.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 32});
  ArrayId to = b.Local("to", ScalarType::kF32, Space::kShared, 32, 128);
  ArrayId full = b.Mbarriers("full", 1, 1);
  b.For("t", LoopRole::kThread, b.Index(1), [&](Scalar) {
    TileCopy copy;
    copy.from = x;
    copy.to = to;
    copy.to_index = b.Index(0).id();
    copy.dimensions = {{32, 1, 32, b.Index(0).id()}};
    b.Arrive(full, b.Index(0), 128);
    b.Copy(full, b.Index(0), copy);
    b.Wait(full, b.Index(0), b.Index(0));
  });
  Kernel kernel = b.Finish();
  std::vector<LaunchForm> forms = {{"async", {{&kernel, 1}}}};
  for (int major : {9, 10}) {
    g_major = major;
    auto codes = DriverGpu::Open(api_, 0).value()->Load(forms);
    ASSERT_FALSE(codes.ok());
    EXPECT_EQ(codes.error().code, ErrorCode::kCudaText);
    EXPECT_NE(codes.error().message.find(major == 9 ? "sm_90a without cuTensorMapEncodeTiled"
                                                    : "asynchronous work on sm_100"),
              std::string::npos)
        << codes.error().message;
  }
}

// Each event fires once, for any number of threads and events, with pauses after which the
// completion thread sleeps.
TEST_F(DriverGpuTest, EventsOfSeveralThreadsFire) {
  constexpr int kThreads = 4, kTestRepetitions = 30, kEvents = 100;
  std::atomic<int> fired = 0;
  auto ask = [&] {
    for (int repetition = 0; repetition < kTestRepetitions; ++repetition) {
      Ref<Event> last;
      for (int i = 0; i < kEvents; ++i) {
        last = MakeRef<Event>();
        last->Then([&](const SharedError& error) { fired += error == nullptr ? 1 : 0; });
        gpu_->FireWhenDone(last);
      }
      last->Wait();
      if (repetition % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(ask);
  for (std::thread& thread : threads) thread.join();
  gpu_.reset();
  EXPECT_EQ(fired, kThreads * kTestRepetitions * kEvents);
}

}  // namespace
}  // namespace tokamak::cuda
