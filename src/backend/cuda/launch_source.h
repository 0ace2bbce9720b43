#pragma once

#include "backend/cuda/gpu.h"

namespace tokamak::cuda {

// A launch in CUDA C++, and how it gets its pointers.
struct LaunchSource {
  enum class Pointers : uint8_t {
    kOneByOne,   // parameters of their own
    kParameter,  // all in one parameter, by value
    kMemory,     // in memory of the device, which the only parameter points to
  };
  CudaSource source;
  Pointers pointers{};
  int64_t grid = 0;
  size_t arguments = 0;
  bool is_loop = false, has_condition = false;
  int64_t side_by_side = 0;  // of a loop: teams that may run at the same time
};

// The name follows from what the launch does: launches of one name do the same, and where their
// kernels come from is not in their texts.
std::string LaunchName(const LaunchForm& form);
Result<LaunchSource> SourceOf(const LaunchForm& form, const std::string& name);

}  // namespace tokamak::cuda
