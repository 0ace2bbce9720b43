#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "gpu/kernels/manifest.h"

// Access to the device through libcuda and libnvrtc, both loaded at run time.

namespace tokamak {

using Address = unsigned long long;

// The functions used, as declared in cuda.h and nvrtc.h of CUDA 12 and 13.
struct Cuda {
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*device_name)(char*, int, int);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*error_text)(int, const char**);
  int (*allocate)(Address*, size_t);
  int (*release)(Address);
  int (*to_device)(Address, const void*, size_t);
  int (*to_host)(void*, Address, size_t);
  int (*copy)(Address, Address, size_t, void*);
  int (*fill)(Address, unsigned char, size_t);
  int (*load)(void**, const void*);
  int (*function)(void**, void*, const char*);
  int (*get_attribute)(int*, int, void*);
  int (*set_attribute)(void*, int, int);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*synchronize)();
  int (*event_create)(void**, unsigned);
  int (*event_record)(void*, void*);
  int (*event_wait)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*encode_map)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                    const uint32_t*, int, int, int, int);
};
extern Cuda cuda;

struct Nvrtc {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(void*, int, const char* const*);
  int (*log_size)(void*, size_t*);
  int (*log)(void*, char*);
  int (*cubin_size)(void*, size_t*);
  int (*cubin)(void*, char*);
  int (*destroy)(void**);
};
extern Nvrtc nvrtc;

// Whether the libraries exist and have all of these functions.
bool OpenCuda();
bool OpenNvrtc();

// Whether a CUDA call succeeded; otherwise prints the error.
bool Ok(int status, const char* what);

struct alignas(64) TensorMap {
  uint64_t words[16];
};
// Encodes the map of an argument at an address; prints the reason and returns false on failure.
bool Encode(const Map& map, Address address, TensorMap& encoded);

struct Function {
  void* handle = nullptr;
  int registers = 0, local = 0;
};

// Compiles the kernels of a bundle, each file once.
class Compiler {
 public:
  explicit Compiler(std::string folder) : folder_(std::move(folder)) {}

  // Returns the kernel of a launch; prints the reason and returns false on failure.
  bool Get(const Step& step, Function& function);
  size_t count() const { return known_.size(); }

 private:
  std::string folder_;
  std::map<std::string, Function> known_;
};

}  // namespace tokamak
