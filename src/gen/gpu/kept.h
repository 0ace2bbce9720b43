#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "gen/row_levels.h"

namespace tokamak::gpu {

// Where values of an element are kept: its number among the thread's, or, when that is given, its
// place in team memory.
struct KeptElement {
  Scalar number, in_team;
};

// Values of a row's elements that stay from one pass over the row to later ones: those of a
// thread's first elements in its registers, of the others in team memory. The passes are the levels
// of reductions, then the one that writes elements.
class KeptValues {
 public:
  KeptValues(KernelBuilder& b, ElementEmitter& emitter) : b_(b), emitter_(emitter) {}

  // Finds what two passes or more need of arrays of dimensions `dims`; `last`: what the pass after
  // all reductions needs. Words for one element, at most.
  int64_t Find(const Region& region, const RowLevels& levels, const Dims& dims,
               const std::vector<const Instr*>& last);
  // Keeps that of a thread's first `count` elements, and of `team_count` others of all threads in
  // team memory; nothing when it is not called.
  void Keep(int64_t count, int64_t team_count = 0);
  // Bytes of team memory for one element; an array is used again when its value is no more needed.
  int64_t TeamBytes() const;

  // At the beginning and the end of the code for one element in a pass.
  void Bind(size_t pass, const Coordinates& at, const KeptElement& kept_at);
  void Keep(size_t pass, const Coordinates& at, const KeptElement& kept_at);

 private:
  struct Value {
    const Instr* instr = nullptr;
    size_t made = 0, last = 0;  // passes
    std::array<ArrayId, 2> arrays{}, team_arrays{};
    bool is_complex = false;
  };
  // Team memory, one array for values that are needed one after the other.
  struct Slot {
    ScalarType type = ScalarType::kF32;
    size_t last = 0;  // the pass that needs the last of them
    ArrayId array{};
  };
  std::vector<Slot> FindSlots(std::vector<std::vector<size_t>>& of_values) const;
  // Where a part of a value is kept.
  std::pair<ArrayId, Scalar> PlaceOf(const Value& value, size_t part,
                                     const KeptElement& element) const;
  // What is kept indeed; those that are only found are not.
  const std::vector<Value>& kept() const { return is_kept_ ? values_ : none_; }
  void Visit(const Instr& instr, size_t pass, const Region& region, const Dims& dims);
  int64_t MostWords(size_t passes) const;

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  std::unordered_map<const Instr*, size_t> first_;  // the pass that needs it first
  std::vector<Value> values_;
  const std::vector<Value> none_;
  bool is_kept_ = false;
};

}  // namespace tokamak::gpu
