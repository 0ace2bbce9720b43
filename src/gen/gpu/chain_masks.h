#pragma once

#include <unordered_map>
#include <vector>

#include "gen/element.h"
#include "gen/gpu/chain_tiling.h"

namespace tokamak::gpu {

// Preds along the scores that do not depend on them and cost much, as those of dropout: random
// bits. They are computed while the multiplies run, a few at a time in a loop, and kept as bits,
// one for each of the thread's scores.
//
// Computed beside the weights they would have few registers, and their code, unrolled for all
// scores, would not fit the instruction cache.
class ChainMasks {
 public:
  // `scores`: of a thread.
  ChainMasks(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
             const ChainRegion& found, int64_t scores);

  bool empty() const { return masks_.empty(); }
  void Declare();
  // The scores whose bits are computed at once, and the scores of one word of bits. The number of a
  // thread's scores is a multiple of both. Chosen: the rounds of eight threefry are enough
  // independent work, and need about 30 registers.
  static constexpr int64_t kAtOnce = 8;
  int64_t word_bits() const { return word_bits_; }

  // Clears a word; begins, sets and keeps the bits of kAtOnce scores, which follow those of the
  // call before in the word. `number`: of the score among them. `at`: its coordinates.
  void Clear(Scalar word);
  void Begin();
  void Set(Scalar number, const Coordinates& at);
  void Keep(Scalar word);
  // Tells the emitter the preds of score `number`.
  void Memoize(Scalar number, const Coordinates& at);

 private:
  struct Mask {
    const Instr* pred = nullptr;
    Dims along;
    ArrayId words{}, bits{};
  };
  void Find(const Instr& instr, const Dims& along);
  bool DrawsRandomBits(const Instr& instr);
  static Coordinates AtOf(const Mask& mask, const Coordinates& at, Scalar zero);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const FusedRegion& region_;
  const ChainRegion& found_;
  int64_t scores_ = 0, word_bits_ = 0;
  std::vector<Mask> masks_;
  std::unordered_map<const Instr*, bool> draws_;
};

}  // namespace tokamak::gpu
