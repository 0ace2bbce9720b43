#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "gen/row_levels.h"

// Values of row elements that a GPU row kernel caches between its passes over the row.

namespace tokamak::gpu {

// Where an element is cached: at its index among the thread's elements, in registers, or, if
// `in_shared` is a value (ok()), at that index in shared memory.
struct CachedElement {
  Scalar number, in_shared;
};

// Values of a row's elements that live from one pass over the row to later ones: those of a
// thread's first elements in registers, those of the others in shared memory. The passes are the
// levels of reductions, then the pass that writes elements. Every pass assigns the same elements to
// a thread, which reads back only what it stored: no barriers are needed, in shared memory either.
//
// Usage: Find; if the result fits, Cache(count, shared_count); then, in the code of each element,
// Bind(pass, ...) first and Cache(pass, ...) last.
class CachedValues {
 public:
  CachedValues(KernelBuilder& b, ElementEmitter& emitter) : b_(b), emitter_(emitter) {}

  // Finds values of arrays of dimensions `dims` that two or more passes use; `last`: the values
  // that the pass after all reductions uses. Returns the maximum over all pass boundaries of the
  // 32-bit registers per element that live values take.
  int64_t Find(const FusedRegion& region, const RowLevels& levels, const Dims& dims,
               const std::vector<const Instr*>& last);
  // Declares the arrays: registers for the values of a thread's first `count` elements, shared
  // memory for those of `shared_count` other elements of the thread block. Unless this is called,
  // nothing is cached, and Bind and Cache(pass, ...) emit nothing.
  void Cache(int64_t count, int64_t shared_count = 0);
  // Shared memory per element, in bytes. An array is reused once its value is dead.
  int64_t SharedBytes() const;

  // Called at the start and the end of the code for one element in a pass: Bind reads the values
  // that earlier passes cached, Cache stores those that this pass computes first.
  void Bind(size_t pass, const Coordinates& at, const CachedElement& cached_at);
  void Cache(size_t pass, const Coordinates& at, const CachedElement& cached_at);

 private:
  struct Value {
    const Instr* instr = nullptr;
    size_t made = 0, last = 0;  // the pass that computes it, and the last pass that uses it
    std::array<ArrayId, 2> arrays{}, shared_arrays{};
    bool is_complex = false;
  };
  // A shared-memory array, used by values with disjoint live ranges.
  struct Slot {
    ScalarType type = ScalarType::kF32;
    size_t last = 0;  // last pass that uses it
    ArrayId array{};
  };
  // Assigns values to shared-memory arrays. of_values[i]: the slots of the components of value i.
  std::vector<Slot> FindSlots(std::vector<std::vector<size_t>>& of_values) const;
  // The array and index of a component (real or imaginary) of a cached value.
  std::pair<ArrayId, Scalar> SlotOf(const Value& value, size_t part,
                                    const CachedElement& element) const;
  // The cached values; empty if Cache was not called.
  const std::vector<Value>& cached() const { return is_cached_ ? values_ : none_; }
  void Visit(const Instr& instr, size_t pass, const FusedRegion& region, const Dims& dims);
  int64_t MaxRegisters(size_t passes) const;

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  std::unordered_map<const Instr*, size_t> first_;  // first pass that uses it
  std::vector<Value> values_;
  const std::vector<Value> none_;
  bool is_cached_ = false;
};

}  // namespace tokamak::gpu
