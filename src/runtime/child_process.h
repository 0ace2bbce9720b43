#pragma once

#include <chrono>
#include <cstddef>
#include <string>

// Work that may crash, in a child process.
namespace tokamak {

// Memory that a child process and its parent share. Zeroed.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  // Null if there is no memory.
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

// Runs `work(data)` in a forked process, which has the calling thread alone: the work must not wait
// for other threads. Returns an empty string, or why it did not end: "SIGSEGV", "it ran longer than
// 60 s".
std::string RunInChild(void (*work)(void* data), void* data, std::chrono::milliseconds time);

}  // namespace tokamak
