#pragma once

#include <unordered_map>
#include <vector>

#include "gen/row_levels.h"

namespace tokamak::gpu {

// Values of a row's elements that stay in registers from one pass over the row to later ones. The
// passes are the levels of reductions, then the one that writes elements.
class KeptValues {
 public:
  KeptValues(KernelBuilder& b, ElementEmitter& emitter) : b_(b), emitter_(emitter) {}

  // Finds what two passes or more need of arrays of dimensions `dims`; `last`: what the pass after
  // all reductions needs. Registers for one element, at most.
  int64_t Find(const Region& region, const RowLevels& levels, const Dims& dims,
               const std::vector<const Instr*>& last);
  // Keeps that of a thread's `count` elements; nothing when it is not called.
  void Keep(int64_t count);

  // At the beginning and the end of the code for one element, the thread's `number`-th, in a pass.
  void Bind(size_t pass, const Coordinates& at, Scalar number);
  void Keep(size_t pass, const Coordinates& at, Scalar number);

 private:
  struct Value {
    const Instr* instr = nullptr;
    size_t made = 0, last = 0;  // passes
    std::array<ArrayId, 2> arrays{};
    bool is_complex = false;
  };
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
