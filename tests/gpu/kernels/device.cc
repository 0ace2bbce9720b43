#include "gpu/kernels/device.h"

#include <cstdio>
#include <dlfcn.h>
#include <glob.h>
#include <vector>

namespace tokamak {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) std::printf("no %s\n", name);
  return function != nullptr;
}

bool Compile(const Step& step, const std::string& text, std::string& cubin) {
  void* program = nullptr;
  if (nvrtc.create(&program, text.c_str(), step.file.c_str(), 0, nullptr, nullptr) != 0)
    return false;
  const char* options[] = {"--gpu-architecture=sm_90a", "--fmad=false", "--std=c++17"};
  int status = nvrtc.compile(program, 3, options);
  size_t size = 0;
  if (status != 0) {
    nvrtc.log_size(program, &size);
    std::string log(size, ' ');
    nvrtc.log(program, log.data());
    std::printf("%s\n", log.c_str());
    return false;
  }
  nvrtc.cubin_size(program, &size);
  cubin.resize(size);
  status = nvrtc.cubin(program, cubin.data());
  nvrtc.destroy(&program);
  return status == 0;
}

}  // namespace

Cuda cuda;
Nvrtc nvrtc;

bool OpenCuda() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return false;
  return Find(library, "cuInit", cuda.init) && Find(library, "cuDeviceGet", cuda.device_get) &&
         Find(library, "cuDeviceGetName", cuda.device_name) &&
         Find(library, "cuDevicePrimaryCtxRetain", cuda.retain) &&
         Find(library, "cuCtxSetCurrent", cuda.set_current) &&
         Find(library, "cuGetErrorString", cuda.error_text) &&
         Find(library, "cuMemAlloc_v2", cuda.allocate) &&
         Find(library, "cuMemFree_v2", cuda.release) &&
         Find(library, "cuMemcpyHtoD_v2", cuda.to_device) &&
         Find(library, "cuMemcpyDtoH_v2", cuda.to_host) &&
         Find(library, "cuMemcpyDtoDAsync_v2", cuda.copy) &&
         Find(library, "cuMemsetD8_v2", cuda.fill) &&
         Find(library, "cuModuleLoadData", cuda.load) &&
         Find(library, "cuModuleGetFunction", cuda.function) &&
         Find(library, "cuFuncGetAttribute", cuda.get_attribute) &&
         Find(library, "cuFuncSetAttribute", cuda.set_attribute) &&
         Find(library, "cuLaunchKernel", cuda.launch) &&
         Find(library, "cuCtxSynchronize", cuda.synchronize) &&
         Find(library, "cuEventCreate", cuda.event_create) &&
         Find(library, "cuEventRecord", cuda.event_record) &&
         Find(library, "cuEventSynchronize", cuda.event_wait) &&
         Find(library, "cuEventElapsedTime", cuda.event_elapsed) &&
         Find(library, "cuTensorMapEncodeTiled", cuda.encode_map);
}

bool OpenNvrtc() {
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const char* pattern :
       {"/usr/local/cuda*/lib64/libnvrtc.so.*", "/usr/local/cuda*/targets/*/lib/libnvrtc.so.*",
        "/opt/*/.venv/lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*"}) {
    glob_t found{};
    if (glob(pattern, 0, nullptr, &found) == 0)
      for (size_t i = 0; i < found.gl_pathc; ++i) names.emplace_back(found.gl_pathv[i]);
    globfree(&found);
  }
  void* library = nullptr;
  for (size_t i = 0; i < names.size() && library == nullptr; ++i)
    if (names[i].find("alt") == std::string::npos) library = dlopen(names[i].c_str(), RTLD_NOW);
  if (library == nullptr) return false;
  return Find(library, "nvrtcCreateProgram", nvrtc.create) &&
         Find(library, "nvrtcCompileProgram", nvrtc.compile) &&
         Find(library, "nvrtcGetProgramLogSize", nvrtc.log_size) &&
         Find(library, "nvrtcGetProgramLog", nvrtc.log) &&
         Find(library, "nvrtcGetCUBINSize", nvrtc.cubin_size) &&
         Find(library, "nvrtcGetCUBIN", nvrtc.cubin) &&
         Find(library, "nvrtcDestroyProgram", nvrtc.destroy);
}

bool Ok(int status, const char* what) {
  if (status == 0) return true;
  const char* text = "?";
  cuda.error_text(status, &text);
  std::printf("%s: %s\n", what, text);
  return false;
}

bool Encode(const Map& map, Address address, TensorMap& encoded) {
  return Ok(cuda.encode_map(&encoded, map.type, static_cast<uint32_t>(map.sizes.size()),
                            reinterpret_cast<void*>(address), map.sizes.data(), map.strides.data(),
                            map.boxes.data(), map.steps.data(), 0, map.swizzle, map.promotion, 0),
            "cuTensorMapEncodeTiled");
}

bool Compiler::Get(const Step& step, Function& function) {
  std::string key = step.file;
  if (auto it = known_.find(key); it != known_.end()) {
    function = it->second;
    return function.handle != nullptr;
  }
  Function& made = known_[key];
  std::string text = FileBytes(folder_ + "/" + step.file), cubin;
  if (!Compile(step, text, cubin)) return false;
  void* module = nullptr;
  if (!Ok(cuda.load(&module, cubin.data()), "cuModuleLoadData")) return false;
  void* handle = nullptr;
  if (!Ok(cuda.function(&handle, module, step.function.c_str()), "cuModuleGetFunction"))
    return false;
  // CU_FUNC_ATTRIBUTE_NUM_REGS, _LOCAL_SIZE_BYTES, _MAX_DYNAMIC_SHARED_SIZE_BYTES.
  cuda.get_attribute(&made.registers, 4, handle);
  cuda.get_attribute(&made.local, 3, handle);
  if (step.dynamic > 0 &&
      !Ok(cuda.set_attribute(handle, 8, static_cast<int>(step.dynamic)), "shared memory"))
    return false;
  made.handle = handle;
  function = made;
  return true;
}

}  // namespace tokamak
