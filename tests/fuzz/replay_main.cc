// Checks a fuzzer's property once for every given file or every file below a given folder. Works
// with any compiler, so that every input that once failed remains a test.
//
// With --mutate N it also checks N mutations of each file: an unguided fuzzer for machines without
// libFuzzer. Failing inputs are written to --crashes DIR.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "fuzz/fuzz.h"

namespace {

std::minstd_rand random_bits(1);
std::vector<uint8_t> input;  // the current input
std::string crash_file;

void OnCrash(int number) {
  if (!crash_file.empty()) {
    int fd = open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    [[maybe_unused]] ssize_t written = write(fd, input.data(), input.size());
    close(fd);
  }
  signal(number, SIG_DFL);
  raise(number);
}

void RunOnce() {
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

void Replay(const std::filesystem::path& path, int mutations) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> data{std::istreambuf_iterator<char>(file), {}};
  if (mutations == 0) std::fprintf(stderr, "%s\n", path.c_str());
  input = data;
  RunOnce();
  constexpr size_t kLargest = 8000;  // bytes; larger inputs are not mutated (chosen)
  if (data.size() > kLargest) return;
  for (int i = 0; i < mutations; ++i) {
    input = data;
    input.resize(kLargest);
    size_t size = data.size();
    for (unsigned left = 1 + random_bits() % 4; left > 0; --left)
      size = tokamak::fuzz::MutateText(input.data(), size, kLargest,
                                       static_cast<unsigned>(random_bits()));
    input.resize(size);
    RunOnce();
  }
}

std::vector<std::filesystem::path> FilesBelow(const char* location_path) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(location_path)) {
    if (std::filesystem::exists(location_path)) files.emplace_back(location_path);
    return files;
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(location_path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

}  // namespace

// A stand-in for libFuzzer's mutator: flips some bytes or truncates.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t) {
  if (size == 0) return 0;
  if (random_bits() % 8 == 0) return random_bits() % size;
  for (unsigned i = 0; i < 1 + random_bits() % 4; ++i)
    data[random_bits() % size] ^= static_cast<uint8_t>(1u << random_bits() % 8);
  return size;
}

int main(int argc, char** argv) {
  int count = 0, mutations = 0;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM}) signal(number, OnCrash);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--mutate") == 0 && i + 1 < argc) {
      mutations = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      random_bits.seed(static_cast<unsigned>(std::atoi(argv[++i])));
    } else if (std::strcmp(argv[i], "--crashes") == 0 && i + 1 < argc) {
      crash_file = std::string(argv[++i]) + "/crash-" + std::to_string(getpid());
    } else {
      for (const auto& path : FilesBelow(argv[i])) {
        alarm(60 + static_cast<unsigned>(mutations));
        Replay(path, mutations);
        ++count;
      }
    }
  }
  std::printf("tally: %d passed, 0 failed, 0 skipped\n", count);
  return 0;
}
