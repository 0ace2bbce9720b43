#pragma once

#include <string>

#include "backend/cuda/cuda_text.h"
#include "support/result.h"

namespace tokamak::cuda {

// What NVRTC made of a kernel.
struct CudaCode {
  std::string cubin;
  std::string log;  // what the compiler said, registers and spills among it
  int registers = 0;
  int spilled_bytes = 0;
  int team_bytes = 0;  // that its text declares
};

// NVRTC, opened once: where the loader finds it, in NVIDIA's Python packages, in /usr/local/cuda*.
class Nvrtc {
 public:
  // TK4122 when it is not there.
  static Result<const Nvrtc*> Open();

  // For one architecture, "sm_90". TK4121 with the log when the source does not compile. `ptx`, if
  // any, gets what the machine code was made of.
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
