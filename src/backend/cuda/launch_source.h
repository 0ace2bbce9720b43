#pragma once

#include "backend/cuda/gpu.h"

// From a launch (gpu.h) to its CUDA C++ text and launch configuration.
namespace tokamak::cuda {

// The CUDA C++ text of a launch, and how it receives its pointers.
struct LaunchSource {
  enum class Pointers : uint8_t {
    kOneByOne,   // one parameter each
    kParameter,  // all in one parameter, by value
    kMemory,     // in device memory that the only parameter points to
  };
  CudaSource source;
  Pointers pointers{};
  int64_t grid = 0;
  size_t arguments = 0;
  bool is_loop = false, has_condition = false;
  int64_t side_by_side = 0;  // loops only: the number of blocks that may run concurrently
};

// A name derived from the contents: launches of the same name do the same. Names of the source
// program do not appear in the text.
std::string LaunchName(const LaunchForm& form);
Result<LaunchSource> SourceOf(const LaunchForm& form, const std::string& name);

}  // namespace tokamak::cuda
