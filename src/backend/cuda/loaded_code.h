#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/driver_gpu.h"

// Modules and functions loaded into a GPU; internal to the driver's device.

namespace tokamak::cuda {

// A module loaded from one cubin.
class LoadedModule {
 public:
  LoadedModule(const DriverApi& api, Handle context, Handle stream, Handle module)
      : api_(api), context_(context), stream_(stream), module_(module) {}
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  ~LoadedModule() {
    api_.set_current(context_);
    api_.synchronize(stream_);  // its kernels may still be running
    api_.unload(module_);
  }
  Handle handle() const { return module_; }

 private:
  const DriverApi& api_;
  Handle context_, stream_, module_;
};

class LoadedCode final : public LaunchCode {
 public:
  int registers() const override { return registers_; }

  std::shared_ptr<const LoadedModule> module;
  Handle function = nullptr;
  unsigned grid = 1, dynamic_bytes = 0;
  std::array<int, 3> threads{1, 1, 1};
  LaunchSource::Pointers pointers{};
  std::vector<TensorMapForm> maps;
  bool has_condition = false;  // loops only
  const std::string* label = nullptr;
  int registers_ = -1;
};

}  // namespace tokamak::cuda
