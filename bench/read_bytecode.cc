// read_bytecode FILE...: how fast bytecode is read, and how much memory that
// takes at its peak. read_bytecode --histogram FILE...: how often each op is in
// each file, as one line of JSON (tools/compare_histograms.py).
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>

#include "ir/ir.h"
#include "text/bytecode_histogram.h"
#include "text/read.h"

namespace tokamak {
namespace {

Bytes Load(const char* path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> data(in ? static_cast<size_t>(in.tellg()) : 0);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return Bytes::FromVector(std::move(data));
}

long PeakKiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

bool PrintHistogram(const char* path) {
  auto counts = BytecodeHistogram(Load(path), path);
  if (!counts.ok()) {
    std::fprintf(stderr, "%s\n", Render(counts.error()).c_str());
    std::printf("%s\t{\"error\": \"%s\"}\n", path, CodeText(counts.error().code).c_str());
    return false;
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

bool Measure(const char* path) {
  const Bytes bytes = Load(path);
  const long before = PeakKiB();
  const std::clock_t start = std::clock();  // of this process: others may run beside it
  auto module = ReadMlirBytecode(bytes, path);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!module.ok()) {
    std::fprintf(stderr, "%s\n", Render(module.error()).c_str());
    return false;
  }
  size_t instructions = 0;
  for (const auto& computation : module.value()->computations())
    instructions += computation->size();
  const double mega = static_cast<double>(bytes.size()) / 1e6;
  std::printf(
      "%s: %zu instructions, %.1f MB in %.4f s: %.2f M instructions/s, %.2f GB/s; "
      "peak %ld KiB over the file, %.0f B/instruction\n",
      path, instructions, mega, seconds, static_cast<double>(instructions) / seconds / 1e6,
      mega / 1e3 / seconds, PeakKiB() - before,
      static_cast<double>(PeakKiB() - before) * 1024 / static_cast<double>(instructions));
  return true;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  const bool histogram = argc > 1 && std::strcmp(argv[1], "--histogram") == 0;
  bool fine = argc > 1;
  for (int i = histogram ? 2 : 1; i < argc; ++i)
    fine = (histogram ? tokamak::PrintHistogram(argv[i]) : tokamak::Measure(argv[i])) && fine;
  return fine ? 0 : 2;
}
