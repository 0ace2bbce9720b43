#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/simulate.h"
#include "support/error.h"

namespace tokamak {

// Who accesses memory, and between which barriers.
struct SimAgent {
  uint32_t team = 0;  // from 1
  uint32_t thread = 0, warp = 0;
  uint32_t block_epoch = 0, warp_epoch = 0;  // barriers that the team and the warp have passed
  uint32_t run = 0;                          // which run of a vector loop of this thread; 0: none
  uint16_t lane = 0;
};
inline constexpr uint16_t kAllLanes = UINT16_MAX;

// The arrays of one launch, and for each element that can be stored to, who last stored to it and
// who has read it since: enough to tell an access that nothing orders behind another one.
class SimMemory {
 public:
  // `threads`: of a team. `copies`: per array, lanes that have their own.
  SimMemory(const Kernel& kernel, std::span<const SimArgument> arguments,
            std::span<const uint32_t> copies, uint32_t threads);

  // False after a fault.
  bool Read(const SimAgent& agent, uint32_t array, int64_t index, Bits& value);
  bool Store(const SimAgent& agent, uint32_t array, int64_t index, Bits value);
  // Whether other threads can see what is stored to it.
  bool IsShared(uint32_t array) const { return arrays_[array].shared; }

  ErrorCode fault() const { return fault_; }
  const std::string& fault_text() const { return fault_text_; }
  int64_t Unwritten(uint32_t argument) const;

 private:
  struct Cell {
    uint32_t team = 0;    // 0: nobody; kSeveral
    uint32_t thread = 0;  // or kSeveral, or kOfWarp with the number of the warp
    uint32_t block_epoch = 0, warp_epoch = 0, run = 0;
    uint16_t lane = 0;
  };
  struct Place {  // of an array
    unsigned char* data = nullptr;
    int64_t elements = 0;
    int bytes = 0;
    uint32_t copies = 1;
    bool tracked = false, is_argument = false, initialized = false, shared = false, own = false;
    int64_t cell_offset = 0;  // in cells, of element 0
    int64_t cells_each = 1;   // cells from one element to the next
    size_t group = 0;         // of arguments that overlap
  };
  struct Group {  // cells
    std::vector<Cell> writers, readers;
  };

  void AddArguments(std::span<const SimArgument> arguments);
  int64_t Element(const SimAgent& agent, const Place& place, int64_t index) const;
  bool Bounds(uint32_t array, int64_t index, bool store);
  static bool Unordered(const Cell& cell, const SimAgent& agent);
  static void NoteRead(Cell& cell, const SimAgent& agent);
  bool Race(uint32_t array, int64_t index, const Cell& other, const char* mine, const char* theirs);

  const Kernel& kernel_;
  std::vector<Place> arrays_;
  std::vector<Group> groups_;
  std::vector<std::vector<unsigned char>> locals_;
  ErrorCode fault_{};
  std::string fault_text_;
};

}  // namespace tokamak
