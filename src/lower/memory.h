#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/steps.h"

// The memory plan: buffer assignment for all values of a program. It is the only place that decides
// about aliasing. Values that can occupy the same memory are joined (union-find), and copies
// between joined values are dropped.
//
// The Lowerer reports every step in program order. A live range is [def, last] in step numbers;
// arena offsets are then assigned by a linear scan with a best-fit free list:
//
//   step       1    2    3    4    5            offset
//   a          def  use                         0
//   b               def       use               64     a is still live at step 2
//   c                    def  use  use          0      a is dead: its bytes are reused
//   d                         def  use          64     MayAlias(d, b): b dies in this step

namespace tokamak {

using MemoryValue = int32_t;                  // number of a value
inline constexpr MemoryValue kNoMemory = -1;  // tokens have no memory

// Live ranges count the steps of the whole program, with loop bodies in line. A value that is
// defined before a loop and used in it is live until the loop ends.
class MemoryPlan {
 public:
  // A value in the arena; a value in a fixed memory (a parameter, a constant).
  MemoryValue New(int64_t bytes);
  MemoryValue NewFixed(int64_t bytes, int32_t memory);

  int64_t now() const { return now_; }
  int64_t Tick() { return ++now_; }
  // The step at `now` writes the value; reads it.
  void Define(MemoryValue value);
  void Use(MemoryValue value);
  // A value defined before `begin` and used between BeginLoop and EndLoop is live until the loop
  // ends. `mark` is the result of BeginLoop.
  size_t BeginLoop();
  void EndLoop(size_t mark, int64_t begin);

  // The step at `now` is a copy. The two values are joined later if the source is dead after it.
  void AddCopy(MemoryValue to, MemoryValue from);
  // The loop body computes `next` as the next value of `carry`. Joins them if the old value is dead
  // when the new one is written. Call it when the body is complete: after everything that reads the
  // old value, before the closing copies.
  bool JoinCarry(MemoryValue carry, MemoryValue next);
  // If JoinCarry fails: keeps both live throughout the loop, which started at `begin`, so that
  // iterations can alternate between the two buffers (alternate.h). False if that is impossible:
  // `next` is not defined in this loop, or already belongs to another carry.
  bool PairCarry(MemoryValue carry, MemoryValue next, int64_t begin);
  // A branch that started at `begin` returns `value` as the result of the conditional, which
  // nothing in the branch reads. Joins them if the branch defines the value.
  bool JoinBranch(MemoryValue result, MemoryValue value, int64_t begin);
  // The kernel at `now` permits `output` to overwrite `input` in place.
  void MayAlias(MemoryValue output, MemoryValue input);
  // Assigns the value to a result's memory. False if that is impossible and the value must be
  // copied. The memory may be that of the donated parameter `donor` (or kNoMemory).
  bool AssignToResult(MemoryValue value, int32_t memory, MemoryValue donor);

  // Joins the values of copies where possible, then assigns a slice to every value.
  void Assign();
  BufferSlice SliceOf(MemoryValue value) const;
  bool SameMemory(MemoryValue x, MemoryValue y) const { return SliceOf(x) == SliceOf(y); }
  int64_t arena_bytes() const { return arena_bytes_; }
  int64_t bytes(MemoryValue value) const { return values_[static_cast<size_t>(value)].bytes; }
  // Empty if no two simultaneously live values overlap; else a message about the first such pair.
  std::string Check() const;

  // The live range and bytes of a value in the arena.
  struct Life {
    int64_t def, last, offset, bytes;
  };
  // All arena values, sorted by the end of their live ranges.
  std::vector<Life> Lives() const;

 private:
  struct Value {
    int64_t bytes = 0;
    int64_t def = INT64_MAX, last = -1;
    int32_t memory = 0;  // 0 is the arena
    bool is_external = false;
    MemoryValue parent = kNoMemory;
    MemoryValue donor = kNoMemory;  // of a result: the parameter whose memory it may reuse
    int64_t offset = -1;
  };
  struct Copy {
    MemoryValue to, from;
    int64_t at;
  };
  struct Alias {
    MemoryValue output, input;
    int64_t at;
  };

  MemoryValue Find(MemoryValue value) const;
  Value& Root(MemoryValue value) { return values_[static_cast<size_t>(Find(value))]; }
  const Value& Root(MemoryValue value) const { return values_[static_cast<size_t>(Find(value))]; }
  void Join(MemoryValue into, MemoryValue value);
  void ShareResults();
  // Whether `output`, first written at step `at`, may overwrite `input`: `input` is dead by then,
  // or its last use is this step and the step permits it (MayAlias, AddCopy).
  bool MayOverwrite(MemoryValue input, MemoryValue output, int64_t at) const;

  std::vector<Value> values_;
  std::vector<Copy> copies_;
  std::vector<Alias> aliases_;
  std::vector<MemoryValue> uses_;  // log of uses, for EndLoop
  int64_t now_ = 0, arena_bytes_ = 0;
};

}  // namespace tokamak
