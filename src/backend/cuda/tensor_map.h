#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/driver_api.h"
#include "kernel/kernel.h"
#include "support/result.h"

// Tensor maps: how the bulk copy engine (TMA) sees an argument of a kernel. A launch encodes them
// from its pointers and passes them by value, after the pointers.
namespace tokamak::cuda {

// Everything that a tensor map is encoded from, except the address.
struct TensorMapForm {
  struct Dimension {
    int64_t size = 0, stride = 0, box = 0, step = 1;  // elements
    bool operator==(const Dimension&) const = default;
  };
  size_t argument = 0;
  ScalarType type{};
  std::vector<Dimension> dimensions;  // innermost first
  bool swizzled = false, tf32 = false;
  bool operator==(const TensorMapForm&) const = default;
};

// The map of a copy. TK4120 if the driver cannot encode it.
Result<TensorMapForm> TensorMapFormOf(const Kernel& kernel, const TileCopy& copy);

// The arguments of the driver's cuTensorMapEncodeTiled but the address: innermost dimension first,
// strides in bytes and from dimension 1 on.
struct TensorMapArguments {
  int type = 0, swizzle = 0, promotion = 0;
  uint32_t rank = 0;
  std::array<uint64_t, TileCopy::kMaxRank> sizes{}, strides{};
  std::array<uint32_t, TileCopy::kMaxRank> boxes{}, steps{};
};

TensorMapArguments ArgumentsOf(const TensorMapForm& form);

// The driver's CUtensorMap.
struct alignas(64) TensorMap {
  std::array<uint64_t, 16> words;
};

// Requires api.encode_tensor_map. TK4110 if the driver rejects the address.
Status EncodeTensorMap(const DriverApi& api, const TensorMapForm& form, void* address,
                       const std::string& label, TensorMap& map);

}  // namespace tokamak::cuda
