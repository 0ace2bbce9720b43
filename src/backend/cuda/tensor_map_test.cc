#include "backend/cuda/tensor_map.h"

#include <cstring>

#include <gtest/gtest.h>

#include "backend/cuda/driver_gpu.h"
#include "kernel/builder.h"

namespace tokamak::cuda {
namespace {

struct Encoded {
  int type = 0, swizzle = 0;
  void* address = nullptr;
  std::vector<uint64_t> sizes, strides;
  std::vector<uint32_t> boxes;
};
Encoded g_encoded;

DriverApi ApiWithMaps() {
  DriverApi api;
  api.error_name = [](int, const char** text) { return *text = "CUDA_ERROR_INVALID_VALUE", 0; };
  api.error_text = [](int, const char** text) { return *text = "invalid argument", 0; };
  // Like the driver: takes multiples of 16 bytes only.
  api.encode_tensor_map = [](void* map, int type, uint32_t rank, void* address,
                             const uint64_t* sizes, const uint64_t* strides, const uint32_t* boxes,
                             const uint32_t* steps, int, int swizzle, int, int) {
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0) return kInvalidValue;
    for (uint32_t i = 0; i < rank; ++i)
      if (steps[i] != 1) return kInvalidValue;
    std::memset(map, 1, sizeof(TensorMap));
    g_encoded = {type,
                 swizzle,
                 address,
                 {sizes, sizes + rank},
                 {strides, strides + rank - 1},
                 {boxes, boxes + rank}};
    return 0;
  };
  return api;
}

TileCopy::Dimension Along(int64_t size, int64_t stride, int64_t box) {
  return {size, stride, box, kNoValue};
}

Kernel WithArgument(ScalarType type) {
  KernelBuilder b("k");
  b.Argument({.name = "x", .type = type, .access = Access::kRead, .size = 4096});
  return b.Finish();
}

TEST(TensorMaps, AreEncodedInBytes) {
  TileCopy copy;
  copy.swizzled = true;
  copy.dimensions = {Along(100, 1, 32), Along(7, 128, 5), Along(1, 0, 1)};
  Result<TensorMapForm> form = TensorMapFormOf(WithArgument(ScalarType::kF32), copy);
  ASSERT_TRUE(form.ok()) << form.error().message;
  DriverApi api = ApiWithMaps();
  TensorMap map;
  alignas(16) char memory[32];
  ASSERT_TRUE(EncodeTensorMap(api, form.value(), memory, "k", map).ok());
  EXPECT_EQ(g_encoded.type, 2);     // CU_TENSOR_MAP_DATA_TYPE_UINT32
  EXPECT_EQ(g_encoded.swizzle, 3);  // CU_TENSOR_MAP_SWIZZLE_128B
  EXPECT_EQ(g_encoded.address, memory);
  EXPECT_EQ(g_encoded.sizes, (std::vector<uint64_t>{100, 7, 1}));
  EXPECT_EQ(g_encoded.strides, (std::vector<uint64_t>{512, 16}));
  EXPECT_EQ(g_encoded.boxes, (std::vector<uint32_t>{32, 5, 1}));
  Status status = EncodeTensorMap(api, form.value(), memory + 4, "k", map);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kKernelLaunch);
}

TEST(TensorMaps, WhatTheDriverDoesNotEncode) {
  for (auto dimension :
       {Along(2, 0, 1), Along(int64_t{1} << 32, 16, 1), Along(2, int64_t{1} << 39, 1)}) {
    TileCopy copy;
    copy.dimensions = {Along(64, 1, 64), dimension};
    Result<TensorMapForm> form = TensorMapFormOf(WithArgument(ScalarType::kBF16), copy);
    ASSERT_FALSE(form.ok());
    EXPECT_EQ(form.error().code, ErrorCode::kCudaText);
  }
}

}  // namespace
}  // namespace tokamak::cuda
