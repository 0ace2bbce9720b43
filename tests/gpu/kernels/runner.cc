// tok_gpu_kernels BUNDLE: compiles the kernels of a bundle (bundle.cc) with NVRTC and launches them
// on the device. Compares every result bit by bit with the simulator's (large ones with a
// computation in double), and prints the bandwidth where requested. Needs only a C++ compiler;
// libcuda and libnvrtc are loaded at run time. Exit code 77: no device.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gpu/kernels/compare.h"
#include "gpu/kernels/device.h"
#include "gpu/kernels/manifest.h"

namespace tokamak {
namespace {

class BundleRunner {
 public:
  BundleRunner(const Program& program, Compiler& compiler, const std::string& data)
      : program_(program), compiler_(compiler), data_(data) {}
  ~BundleRunner() {
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
      std::vector<TensorMap> maps(step.maps.size());
      for (size_t m = 0; m < maps.size(); ++m) {
        if (!Encode(step.maps[m], addresses[step.maps[m].argument], maps[m])) return false;
        arguments.push_back(&maps[m]);
      }
      if (!Ok(cuda.launch(functions_[i].handle, step.grid, 1, 1, step.threads[0], step.threads[1],
                          step.threads[2], step.dynamic, nullptr, arguments.data(), nullptr),
              step.function.c_str()))
        return false;
    }
    return true;
  }

  // The pointers of a step in device memory, written once.
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
      size_t first = 0, count = expected.near ? CountMismatches(expected, got.data(), wanted, first)
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

  // The median of many runs; the data is several times the cache size.
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
  std::map<size_t, Address> tables_;  // of horizontally fused launches, by step
  std::vector<Function> functions_;
  Large large_;
};

// The time of a driver copy of the same size: the upper bound on bandwidth.
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
    bool good = BundleRunner(program, compiler, data).Run();
    if (!good) std::printf("FAILED %s\n", program.name.c_str());
    ++(good ? passed : failed);
    std::fflush(stdout);
  }
  std::printf("%zu kernels\ntally: %zu passed, %zu failed, 0 skipped\n", compiler.count(), passed,
              failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Main(argc, argv);
}
