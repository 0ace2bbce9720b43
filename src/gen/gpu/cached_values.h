#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "gen/row_levels.h"

// Values of row elements that a GPU row kernel caches between its passes over the row.

namespace tokamak::gpu {

// Where an element is cached: at its index among the thread's elements, in registers, or, if
// `shared_index` is a value (ok()), at that index in shared memory.
struct CachedElement {
  Scalar register_index, shared_index;
};

// Values of a row's elements that live from one pass over the row to later ones: those of a
// thread's first elements in registers, those of the others in shared memory. The passes are the
// levels of reductions, then the pass that writes elements. Every pass assigns the same elements to
// a thread, which reads back only what it stored: no barriers are needed, not even for shared
// memory.
//
// Usage: Find; if the result fits, Allocate(count, shared_count); then, in the code of each
// element, LoadCached(pass, ...) first and StoreCached(pass, ...) last.
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
  // nothing is cached, and LoadCached and StoreCached(pass, ...) emit nothing.
  void Allocate(int64_t count, int64_t shared_count = 0);
  // Shared memory per element, in bytes. An array is reused once its value is dead.
  int64_t SharedBytes() const;

  // Called at the start and the end of the code for one element in a pass: LoadCached reads the
  // values that earlier passes cached, StoreCached stores those that this pass computes first.
  void LoadCached(size_t pass, const Coordinates& at, const CachedElement& cached_at);
  void StoreCached(size_t pass, const Coordinates& at, const CachedElement& cached_at);

 private:
  struct Value {
    const Instr* instr = nullptr;
    size_t first_pass = 0,
           last_pass = 0;  // the pass that computes it, and the last pass that uses it
    ElementArrays arrays{}, shared_arrays{};
    bool is_complex = false;
  };
  // A shared-memory array, used by values with disjoint live ranges.
  struct Slot {
    ScalarType type = ScalarType::kF32;
    size_t last_pass = 0;  // last pass that uses it
    ArrayId array{};
  };
  // Assigns values to shared-memory arrays. slots_of_value[i]: slots of the components of value i.
  std::vector<Slot> FindSlots(std::vector<std::vector<size_t>>& slots_of_value) const;
  // The location of a component (real or imaginary) of a cached value: array and index, in
  // registers or in shared memory.
  std::pair<ArrayId, Scalar> LocationOf(const Value& value, size_t component,
                                        const CachedElement& element) const;
  // The cached values; empty if Allocate was not called.
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
