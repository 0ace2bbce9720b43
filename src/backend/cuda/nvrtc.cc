#include "backend/cuda/nvrtc.h"

#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/library_paths.h"

namespace tokamak::cuda {

// Functions of nvrtc.h (CUDA 12 and 13); 0 is success.
struct Nvrtc::Functions {
  using Program = void*;
  int (*version)(int*, int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*ptx_size)(Program, size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  // Since CUDA 12.8: the callback cancels a compilation by returning 1. May be null.
  int (*set_flow_callback)(Program, int (*)(void*, void*), void*) = nullptr;
};

namespace {

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Parses "ptxas info    : Used 32 registers, ..." and "8 bytes spill stores, ...".
int NumberBefore(const std::string& text, std::string_view words) {
  size_t at = text.find(words);
  if (at == std::string::npos || at == 0) return 0;
  size_t begin = at;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  return std::atoi(text.c_str() + begin);
}

using Clock = std::chrono::steady_clock;

// The time that NVRTC may take for a kernel of the user. Chosen: as for C (runtime/c_compiler.h).
constexpr std::chrono::seconds kCustomKernelTime{60};

int IsTooLate(void* end, void*) {
  return Clock::now() > *static_cast<const Clock::time_point*>(end) ? 1 : 0;
}

// The error of a text that NVRTC rejects.
Error Rejected(const CudaSource& source, const std::string& why, const std::string& log,
               bool is_late) {
  if (source.is_custom && is_late)
    return MakeError(ErrorCode::kCustomKernelCompiler,
                     fmt::format("kernel '{}': NVRTC was stopped after {} s", source.name,
                                 kCustomKernelTime.count()));
  Error error =
      source.is_custom
          ? MakeError(ErrorCode::kCustomKernelSource,
                      fmt::format("kernel '{}': its CUDA source does not compile", source.name))
          : MakeError(ErrorCode::kNvrtcError,
                      fmt::format("kernel {}: NVRTC rejected it: {}", source.name, why));
  error.notes.push_back(log);
  return error;
}

Error Missing(const std::string& why) {
  return MakeError(ErrorCode::kNvrtcMissing, "NVRTC: " + why);
}

}  // namespace

Result<Nvrtc> Nvrtc::Load() {
  std::string tried;
  void* library = OpenLibrary("libnvrtc.so", tried);
  if (library == nullptr) return Missing(tried);
  static Functions functions;
  Functions& f = functions;
  if (!Find(library, "nvrtcVersion", f.version) ||
      !Find(library, "nvrtcGetErrorString", f.error_text) ||
      !Find(library, "nvrtcCreateProgram", f.create) ||
      !Find(library, "nvrtcDestroyProgram", f.destroy) ||
      !Find(library, "nvrtcCompileProgram", f.compile) ||
      !Find(library, "nvrtcGetProgramLogSize", f.log_size) ||
      !Find(library, "nvrtcGetProgramLog", f.log) ||
      !Find(library, "nvrtcGetCUBINSize", f.cubin_size) ||
      !Find(library, "nvrtcGetCUBIN", f.cubin) || !Find(library, "nvrtcGetPTXSize", f.ptx_size) ||
      !Find(library, "nvrtcGetPTX", f.ptx))
    return Missing("libnvrtc lacks a function");
  Find(library, "nvrtcSetFlowCallback", f.set_flow_callback);
  int major = 0, minor = 0;
  if (f.version(&major, &minor) != 0) return Missing("it does not tell its version");
  Nvrtc nvrtc;
  nvrtc.functions_ = &functions;
  nvrtc.version_ = major * 1000 + minor * 10;
  return nvrtc;
}

Result<const Nvrtc*> Nvrtc::Open() {
  static const Result<Nvrtc> loaded = Load();
  if (!loaded.ok()) return loaded.error();
  return &loaded.value();
}

Result<CudaCode> Nvrtc::Compile(const CudaSource& source, const std::string& architecture,
                                std::string* ptx) const {
  const Functions& f = *functions_;
  Functions::Program program = nullptr;
  std::string file = source.name + ".cu", target = "--gpu-architecture=" + architecture;
  int status = f.create(&program, source.text.c_str(), file.c_str(), 0, nullptr, nullptr);
  if (status != 0) return Missing(f.error_text(status));
  // No contraction here: passes on the module decide about transformations that change values.
  std::vector<const char*> options = {target.c_str(), "--fmad=false", "--std=c++17",
                                      "--ptxas-options=-v"};
  // Omits declarations of the runtime's headers; older versions do not know the option.
  if (version_ >= 13000 && !source.is_custom) options.push_back("--minimal");
  for (const std::string& option : source.options) options.push_back(option.c_str());
  Clock::time_point end = Clock::now() + kCustomKernelTime;
  if (source.is_custom && f.set_flow_callback != nullptr)
    f.set_flow_callback(program, IsTooLate, &end);
  status = f.compile(program, static_cast<int>(options.size()), options.data());
  CudaCode code;
  size_t size = 0;
  if (f.log_size(program, &size) == 0 && size > 1) {
    code.log.resize(size);
    f.log(program, code.log.data());
    code.log.resize(size - 1);
  }
  if (status == 0 && f.cubin_size(program, &size) == 0) {
    code.cubin.resize(size);
    status = f.cubin(program, code.cubin.data());
  }
  if (ptx != nullptr && status == 0 && f.ptx_size(program, &size) == 0) {
    ptx->resize(size);
    status = f.ptx(program, ptx->data());
  }
  std::string why = status != 0 ? f.error_text(status) : "";
  f.destroy(&program);
  if (status != 0) return Rejected(source, why, code.log, Clock::now() > end);
  code.registers = NumberBefore(code.log, " registers");
  code.spilled_bytes = NumberBefore(code.log, " bytes spill stores");
  code.shared_bytes = NumberBefore(code.log, " bytes smem");
  return code;
}

}  // namespace tokamak::cuda
