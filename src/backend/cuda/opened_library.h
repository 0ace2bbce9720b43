#pragma once

#include <string>

#include "support/result.h"

// A shared library of NVIDIA and its functions, resolved by name.
namespace tokamak::cuda {

// A loaded library; never unloaded.
class OpenedLibrary {
 public:
  // `name`: "cuFFT"; `file`: "libcufft.so"; `property`: the function that returns its version.
  // Returns TK4201 if it is missing or older than `least`.
  static Result<OpenedLibrary> Open(const std::string& name, const std::string& file,
                                    const char* property, int least);

  // Resolves a function by its symbol. missing() reports the symbols that were not found.
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
