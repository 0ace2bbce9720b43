#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/simulate.h"
#include "support/error.h"

namespace tokamak {

// Simulated memory with race detection (simulate.h). Every element has a shadow cell with its last
// writer and its readers since; two accesses conflict if at least one is a store and no program
// order or barrier orders them.

// The agent of a memory access (thread block, thread, lane), and its position relative to barriers.
struct SimAgent {
  uint32_t block = 0;  // 1-based
  uint32_t thread = 0, warp = 0;
  uint32_t block_epoch = 0, warp_epoch = 0;  // number of barriers passed
  uint32_t run = 0;  // which execution of a vector loop by this thread; 0: outside of vector loops
  uint16_t lane = 0;
};
// SimAgent::lane of an access by several lanes.
inline constexpr uint16_t kAllLanes = UINT16_MAX;

// The arrays of one launch. For each writable element the shadow cells record the last writer and
// the readers since, which suffices to detect an access that is unordered with an earlier one.
class SimMemory {
 public:
  // `threads`: threads per block. `copies`: per array, the number of private lane copies.
  SimMemory(const Kernel& kernel, std::span<const SimArgument> arguments,
            std::span<const uint32_t> copies, uint32_t threads);

  // Both return false after an error.
  bool Read(const SimAgent& agent, uint32_t array, int64_t index, Bits& value);
  bool Store(const SimAgent& agent, uint32_t array, int64_t index, Bits value);
  // Whether other threads can observe stores to the array.
  bool IsShared(uint32_t array) const { return arrays_[array].shared; }

  ErrorCode error_code() const { return error_code_; }
  const std::string& error_text() const { return error_text_; }
  int64_t CountUnwritten(uint32_t argument) const;

 private:
  struct Cell {
    uint32_t block = 0;   // 0: not accessed yet; or kSeveral
    uint32_t thread = 0;  // or kSeveral, or kOfWarp with the warp number
    uint32_t block_epoch = 0, warp_epoch = 0, run = 0;
    uint16_t lane = 0;
  };
  struct ArrayStorage {
    unsigned char* data = nullptr;
    int64_t elements = 0;
    int bytes = 0;
    uint32_t copies = 1;
    bool tracked = false, is_argument = false, initialized = false, shared = false, own = false;
    int64_t cell_offset = 0;  // index of element 0's first cell
    int64_t cells_each = 1;   // stride between the cells of consecutive elements
    size_t shadow = 0;        // index into shadow_; overlapping arguments share one
  };
  struct ShadowCells {
    std::vector<Cell> writers, readers;
  };

  void AddArguments(std::span<const SimArgument> arguments);
  int64_t Element(const SimAgent& agent, const ArrayStorage& storage, int64_t index) const;
  bool Bounds(uint32_t array, int64_t index, bool store);
  static bool Unordered(const Cell& cell, const SimAgent& agent);
  static void NoteRead(Cell& cell, const SimAgent& agent);
  bool Race(uint32_t array, int64_t index, const Cell& other, const char* mine, const char* theirs);

  const Kernel& kernel_;
  std::vector<ArrayStorage> arrays_;
  std::vector<ShadowCells> shadow_;
  std::vector<std::vector<unsigned char>> locals_;
  ErrorCode error_code_{};
  std::string error_text_;
};

}  // namespace tokamak
