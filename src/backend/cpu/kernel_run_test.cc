#include "backend/cpu/kernel_run.h"

#include <cmath>
#include <cstring>

#include "backend/cpu/code.h"
#include "backend/cpu/launch.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"
#include "kernel/write.h"

namespace tokamak::cpu {
namespace {

constexpr size_t kGuard = 128;
constexpr uint8_t kCanary = 0xa5;

Bits BitsAt(const Bytes& array, ScalarType type, int64_t i) {
  Bits bits = 0;
  std::memcpy(&bits, array.data() + i * BytesOf(type), static_cast<size_t>(BytesOf(type)));
  return bits;
}

Difference Differ(const std::string& text) {
  return {text.empty() ? "?" : text};
}

}  // namespace

Bytes Draw(ScalarType type, int64_t count, SplitMix64& random, bool wild) {
  Bytes bytes(static_cast<size_t>(count * BytesOf(type)));
  for (int64_t i = 0; i < count; ++i) {
    Bits bits = random.Next();
    if (type == ScalarType::kPred) {
      bits &= 1;
    } else if (!wild || bits % 4 == 0) {
      double value = static_cast<double>(static_cast<int64_t>(random.Next() % 2001) - 1000);
      bits = BitsOfDouble(type, IsFloat(type) ? value / 64 : std::fmod(value, 100));
    }
    std::memcpy(bytes.data() + i * BytesOf(type), &bits, static_cast<size_t>(BytesOf(type)));
  }
  return bytes;
}

// long: one comparison in sequence.
Difference Compare(const Kernel& kernel, const std::vector<Bytes>& arguments,
                   const std::vector<int64_t>& extents) {
  Status sound = VerifyKernel(kernel);
  if (!sound.ok()) return Differ("not verified: " + sound.error().message);
  std::string shown = "\n" + WriteKernel(kernel);
  std::vector<Bytes> simulated = arguments, compiled = arguments;
  std::vector<SimArgument> views;
  std::vector<void*> pointers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    views.push_back({simulated[i].data(),
                     static_cast<int64_t>(simulated[i].size()) / BytesOf(kernel.arrays[i].type)});
    compiled[i].resize(compiled[i].size() + kGuard, kCanary);
    pointers.push_back(compiled[i].data());
  }
  auto report = SimulateKernel(kernel, views, extents);
  if (!report.ok()) return Differ("simulator: " + report.error().message + shown);
  const Kernel* kernels[] = {&kernel};
  auto code = Code::Compile(kernels);
  if (!code.ok()) return Differ(code.error().message + shown);
  Launch launch = PlanLaunch(kernel, code.value()->function(0), extents);
  int64_t middle = launch.grid / 3;
  if (launch.grid > 1) launch.function(pointers.data(), extents.data(), middle, launch.grid);
  launch.function(pointers.data(), extents.data(), 0, launch.grid > 1 ? middle : launch.grid);
  for (size_t i = 0; i < arguments.size(); ++i) {
    ScalarType type = kernel.arrays[i].type;
    for (int64_t k = 0; k < views[i].elements; ++k) {
      Bits want = BitsAt(simulated[i], type, k), got = BitsAt(compiled[i], type, k);
      bool both_nan = IsFloat(type) && std::isnan(DoubleOfBits(type, want)) &&
                      std::isnan(DoubleOfBits(type, got));
      if (want != got && !both_nan)
        return Differ(kernel.arrays[i].name + "[" + std::to_string(k) + "] is " +
                      std::to_string(DoubleOfBits(type, got)) + " (" + std::to_string(got) +
                      "), not " + std::to_string(DoubleOfBits(type, want)) + " (" +
                      std::to_string(want) + ")" + shown);
    }
    for (size_t k = simulated[i].size(); k < compiled[i].size(); ++k)
      if (compiled[i][k] != kCanary)
        return Differ("written beyond " + kernel.arrays[i].name + shown);
  }
  return {};
}

}  // namespace tokamak::cpu
