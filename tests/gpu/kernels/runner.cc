// tok_gpu_kernels BUNDLE: compiles the kernels of a bundle (bundle.cc) with NVRTC, launches them on
// the device, compares every result bit by bit with the simulator's (large ones with a computation
// in double), and prints the bandwidth of those that ask for it. Needs nothing but a C++ compiler;
// libcuda and libnvrtc are opened when it runs. Exit code 77: there is no device.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <glob.h>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

// ---- the two libraries, as cuda.h and nvrtc.h of CUDA 12 and 13 declare them

using Address = unsigned long long;

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
} cuda;

struct Nvrtc {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(void*, int, const char* const*);
  int (*log_size)(void*, size_t*);
  int (*log)(void*, char*);
  int (*cubin_size)(void*, size_t*);
  int (*cubin)(void*, char*);
  int (*destroy)(void**);
} nvrtc;

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) std::printf("no %s\n", name);
  return function != nullptr;
}

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
         Find(library, "cuEventElapsedTime", cuda.event_elapsed);
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

// ---- the bundle

struct Spot {
  size_t memory = 0, offset = 0;
};

struct Step {
  std::string file, function;  // a launch; empty: a copy
  // A pack of kernels: its only parameter is all pointers, or where they are in memory.
  bool by_value = false, by_table = false;
  unsigned grid = 1, threads[3] = {1, 1, 1}, dynamic = 0;
  std::vector<Spot> spots;
  size_t bytes = 0;
};

struct Expected {
  size_t memory = 0, bytes = 0, at = 0;
  std::string type;
  bool near = false;  // tensor cores add up in an order of their own, or the device approximates
};

struct Program {
  std::string name;
  std::vector<size_t> memories;
  struct Upload {
    size_t memory, bytes, at;
  };
  std::vector<Upload> uploads;
  struct Drawn {
    size_t memory, count;
    std::string type;
  };
  std::vector<Drawn> drawn;
  std::vector<Step> steps;
  std::vector<Expected> expected;
  std::string reference;  // of large ones: what is computed, in double, to compare with
  std::vector<size_t> sizes;
  size_t traffic = 0;
};

Spot ReadSpot(std::istringstream& in) {
  Spot spot;
  char plus = 0;
  in >> spot.memory >> plus >> spot.offset;
  return spot;
}

std::vector<Program> ReadManifest(const std::string& path) {
  std::vector<Program> programs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "program") {
      programs.emplace_back();
      in >> programs.back().name;
      continue;
    }
    if (programs.empty()) continue;
    Program& program = programs.back();
    if (word == "memory") {
      size_t bytes = 0;
      in >> bytes;
      program.memories.push_back(bytes);
    } else if (word == "upload") {
      Program::Upload upload{};
      in >> upload.memory >> upload.bytes >> upload.at;
      program.uploads.push_back(upload);
    } else if (word == "draw") {
      Program::Drawn drawn{};
      in >> drawn.memory >> drawn.count >> drawn.type;
      program.drawn.push_back(drawn);
    } else if (word == "launch" || word == "pack-parameter" || word == "pack-memory") {
      Step step;
      step.by_value = word == "pack-parameter";
      step.by_table = word == "pack-memory";
      size_t count = 0;
      in >> step.file >> step.function >> step.grid >> step.threads[0] >> step.threads[1] >>
          step.threads[2] >> step.dynamic >> count;
      for (size_t i = 0; i < count; ++i) step.spots.push_back(ReadSpot(in));
      program.steps.push_back(step);
    } else if (word == "copy") {
      Step step;
      in >> step.bytes;
      for (int i = 0; i < 2; ++i) step.spots.push_back(ReadSpot(in));
      program.steps.push_back(step);
    } else if (word == "expect") {
      Expected expected;
      std::string near;
      in >> expected.memory >> expected.bytes >> expected.at >> expected.type >> near;
      expected.near = near == "near";
      program.expected.push_back(expected);
    } else if (word == "reference") {
      in >> program.reference;
      for (size_t size = 0; in >> size;) program.sizes.push_back(size);
    } else if (word == "traffic") {
      in >> program.traffic;
    }
  }
  return programs;
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// ---- kernels

struct Function {
  void* handle = nullptr;
  int registers = 0, local = 0;
};

class Compiler {
 public:
  explicit Compiler(std::string folder) : folder_(std::move(folder)) {}

  bool Get(const Step& step, Function& function) {
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
        !Ok(cuda.set_attribute(handle, 8, static_cast<int>(step.dynamic)), "team memory"))
      return false;
    made.handle = handle;
    function = made;
    return true;
  }
  size_t count() const { return known_.size(); }

 private:
  static bool Compile(const Step& step, const std::string& text, std::string& cubin) {
    void* program = nullptr;
    if (nvrtc.create(&program, text.c_str(), step.file.c_str(), 0, nullptr, nullptr) != 0)
      return false;
    const char* options[] = {"--gpu-architecture=sm_90", "--fmad=false", "--std=c++17"};
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

  std::string folder_;
  std::map<std::string, Function> known_;
};

// ---- comparing

float DrawnAt(uint64_t seed, uint64_t i) {
  uint64_t x = i * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
  x ^= x >> 31;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 29;
  return static_cast<float>(x >> 40) * (2.0f / 16777216.0f) - 1.0f;
}

float FromBf16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t ToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// NaNs are equal; all else bit by bit.
template <typename Bits>
bool IsNan(Bits bits, int exponent, int mantissa) {
  Bits top = static_cast<Bits>(((Bits{1} << exponent) - 1) << mantissa);
  Bits low = static_cast<Bits>((Bits{1} << mantissa) - 1);
  return (bits & top) == top && (bits & low) != 0;
}

template <typename Bits>
size_t Differences(const char* got, const char* wanted, size_t bytes, int exponent, int mantissa,
                   size_t& first) {
  size_t count = 0;
  for (size_t i = 0; i < bytes / sizeof(Bits); ++i) {
    Bits x, y;
    std::memcpy(&x, got + i * sizeof(Bits), sizeof(Bits));
    std::memcpy(&y, wanted + i * sizeof(Bits), sizeof(Bits));
    if (x == y) continue;
    if (exponent > 0 && IsNan(x, exponent, mantissa) && IsNan(y, exponent, mantissa)) continue;
    if (count++ == 0) first = i;
  }
  return count;
}

size_t CountDifferences(const std::string& type, const char* got, const char* wanted, size_t bytes,
                        size_t& first) {
  if (type == "f32" || type == "c64")
    return Differences<uint32_t>(got, wanted, bytes, 8, 23, first);
  if (type == "f64" || type == "c128")
    return Differences<uint64_t>(got, wanted, bytes, 11, 52, first);
  if (type == "bf16") return Differences<uint16_t>(got, wanted, bytes, 8, 7, first);
  if (type == "f16") return Differences<uint16_t>(got, wanted, bytes, 5, 10, first);
  return Differences<uint8_t>(got, wanted, bytes, 0, 0, first);
}

// Reals that differ by what another order of sums may do; all else bit by bit.
size_t CountFar(const Expected& expected, const char* got, const char* wanted, size_t& first) {
  bool narrow = expected.type == "bf16";
  if (!narrow && expected.type != "f32")
    return CountDifferences(expected.type, got, wanted, expected.bytes, first);
  auto value = [&](const char* from, size_t i) {
    uint16_t half = 0;
    float whole = 0;
    std::memcpy(narrow ? static_cast<void*>(&half) : &whole, from + i * (narrow ? 2 : 4),
                narrow ? 2 : 4);
    return narrow ? FromBf16(half) : whole;
  };
  size_t elements = expected.bytes / (narrow ? 2 : 4), count = 0;
  float most = 0;
  for (size_t i = 0; i < elements; ++i)
    if (float y = std::abs(value(wanted, i)); y > most && y < 3e38f) most = y;
  for (size_t i = 0; i < elements; ++i) {
    float x = value(got, i), y = value(wanted, i);
    bool alike = x == y || (std::isnan(x) && std::isnan(y)) ||
                 std::abs(x - y) <= 1e-5f * most + (narrow ? 8e-3f : 1e-5f) * std::abs(y);
    if (!alike && count++ == 0) first = i;
  }
  return count;
}

// ---- large programs: y = reference(x) of rows x columns, in double; of dots also a depth, and
// batches

struct Large {
  std::string name;
  size_t rows, columns, depth = 0, batch = 1;
  std::vector<float> x, gamma, beta, y;
};

bool IsDot(const std::string& name) {
  return name.starts_with("dot");
}

// dot: x w, of m x k and k x n. dot_gelu: gelu(x w + b). dot_causal: where(i >= j, q k', -inf).
double WantedDot(const Large& l, size_t i) {
  size_t c = i % l.columns, r = i / l.columns % l.rows, batch = i / l.columns / l.rows;
  bool causal = l.name == "dot_causal";
  if (causal && r < c) return -INFINITY;
  double sum = 0;
  for (size_t p = 0; p < l.depth; ++p) {
    size_t of_right = causal ? (batch * l.columns + c) * l.depth + p : p * l.columns + c;
    sum += static_cast<double>(l.x[(batch * l.rows + r) * l.depth + p]) * l.gamma[of_right];
  }
  if (l.name != "dot_gelu") return sum;
  sum += l.beta[c];
  return 0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
}

double Wanted(const Large& l, size_t i, std::vector<double>& row) {
  if (IsDot(l.name)) return WantedDot(l, i);
  size_t r = i / l.columns, c = i % l.columns;
  const float* x = l.x.data() + r * l.columns;
  if (l.name == "scale") return 2.0 * l.x[i] + 1.0;
  if (l.name == "transpose") return l.x[(i % l.rows) * l.columns + i / l.rows];
  if (l.name == "column_sum") {
    double sum = 0;
    for (size_t k = 0; k < l.rows; ++k) sum += l.x[k * l.columns + i];
    return sum;
  }
  if (l.name == "row_sum" || l.name == "sum") {
    double sum = 0;
    size_t count = l.name == "sum" ? l.x.size() : l.columns;
    const float* from = l.name == "sum" ? l.x.data() : l.x.data() + i * l.columns;
    for (size_t k = 0; k < count; ++k) sum += from[k];
    return sum;
  }
  if (row.empty() || row[l.columns] != static_cast<double>(r)) {
    row.assign(l.columns + 1, 0);
    double sum = 0, most = -1e300, mean = 0, squares = 0;
    for (size_t k = 0; k < l.columns; ++k) most = std::max<double>(most, x[k]);
    for (size_t k = 0; k < l.columns; ++k) sum += std::exp(x[k] - most);
    for (size_t k = 0; k < l.columns; ++k) mean += x[k] / static_cast<double>(l.columns);
    for (size_t k = 0; k < l.columns; ++k)
      squares += (x[k] - mean) * (x[k] - mean) / static_cast<double>(l.columns);
    for (size_t k = 0; k < l.columns; ++k)
      row[k] = l.name == "softmax"
                   ? std::exp(x[k] - most) / sum
                   : (x[k] - mean) / std::sqrt(squares + 1e-5) * l.gamma[k] + l.beta[k];
    row[l.columns] = static_cast<double>(r);
  }
  return row[c];
}

// Looks at some thousand elements, neighbours among them.
bool CheckLarge(const Large& l, bool narrow) {
  double worst = 0;
  size_t at = 0;
  bool sums = l.name == "column_sum" || l.name == "row_sum" || l.name == "sum";
  size_t count = l.y.size(), looks = sums ? std::min<size_t>(count, 64) : 4096;
  std::vector<double> row;
  for (size_t k = 0; k < looks; ++k) {
    size_t i = looks == count ? k : (k / 64 * 0x9e3779b9u * 64 + k % 64) % count;
    double wanted = Wanted(l, i, row), got = l.y[i];
    // What is added to or taken from numbers near 1 is as exact as those.
    double least = l.name == "layernorm" ? 1 : 1e-6;
    double scale = sums ? std::sqrt(static_cast<double>(l.x.size()) / static_cast<double>(count))
                        : std::abs(wanted) + least;
    if (IsDot(l.name)) scale = std::sqrt(static_cast<double>(l.depth));
    double error = got == wanted ? 0 : std::abs(got - wanted) / scale;
    if (!(error <= worst)) worst = std::isnan(error) ? 1e30 : error, at = i;
  }
  double allowed = narrow ? 3e-2 : 2e-5;  // several operations round to 8 bits
  // Of sums whose terms have been rounded to tf32, perhaps.
  if (IsDot(l.name)) allowed = narrow ? 1e-2 : 1e-3;
  if (worst > allowed) std::printf("  element %zu is off by %g\n", at, worst);
  return worst <= allowed;
}

// ---- programs

class Runner {
 public:
  Runner(const Program& program, Compiler& compiler, const std::string& data)
      : program_(program), compiler_(compiler), data_(data) {}
  ~Runner() {
    for (Address address : memories_) cuda.release(address);
    for (const auto& [step, address] : tables_) cuda.release(address);
  }

  bool Run() {
    for (size_t bytes : program_.memories) {
      Address address = 0;
      if (!Ok(cuda.allocate(&address, std::max<size_t>(bytes, 256)), "cuMemAlloc")) return false;
      memories_.push_back(address);
    }
    functions_.resize(program_.steps.size());
    for (size_t i = 0; i < program_.steps.size(); ++i)
      if (!program_.steps[i].function.empty() && !compiler_.Get(program_.steps[i], functions_[i]))
        return false;
    std::vector<std::string> before;
    for (int time = 0; time < 2; ++time) {
      if (!Upload() || !RunSteps() || !Ok(cuda.synchronize(), "run")) return false;
      if (!program_.reference.empty()) return Compare() && Time();
      std::vector<std::string> now;
      if (!Compare(now)) return false;
      if (time > 0 && now != before) {
        std::printf("  two runs differ\n");
        return false;
      }
      before = std::move(now);
    }
    return true;
  }

 private:
  Address At(const Spot& spot) const { return memories_[spot.memory] + spot.offset; }

  bool Upload() {
    for (size_t i = 0; i < memories_.size(); ++i)
      if (!Ok(cuda.fill(memories_[i], 0xff, std::max<size_t>(program_.memories[i], 256)), "fill"))
        return false;
    for (const Program::Upload& upload : program_.uploads)
      if (upload.bytes > 0 &&
          !Ok(cuda.to_device(memories_[upload.memory], data_.data() + upload.at, upload.bytes),
              "upload"))
        return false;
    for (size_t d = 0; d < program_.drawn.size(); ++d) {
      const Program::Drawn& drawn = program_.drawn[d];
      std::vector<float>& values = d == 0 ? large_.x : d == 1 ? large_.gamma : large_.beta;
      values.resize(drawn.count);
      Parallel(drawn.count, [&](size_t i) {
        float value = DrawnAt(d + 1, i);
        values[i] = drawn.type == "bf16" ? FromBf16(ToBf16(value)) : value;
      });
      std::vector<uint16_t> narrow;
      const void* bytes = values.data();
      size_t size = drawn.count * 4;
      if (drawn.type == "bf16") {
        narrow.resize(drawn.count);
        for (size_t i = 0; i < drawn.count; ++i) narrow[i] = ToBf16(values[i]);
        bytes = narrow.data();
        size = drawn.count * 2;
      }
      if (!Ok(cuda.to_device(memories_[drawn.memory], bytes, size), "upload")) return false;
    }
    return true;
  }

  template <typename Body>
  static void Parallel(size_t count, Body&& body) {
    size_t threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> all;
    for (size_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (size_t i = count * t / threads; i < count * (t + 1) / threads; ++i) body(i);
      });
    for (std::thread& thread : all) thread.join();
  }

  bool RunSteps() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      if (step.function.empty()) {
        if (!Ok(cuda.copy(At(step.spots[0]), At(step.spots[1]), step.bytes, nullptr), "copy"))
          return false;
        continue;
      }
      std::vector<Address> addresses;
      for (const Spot& spot : step.spots) addresses.push_back(At(spot));
      std::vector<void*> arguments;
      Address table = 0;
      if (step.by_table) {
        if (!MakeTable(i, addresses, table)) return false;
        arguments.push_back(&table);
      } else if (step.by_value) {
        arguments.push_back(addresses.data());
      } else {
        for (Address& address : addresses) arguments.push_back(&address);
      }
      if (!Ok(cuda.launch(functions_[i].handle, step.grid, 1, 1, step.threads[0], step.threads[1],
                          step.threads[2], step.dynamic, nullptr, arguments.data(), nullptr),
              step.function.c_str()))
        return false;
    }
    return true;
  }

  // Pointers of a step in memory of the device, put there once.
  bool MakeTable(size_t step, const std::vector<Address>& addresses, Address& table) {
    auto [at, is_new] = tables_.try_emplace(step, 0);
    size_t bytes = addresses.size() * sizeof(Address);
    if (is_new && (!Ok(cuda.allocate(&at->second, bytes), "cuMemAlloc") ||
                   !Ok(cuda.to_device(at->second, addresses.data(), bytes), "upload")))
      return false;
    table = at->second;
    return true;
  }

  bool Compare(std::vector<std::string>& results) {
    bool good = true;
    for (const Expected& expected : program_.expected) {
      std::string got(expected.bytes, '\0');
      if (expected.bytes > 0 &&
          !Ok(cuda.to_host(got.data(), memories_[expected.memory], expected.bytes), "download"))
        return false;
      const char* wanted = data_.data() + expected.at;
      size_t first = 0, count = expected.near ? CountFar(expected, got.data(), wanted, first)
                                              : CountDifferences(expected.type, got.data(), wanted,
                                                                 expected.bytes, first);
      if (count > 0)
        std::printf("  memory %zu (%s): %zu elements differ, the first is %zu\n", expected.memory,
                    expected.type.c_str(), count, first);
      good = good && count == 0;
      results.push_back(std::move(got));
    }
    return good;
  }

  bool Compare() {
    const Expected& result = program_.expected[0];
    std::string got(result.bytes, '\0');
    if (!Ok(cuda.to_host(got.data(), memories_[result.memory], result.bytes), "download"))
      return false;
    bool narrow = result.type == "bf16";
    large_.name = program_.reference;
    large_.rows = program_.sizes[0];
    large_.columns = program_.sizes[1];
    if (program_.sizes.size() > 2) large_.depth = program_.sizes[2];
    if (program_.sizes.size() > 3) large_.batch = program_.sizes[3];
    large_.y.resize(result.bytes / (narrow ? 2 : 4));
    for (size_t i = 0; i < large_.y.size(); ++i) {
      if (narrow) {
        uint16_t bits;
        std::memcpy(&bits, got.data() + i * 2, 2);
        large_.y[i] = FromBf16(bits);
      } else {
        std::memcpy(&large_.y[i], got.data() + i * 4, 4);
      }
    }
    return CheckLarge(large_, narrow);
  }

  // The median of many runs; data is several times the cache.
  bool Time() {
    void *begin = nullptr, *end = nullptr;
    if (!Ok(cuda.event_create(&begin, 0), "event") || !Ok(cuda.event_create(&end, 0), "event"))
      return false;
    std::vector<float> times;
    for (int i = 0; i < 33; ++i) {
      cuda.event_record(begin, nullptr);
      if (!RunSteps()) return false;
      cuda.event_record(end, nullptr);
      if (!Ok(cuda.event_wait(end), "run")) return false;
      float ms = 0;
      cuda.event_elapsed(&ms, begin, end);
      if (i >= 3) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    float ms = times[times.size() / 2];
    std::string launches;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      char text[160];
      std::snprintf(text, sizeof text, " [%u x %u, %d registers, %d local]", step.grid,
                    step.threads[0] * step.threads[1] * step.threads[2], functions_[i].registers,
                    functions_[i].local);
      launches += text;
    }
    double products = 2.0 * static_cast<double>(large_.rows * large_.columns) *
                      static_cast<double>(large_.depth * large_.batch);
    std::string speed;
    if (large_.depth > 0) speed = " " + std::to_string(products / 1e9 / ms) + " TFLOP/s";
    std::printf("%-28s %8.4f ms (best %8.4f) %7.0f GB/s%s%s\n", program_.name.c_str(), ms, times[0],
                static_cast<double>(program_.traffic) / 1e6 / ms, speed.c_str(), launches.c_str());
    return true;
  }

  const Program& program_;
  Compiler& compiler_;
  const std::string& data_;
  std::vector<Address> memories_;
  std::map<size_t, Address> tables_;  // of packs, by step
  std::vector<Function> functions_;
  Large large_;
};

// What a copy of the same size by the driver takes: the ceiling.
void TimeCopy(size_t bytes) {
  Address from = 0, to = 0;
  if (cuda.allocate(&from, bytes) != 0 || cuda.allocate(&to, bytes) != 0) return;
  void *begin = nullptr, *end = nullptr;
  cuda.event_create(&begin, 0);
  cuda.event_create(&end, 0);
  std::vector<float> times;
  for (int i = 0; i < 33; ++i) {
    cuda.event_record(begin, nullptr);
    cuda.copy(to, from, bytes, nullptr);
    cuda.event_record(end, nullptr);
    cuda.event_wait(end);
    float ms = 0;
    cuda.event_elapsed(&ms, begin, end);
    if (i >= 3) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  float ms = times[times.size() / 2];
  std::printf("%-28s %8.4f ms (best %8.4f) %7.0f GB/s\n", "copy by the driver", ms, times[0],
              2 * static_cast<double>(bytes) / 1e6 / ms);
  cuda.release(from);
  cuda.release(to);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("tok_gpu_kernels BUNDLE [NAME...]\n");
    return 64;
  }
  int device = 0;
  void* context = nullptr;
  if (!OpenCuda() || cuda.init(0) != 0 || cuda.device_get(&device, 0) != 0) {
    std::printf("skipped: there is no CUDA device\n");
    return 77;
  }
  if (!OpenNvrtc()) {
    std::printf("skipped: there is no NVRTC\n");
    return 77;
  }
  char name[128] = "";
  cuda.device_name(name, sizeof name, device);
  if (!Ok(cuda.retain(&context, device), "context") || !Ok(cuda.set_current(context), "context"))
    return 1;
  std::string folder = argv[1], data = FileBytes(folder + "/data.bin");
  std::vector<Program> programs = ReadManifest(folder + "/manifest.txt");
  Compiler compiler(folder);
  size_t passed = 0, failed = 0;
  std::printf("%s, %zu programs\n", name, programs.size());
  bool timed = false;
  for (const Program& program : programs) {
    bool wanted = argc == 2;
    for (int i = 2; i < argc; ++i) wanted = wanted || program.name.starts_with(argv[i]);
    if (!wanted) continue;
    if (!program.reference.empty() && !timed) TimeCopy(size_t{1} << 28);
    timed = timed || !program.reference.empty();
    bool good = Runner(program, compiler, data).Run();
    if (!good) std::printf("FAILED %s\n", program.name.c_str());
    ++(good ? passed : failed);
    std::fflush(stdout);
  }
  std::printf("%zu kernels\ntally: %zu passed, %zu failed, 0 skipped\n", compiler.count(), passed,
              failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return Main(argc, argv);
}
