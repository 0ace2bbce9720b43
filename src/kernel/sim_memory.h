#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/sim_clocks.h"
#include "kernel/sim_order.h"
#include "kernel/simulate.h"
#include "support/error.h"

namespace tokamak {

// Simulated memory with race detection (simulate.h). Every element has a shadow cell with its last
// writer and its readers since; two accesses conflict if at least one is a store and they are
// unordered (sim_order.h).

// The arrays of one launch. For each writable element the shadow cells record the last writer and
// the readers since, which suffices to detect an access that is unordered with an earlier one.
class SimMemory {
 public:
  // `threads`: threads per block. `copies`: per array, the number of private lane copies.
  SimMemory(const Kernel& kernel, std::span<const SimArgument> arguments,
            std::span<const uint32_t> copies, uint32_t threads);

  // How the accesses of the current thread block are ordered: by clocks, or if null by epochs.
  void OrderBy(ClockOrder* clocks) { clocks_ = clocks; }

  // Both return false after an error.
  bool Read(const SimAgent& agent, uint32_t array, int64_t index, Bits& value);
  bool Store(const SimAgent& agent, uint32_t array, int64_t index, Bits value);
  // Whether other threads can observe stores to the array.
  bool IsShared(uint32_t array) const { return arrays_[array].shared; }

  ErrorCode error_code() const { return error_code_; }
  const std::string& error_text() const { return error_text_; }
  // Of an uninitialized element: which one it is.
  uint32_t error_array() const { return error_array_; }
  int64_t error_index() const { return error_index_; }
  int64_t CountUnwritten(uint32_t argument) const;

 private:
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
    std::vector<AccessCell> writers, readers;
  };

  void AddArguments(std::span<const SimArgument> arguments);
  int64_t Element(const SimAgent& agent, const ArrayStorage& storage, int64_t index) const;
  std::string NameOf(const SimAgent& agent, uint32_t array, int64_t index, const char* does) const;
  bool Bounds(const SimAgent& agent, uint32_t array, int64_t index, bool store);
  template <SimOrder Order>
  bool ReadIn(Order& order, const SimAgent& agent, uint32_t array, int64_t index, Bits& value);
  template <SimOrder Order>
  bool StoreIn(Order& order, const SimAgent& agent, uint32_t array, int64_t index, Bits value);
  template <SimOrder Order>
  bool Race(const Order& order, const SimAgent& agent, const AccessCell& other, AccessKind kind,
            const std::string& mine, const char* theirs);

  const Kernel& kernel_;
  ClockOrder* clocks_ = nullptr;
  EpochOrder epochs_;
  std::vector<ArrayStorage> arrays_;
  std::vector<ShadowCells> shadow_;
  std::vector<std::vector<unsigned char>> locals_;
  ErrorCode error_code_{};
  std::string error_text_;
  uint32_t error_array_ = 0;
  int64_t error_index_ = 0;
};

}  // namespace tokamak
