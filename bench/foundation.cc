// The measuring program of bench/run_foundation.py. Prints one line of JSON per command:
//
//   foundation read N FILE        reads and verifies N times: seconds of each
//   foundation memory FILE        growth of the peak of a process that reads once
//   foundation run N FILE         runs N times on made-up arguments: seconds of each
//   foundation convert hlo|stablehlo FILE OUT
//   foundation --histogram FILE...  how often each op is in bytecode (tools/compare_histograms.py)
//
// Seconds are CPU time of this process, so concurrent processes disturb them little.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "interp/interp.h"
#include "ir/infer.h"
#include "ir/ir.h"
#include "text/bytecode_histogram.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The peak memory of this program. Not getrusage's, which counts from the fork: the peak of the
// parent process would hide ours.
long PeakKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::atol(line.c_str() + 6);
  return 0;
}

// Resets the peak.
void ForgetPeak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

Bytes Load(const char* path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> data(in ? static_cast<size_t>(in.tellg()) : 0);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return Bytes::FromVector(std::move(data));
}

size_t InstructionCount(const Module& module) {
  size_t count = 0;
  for (const auto& computation : module.computations()) count += computation->size();
  return count;
}

bool Complain(const Error& error) {
  std::fprintf(stderr, "%s\n", Render(error).c_str());
  return false;
}

void PrintSeconds(const char* name, const std::vector<double>& seconds) {
  std::printf(", \"%s\": [", name);
  for (size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.9f", i > 0 ? ", " : "", seconds[i]);
  std::printf("]");
}

bool MeasureRead(int times, const char* path) {
  const Bytes bytes = Load(path);
  std::vector<double> reads, verifies;
  size_t instructions = 0;
  bool verified = true;
  for (int i = 0; i < times; ++i) {
    const double start = CpuSeconds();
    auto module = ReadModule(bytes, path);
    const double read = CpuSeconds();
    if (!module.ok()) return Complain(module.error());
    const Status status = VerifyModule(*module.value());
    const double verify = CpuSeconds();
    verified = verified && status.ok();
    reads.push_back(read - start);
    verifies.push_back(verify - read);
    instructions = InstructionCount(*module.value());
  }
  std::printf("{\"bytes\": %zu, \"instructions\": %zu, \"verified\": %s", bytes.size(),
              instructions, verified ? "true" : "false");
  PrintSeconds("read_s", reads);
  PrintSeconds("verify_s", verifies);
  std::printf("}\n");
  return true;
}

bool MeasureMemory(const char* path) {
  const Bytes bytes = Load(path);
  ForgetPeak();
  const long before = PeakKiB();
  auto module = ReadModule(bytes, path);
  const long after = PeakKiB();
  if (!module.ok()) return Complain(module.error());
  std::printf("{\"bytes\": %zu, \"instructions\": %zu, \"before_kib\": %ld, \"after_kib\": %ld}\n",
              bytes.size(), InstructionCount(*module.value()), before, after);
  return true;
}

// Small distinct numbers: no loop ends at once, nothing overflows.
Value MakeArgument(const Shape& shape) {
  const size_t count = static_cast<size_t>(shape.ElementCount());
  return DispatchStorage(shape.type(), [&]<typename T>() {
    std::vector<T> elements(count);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Complex>)
        elements[i] = T(static_cast<double>(i % 61 + 1) / 32);
      else
        elements[i] = static_cast<T>(i % 2);
    }
    return Value::Array(shape, std::move(elements));
  });
}

bool MeasureRun(int times, const char* path) {
  auto module = ReadModule(Load(path), path);
  if (!module.ok()) return Complain(module.error());
  if (Status status = VerifyModule(*module.value()); !status.ok()) return Complain(status.error());
  std::vector<Value> arguments;
  for (const Instr* parameter : module.value()->entry()->parameters())
    arguments.push_back(MakeArgument(parameter->shape()));
  std::vector<double> runs;
  for (int i = 0; i < times; ++i) {
    const double start = CpuSeconds();
    auto outcome = Interpret(*module.value(), arguments);
    runs.push_back(CpuSeconds() - start);
    if (!outcome.ok()) return Complain(outcome.error());
  }
  std::printf("{\"peak_kib\": %ld", PeakKiB());
  PrintSeconds("run_s", runs);
  std::printf("}\n");
  return true;
}

bool Convert(std::string_view format, const char* path, const char* out) {
  auto module = ReadModule(Load(path), path);
  if (!module.ok()) return Complain(module.error());
  const std::string text =
      format == "hlo" ? WriteHloText(*module.value()) : WriteStablehloText(*module.value());
  std::ofstream(out, std::ios::binary) << text;
  std::printf("{\"bytes\": %zu}\n", text.size());
  return true;
}

bool PrintHistogram(const char* path) {
  auto counts = BytecodeHistogram(Load(path), path);
  if (!counts.ok()) {
    std::printf("%s\t{\"error\": \"%s\"}\n", path, CodeText(counts.error().code).c_str());
    return Complain(counts.error());
  }
  std::printf("%s\t{", path);
  const char* separator = "";
  for (const auto& [name, count] : counts.value()) {
    std::printf("%s\"%s\": %lld", separator, name.c_str(), static_cast<long long>(count));
    separator = ", ";
  }
  std::printf("}\n");
  return true;
}

bool Main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "read" && argc == 4) return MeasureRead(std::atoi(argv[2]), argv[3]);
  if (command == "memory" && argc == 3) return MeasureMemory(argv[2]);
  if (command == "run" && argc == 4) return MeasureRun(std::atoi(argv[2]), argv[3]);
  if (command == "convert" && argc == 5) return Convert(argv[2], argv[3], argv[4]);
  if (command == "--histogram") {
    bool fine = true;
    for (int i = 2; i < argc; ++i) fine = PrintHistogram(argv[i]) && fine;
    return fine;
  }
  std::fprintf(
      stderr,
      "foundation: read N FILE, memory FILE, run N FILE, convert hlo|stablehlo FILE OUT or "
      "--histogram FILE...\n");
  return false;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Main(argc, argv) ? 0 : 2;
}
