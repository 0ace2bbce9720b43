#pragma once

#include <string>

#include "support/result.h"

namespace tokamak::cuda {

// A library of NVIDIA that was opened, for ever.
class OpenedLibrary {
 public:
  // `name`: "cuFFT"; `file`: "libcufft.so"; `property`: its function that tells its version. TK4201
  // when it is not there or older than `least`.
  static Result<OpenedLibrary> Open(const std::string& name, const std::string& file,
                                    const char* property, int least);

  // A function by its name there. What is not found is told by missing().
  template <typename Function>
  void Find(const std::string& symbol, Function& function) {
    function = reinterpret_cast<Function>(Address(symbol));
  }
  Status missing() const;

 private:
  void* Address(const std::string& symbol);

  void* library_ = nullptr;
  std::string name_, missing_;
};

}  // namespace tokamak::cuda
