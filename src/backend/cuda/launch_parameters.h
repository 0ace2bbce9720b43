#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "backend/cuda/loaded_code.h"
#include "backend/cuda/tensor_map.h"

namespace tokamak::cuda {

// The parameters of a launch or of a kernel node, and the storage that they point to. The driver
// copies them before its call returns.
class LaunchParameters {
 public:
  LaunchParameters() = default;
  LaunchParameters(const LaunchParameters&) = delete;
  LaunchParameters& operator=(const LaunchParameters&) = delete;

  // The pointers must outlive it. Encodes the tensor maps of the code. TK4110 if an argument cannot
  // have one.
  Status Set(const DriverApi& api, const LoadedCode& code, std::span<void* const> pointers);
  // The only parameter: a table of pointers in device memory, at *table.
  void SetTable(void** table) { each_[0] = table; }
  void** data() { return each_.data(); }

 private:
  std::array<void*, 512> each_;
  std::vector<TensorMap> maps_;
};

}  // namespace tokamak::cuda
