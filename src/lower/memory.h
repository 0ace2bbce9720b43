#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/steps.h"

// Which bytes every value takes. One module owns aliasing: values that are one memory are joined
// here and nowhere else, and copies that this makes needless are dropped.

namespace tokamak {

using MemoryValue = int32_t;                  // a value, by number
inline constexpr MemoryValue kNoMemory = -1;  // of tokens

// The life of values is counted in steps of the whole program, loops' bodies where they stand. What
// lives across a loop lives through all of it.
class MemoryPlan {
 public:
  // A value in the arena, or one whose memory is given (a parameter, a constant).
  MemoryValue New(int64_t bytes);
  MemoryValue NewFixed(int64_t bytes, int32_t memory);

  int64_t now() const { return now_; }
  int64_t Tick() { return ++now_; }
  // The step at `now` writes it, reads it.
  void Define(MemoryValue value);
  void Use(MemoryValue value);
  // What is used between the two and was there before lives on to the end.
  size_t BeginLoop();
  void EndLoop(size_t mark, int64_t begin);

  // A copy was put down at `now`: when its source is read no more, both may be one.
  void AddCopy(MemoryValue to, MemoryValue from);
  // A loop's body gives `next` for the value that it carries in `carry`. Joins them when the old
  // value is dead by the time the new one is written. To be asked when the body is complete, before
  // its closing copies, but after all else that reads the old value.
  bool JoinCarry(MemoryValue carry, MemoryValue next);
  // The same, when they cannot be joined: both live through the whole loop, which began at `begin`,
  // so that they can change roles from round to round. False when they cannot: `next` is not this
  // loop's own, or is another carry's already.
  bool PairCarry(MemoryValue carry, MemoryValue next, int64_t begin);
  // A branch that began at `begin` gives `value` for the conditional's result, which nothing inside
  // reads. Joins them when the branch made it.
  bool JoinBranch(MemoryValue result, MemoryValue value, int64_t begin);
  // The kernel at `now` may write `output` over `input`.
  void MayShare(MemoryValue output, MemoryValue input);
  // The value is to lie in a result's memory; false when it cannot, and must be copied there. The
  // memory may be that of parameter `donor` (or kNoMemory).
  bool PlaceInResult(MemoryValue value, int32_t memory, MemoryValue donor);

  // Joins what copies allow, and gives every value its place.
  void Assign();
  Place PlaceOf(MemoryValue value) const;
  bool SameMemory(MemoryValue x, MemoryValue y) const { return PlaceOf(x) == PlaceOf(y); }
  int64_t arena_bytes() const { return arena_bytes_; }
  int64_t bytes(MemoryValue value) const { return values_[static_cast<size_t>(value)].bytes; }
  // "" when no two values whose lives overlap share bytes; else the first two, in words.
  std::string Check() const;

  // A value of the arena, and the last step that knows it.
  struct Life {
    int64_t def, last, offset, bytes;
  };
  // All of them, those that die first before the others.
  std::vector<Life> Lives() const;

 private:
  struct Value {
    int64_t bytes = 0;
    int64_t def = INT64_MAX, last = -1;
    int32_t memory = 0;  // 0: the arena
    bool is_given = false;
    MemoryValue parent = kNoMemory;
    MemoryValue donor = kNoMemory;  // of a result: the parameter whose memory it may be
    int64_t offset = -1;
  };
  struct Copy {
    MemoryValue to, from;
    int64_t at;
  };
  struct Share {
    MemoryValue output, input;
    int64_t at;
  };

  MemoryValue Find(MemoryValue value) const;
  Value& Root(MemoryValue value) { return values_[static_cast<size_t>(Find(value))]; }
  const Value& Root(MemoryValue value) const { return values_[static_cast<size_t>(Find(value))]; }
  void Join(MemoryValue into, MemoryValue value);
  void ShareResults();
  // Whether `output`, written first at `at`, may lie over `input`: that one is read no more by
  // then, or by this very step, which allows it.
  bool MayOverwrite(MemoryValue input, MemoryValue output, int64_t at) const;

  std::vector<Value> values_;
  std::vector<Copy> copies_;
  std::vector<Share> shares_;
  std::vector<MemoryValue> uses_;  // a log, for loops
  int64_t now_ = 0, arena_bytes_ = 0;
};

}  // namespace tokamak
