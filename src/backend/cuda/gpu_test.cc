#include "backend/cuda/gpu.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "backend/cuda/images.h"
#include "backend/cuda/launch_source.h"
#include "backend/cuda/nvrtc.h"
#include "backend/cuda/products.h"
#include "kernel/parse.h"

namespace tokamak::cuda {
namespace {

constexpr const char* kDouble = R"(kernel NAME {
  argument x: f32[8] read align 16
  argument y: f32[8] write align 16
  grid i < 8 {
    a: f32 = load x[i]
    b: f32 = a * f32(FACTOR)
    store y[i] = b
  }
})";

Kernel KernelOf(const std::string& name, const std::string& factor) {
  std::string text = kDouble;
  text.replace(text.find("NAME"), 4, name);
  text.replace(text.find("FACTOR"), 6, factor);
  Result<ParsedKernel> parsed = ParseKernel(text, "test");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : Render(parsed.error()));
  return std::move(parsed.value().kernel);
}

std::vector<float> Values(Gpu& gpu, const DeviceMemory& memory) {
  std::vector<float> values(8);
  EXPECT_TRUE(gpu.CopyOut(values.data(), memory.data(), 32).ok());
  return values;
}

TEST(SimulatedGpu, RunsKernelsInOrder) {
  Gpu& gpu = SimulatedGpu();
  Kernel twice = KernelOf("twice", "2"), thrice = KernelOf("thrice", "3");
  std::vector<LaunchForm> forms = {{"twice", {{&twice, 8}}}, {"both", {{&twice, 8}, {&thrice, 8}}}};
  auto codes = gpu.Load(forms);
  ASSERT_TRUE(codes.ok()) << Render(codes.error());
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  DeviceMemory memory[4];
  for (DeviceMemory& each : memory) each = std::move(DeviceMemory::Take(gpu, 32, "test").value());
  ASSERT_TRUE(gpu.CopyIn(memory[0].data(), x.data(), 32).ok());
  x.assign(8, 0);  // the caller may reuse it
  void* first[] = {memory[0].data(), memory[1].data()};
  ASSERT_TRUE(gpu.Launch(*codes.value()[0], first).ok());
  void* second[] = {memory[1].data(), memory[2].data(), memory[1].data(), memory[3].data()};
  ASSERT_TRUE(gpu.Launch(*codes.value()[1], second).ok());
  EXPECT_EQ(Values(gpu, memory[2])[7], 32);
  EXPECT_EQ(Values(gpu, memory[3])[7], 48);
}

TEST(SimulatedGpu, ReportsCompletion) {
  Gpu& gpu = SimulatedGpu();
  Ref<Event> done = MakeRef<Event>();
  gpu.FireWhenDone(done);
  done->Wait();
  EXPECT_EQ(done->error(), nullptr);
}

TEST(SimulatedGpu, ADeviceErrorIsReported) {
  Gpu& gpu = SimulatedGpu();
  Result<ParsedKernel> parsed = ParseKernel(R"(kernel far {
  argument x: f32[8] read align 16
  argument y: f32[4] write align 16
  grid i < 8 {
    a: f32 = load x[i]
    store y[i] = a
  }
})",
                                            "test");
  ASSERT_TRUE(parsed.ok()) << Render(parsed.error());
  std::vector<LaunchForm> forms = {{"far", {{&parsed.value().kernel, 8}}}};
  auto codes = gpu.Load(forms);
  ASSERT_TRUE(codes.ok());
  DeviceMemory x = DeviceMemory::Take(gpu, 32, "test").value();
  DeviceMemory y = DeviceMemory::Take(gpu, 32, "test").value();
  ASSERT_TRUE(gpu.Fill(x.data(), 0, 32).ok());
  void* pointers[] = {x.data(), y.data()};
  EXPECT_TRUE(gpu.Launch(*codes.value()[0], pointers).ok());
  Status status = gpu.Synchronize();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kKernelOutOfBounds);
  EXPECT_TRUE(gpu.Synchronize().ok());
}

// Row-major matrices are transposed column-major ones: lhs and rhs are swapped.
TEST(Products, AsTheLibraryHasThem) {
  MatrixProduct product;
  product.m = 2;
  product.n = 3;
  product.k = 4;
  product.lhs = {4, 1};
  product.rhs = {1, 4};  // transposed
  product.batch = {{5, 16, 24}, {2, 8, 12}};
  LtProduct lt = LtProductOf(product);
  EXPECT_TRUE(lt.first.is_transposed);
  EXPECT_EQ(lt.first.rows, 4);
  EXPECT_EQ(lt.first.columns, 3);
  EXPECT_FALSE(lt.second.is_transposed);
  EXPECT_EQ(lt.second.rows, 4);
  EXPECT_EQ(lt.second.columns, 2);
  EXPECT_EQ(lt.result.rows, 3);
  EXPECT_EQ(lt.batch, 10);
  EXPECT_TRUE(lt.outer.empty());
  product.batch = {{5, 16, 0}, {2, 8, 12}};
  lt = LtProductOf(product);
  EXPECT_EQ(lt.batch, 2);
  EXPECT_EQ(lt.outer.size(), 1u);
}

// Names depend on what launches compute.
TEST(LaunchSource, EqualKernelsAreOne) {
  Kernel x = KernelOf("x", "2"), y = KernelOf("y", "2"), z = KernelOf("z", "3");
  LaunchForm of_x{"x", {{&x, 8}}}, of_y{"y", {{&y, 8}}}, of_z{"z", {{&z, 8}}};
  EXPECT_EQ(LaunchName(of_x), LaunchName(of_y));
  EXPECT_NE(LaunchName(of_x), LaunchName(of_z));
  EXPECT_EQ(SourceOf(of_x, LaunchName(of_x)).value().source.text,
            SourceOf(of_y, LaunchName(of_y)).value().source.text);
}

class Images : public testing::Test {
 protected:
  void SetUp() override {
    if (Result<const Nvrtc*> nvrtc = Nvrtc::Open(); !nvrtc.ok())
      GTEST_SKIP() << nvrtc.error().message;
    char name[] = "/tmp/tokamak-images-test-XXXXXX";
    folder_ = mkdtemp(name);
    for (int i = 0; i < 20; ++i) {
      kernels_.push_back(KernelOf("kernel", std::to_string(i + 2)));
      LaunchForm form{"kernel", {{&kernels_.back(), 8}}};
      sources_.push_back(SourceOf(form, LaunchName(form)).value().source);
    }
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  std::string folder_;
  std::vector<Kernel> kernels_;
  std::vector<CudaSource> sources_;
};

TEST_F(Images, KernelsShareBatchesAndComeBackFromTheDisk) {
  DiskCache cache(folder_, 1 << 30);
  ImageOptions options;
  options.cache = &cache;
  Result<std::vector<KernelImage>> made = MakeImages(sources_, options);
  ASSERT_TRUE(made.ok()) << Render(made.error());
  std::set<const std::string*> cubins;
  for (size_t i = 0; i < sources_.size(); ++i) {
    cubins.insert(made.value()[i].cubin.get());
    EXPECT_NE(made.value()[i].cubin->find(sources_[i].name), std::string::npos);
  }
  EXPECT_LE(cubins.size(), 8u);  // kMostPrograms
  // Some of them, in another order.
  std::vector<CudaSource> some = {sources_[17], sources_[3], sources_[17]};
  Result<std::vector<KernelImage>> again = MakeImages(some, options);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again.value()[1].cubin, *made.value()[3].cubin);
  EXPECT_EQ(again.value()[0].cubin, again.value()[2].cubin);
}

TEST_F(Images, ADamagedEntryIsRebuilt) {
  DiskCache cache(folder_, 1 << 30);
  ImageOptions options;
  options.cache = &cache;
  std::vector<CudaSource> one = {sources_[0]};
  std::string cubin = *MakeImages(one, options).value()[0].cubin;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    std::ofstream(entry.path(), std::ios::app) << "x";
  Result<std::vector<KernelImage>> again = MakeImages(one, options);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again.value()[0].cubin, cubin);
}

}  // namespace
}  // namespace tokamak::cuda
