#pragma once

#include <unordered_map>
#include <vector>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Hashes of what closed computations compute, remembered: a computation in
// normal form does not change any more.
class ComputationHashes {
 public:
  uint64_t Of(const Computation& computation);
  // Whether it does more than give a value: it has side effects, or calls what has.
  bool Acts(const Instr& instr);
  bool Acts(const Computation& computation);

 private:
  std::unordered_map<const Computation*, uint64_t> known_;
  std::unordered_map<const Computation*, bool> acts_;
};

// A computation under construction in normal form: an instruction that is
// already there is never made twice, and each has a hash of the value it
// computes, which does not depend on the order of instructions.
class NormalGraph {
 public:
  NormalGraph(Computation* target, ComputationHashes* called)
      : target_(target), called_hashes_(called) {}

  // The instruction for op(operands), simplified; perhaps one of the operands.
  Instr* Make(Op op, const Shape& shape, std::vector<Instr*> operands, const Attrs& attrs = {},
              std::vector<Computation*> called = {}, size_t captures = 0);
  // Like Make, without simplification.
  Instr* Intern(Op op, const Shape& shape, std::vector<Instr*> operands, const Attrs& attrs = {},
                std::vector<Computation*> called = {}, size_t captures = 0);
  // Never shared: what has side effects.
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

// One step of simplification: the value of op(operands) spelled more simply,
// or null when there is nothing to do. .
Instr* Simplify(NormalGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands,
                const Attrs& attrs, std::span<Computation* const> called);

// Hashes of the values of a closed computation, whatever the order of its
// instructions. Parameters hash by number unless `colours` gives them another.
InstrMap<uint64_t> ValueHashes(const Computation& computation, ComputationHashes& called,
                               std::span<const uint64_t> colours = {});

}  // namespace tokamak
