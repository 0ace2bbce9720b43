#pragma once

#include <string>

#include "backend/cuda/cuda_text.h"
#include "support/result.h"

// NVIDIA's runtime compiler: CUDA C++ text to a cubin.
namespace tokamak::cuda {

// A compiled kernel.
struct CudaCode {
  std::string cubin;
  std::string log;  // compiler messages, including registers and spills
  int registers = 0;
  int spilled_bytes = 0;
  int shared_bytes = 0;  // static shared memory
};

// NVRTC, loaded once per process (library_paths.h).
class Nvrtc {
 public:
  // Returns TK4122 if it is not available.
  static Result<const Nvrtc*> Open();

  // Compiles for one architecture ("sm_90"). Returns TK4121 with the log if the source does not
  // compile. `ptx`, if not null, receives the PTX.
  Result<CudaCode> Compile(const CudaSource& source, const std::string& architecture,
                           std::string* ptx = nullptr) const;
  int version() const { return version_; }  // 13000 for 13.0

 private:
  struct Functions;
  static Result<Nvrtc> Load();
  const Functions* functions_ = nullptr;
  int version_ = 0;
};

}  // namespace tokamak::cuda
