#pragma once

#include <unordered_map>
#include <vector>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Memoized hashes of closed computations. A computation in normal form never changes.
class ComputationHashes {
 public:
  uint64_t Of(const Computation& computation);
  // Whether the instruction has side effects, directly or through calls.
  bool Acts(const Instr& instr);
  bool Acts(const Computation& computation);

 private:
  std::unordered_map<const Computation*, uint64_t> known_;
  std::unordered_map<const Computation*, bool> acts_;
};

// A computation under construction in normal form. Equal instructions are created only once (hash
// consing), and each has a hash of the value it computes that does not depend on the order of
// instructions.
class NormalGraph {
 public:
  NormalGraph(Computation* target, ComputationHashes* called)
      : target_(target), called_hashes_(called) {}

  // The instruction for op(operands), simplified; possibly one of the operands.
  Instr* Make(Op op, const Shape& shape, std::vector<Instr*> operands, const Attrs& attrs = {},
              std::vector<Computation*> called = {}, size_t captures = 0);
  // Like Make, without simplification.
  Instr* Intern(Op op, const Shape& shape, std::vector<Instr*> operands, const Attrs& attrs = {},
                std::vector<Computation*> called = {}, size_t captures = 0);
  // Never shared; for instructions with side effects.
  Instr* Append(Op op, const Shape& shape, std::vector<Instr*> operands, const Attrs& attrs,
                std::vector<Computation*> called, size_t captures);
  Instr* Parameter(int64_t number, const Shape& shape, uint64_t colour);
  Instr* Constant(const Literal& literal);

  Computation* target() const { return target_; }
  uint64_t HashOf(const Instr* instr) const { return hashes_.at(instr); }

 private:
  uint64_t ValueHash(Op op, const Shape& shape, std::span<Instr* const> operands,
                     const Attrs& attrs, std::span<Computation* const> called) const;

  Computation* target_;
  ComputationHashes* called_hashes_;
  std::unordered_multimap<uint64_t, Instr*> table_;
  std::unordered_map<const Instr*, uint64_t> hashes_;
};

// One simplification step: returns a simpler form of op(operands), or null if there is none.
Instr* Simplify(NormalGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands,
                const Attrs& attrs, std::span<Computation* const> called);

// Hashes of the values of a closed computation, independent of the order of its instructions.
// Parameters hash by number unless `colours` overrides them.
InstrMap<uint64_t> ValueHashes(const Computation& computation, ComputationHashes& called,
                               std::span<const uint64_t> colours = {});

}  // namespace tokamak
