#pragma once

// What a while does, told from its condition and body: which carried values stay or count, how
// often it runs, which arrays it reads or writes slice by slice. Answers questions, changes
// nothing.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// A while that carries values one by one (no tuple among them; rewrite by flatten-tuples). Pointers
// hold as long as nobody edits the three computations.
struct WhileLoop {
  Instr* instr = nullptr;
  Computation *condition = nullptr, *body = nullptr;

  size_t size() const { return instr->operand_count(); }
  Instr* init(size_t i) const { return instr->operand(i); }
  Instr* in_condition(size_t i) const { return condition->parameter(i); }
  Instr* in_body(size_t i) const { return body->parameter(i); }
  // The value that the body gives for the next round.
  Instr* next(size_t i) const { return size() == 1 ? body->root() : body->root()->operand(i); }
  bool IsInvariant(size_t i) const { return next(i) == in_body(i); }
};

// Null for what is no while, carries a tuple, or whose body does not end in a tuple made there.
std::optional<WhileLoop> LoopOf(Instr* instr);

// Parameter number of `instr` in its computation; nothing when it is none.
std::optional<size_t> ParameterNumber(const Instr* instr);

// The scalar integer that a value of the body or of the condition always is: a constant, or a
// carried value that starts as one and stays.
std::optional<int64_t> KnownInteger(const WhileLoop& loop, const Instr* value);

// A carried scalar integer that grows by `step` in each round, with wrap-around.
struct Induction {
  ElementType type{};
  std::optional<int64_t> start;  // when it is constant
  int64_t step = 0;
};
std::optional<Induction> InductionOf(const WhileLoop& loop, size_t i);

// Rounds of `for (x = start; x DIRECTION limit; x += step)` on integers of `type`, which wrap.
// Nothing when it never ends, or ends only after an overflow of an order comparison.
std::optional<uint64_t> CountTrips(ElementType type, int64_t start, int64_t step, int64_t limit,
                                   CompareDirection direction);

// How often the body runs: exactly, or unknown (perhaps for ever).
std::optional<uint64_t> TripCount(const WhileLoop& loop);

// The integer `start + count * step` of `type`, which wraps.
int64_t ValueAfter(const Induction& induction, uint64_t count);

// A carried array of which each round touches one slice, at the place that an induction variable
// names in one dimension, and nothing else.
struct ScanAccess {
  size_t carry = 0, induction = 0;
  int64_t dimension = 0, size = 1;  // of the slice in that dimension
  bool is_write = false;            // else read: the array itself stays
};
// The scan pattern: slices in, updates out. In the order of the carried values.
std::vector<ScanAccess> ScanAccesses(const WhileLoop& loop);

// A loop that was strip-mined has this attribute: its body is a loop of some iterations, one
// launch, which looks at the condition itself.
inline constexpr std::string_view kChunksAttribute = "tokamak.chunks";
bool RunsInChunks(const Instr& loop);

}  // namespace tokamak
