#pragma once

// Properties of while loops, derived from condition and body: loop-invariant and induction
// variables, trip count, arrays that are accessed one slice per iteration. Analysis only.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// A while loop whose carried values are arrays, not tuples (flatten-tuples makes it so). Valid
// until one of the three computations is edited.
struct WhileLoop {
  Instr* instr = nullptr;
  Computation *condition = nullptr, *body = nullptr;

  size_t size() const { return instr->operand_count(); }
  Instr* init(size_t i) const { return instr->operand(i); }
  Instr* in_condition(size_t i) const { return condition->parameter(i); }
  Instr* in_body(size_t i) const { return body->parameter(i); }
  // The value of carry i for the next iteration.
  Instr* next(size_t i) const { return size() == 1 ? body->root() : body->root()->operand(i); }
  bool IsInvariant(size_t i) const { return next(i) == in_body(i); }
};

// Nullopt if `instr` is not a while loop, carries a tuple, or its body does not end in a tuple
// instruction.
std::optional<WhileLoop> LoopOf(Instr* instr);

// Parameter number of `instr` in its computation; nullopt if it is not a parameter.
std::optional<size_t> ParameterNumber(const Instr* instr);

// The constant scalar integer that a value of the body or the condition is: a constant, or a
// loop-invariant carry whose initial value is constant.
std::optional<int64_t> KnownInteger(const WhileLoop& loop, const Instr* value);

// An induction variable: a carried scalar integer that grows by `step` per iteration, with
// wrap-around.
struct Induction {
  ElementType type{};
  std::optional<int64_t> start;  // if it is constant
  int64_t step = 0;
};
std::optional<Induction> InductionOf(const WhileLoop& loop, size_t i);

// Trip count of `for (x = start; x DIRECTION limit; x += step)` on integers of `type`, which wrap.
// Nullopt if the loop never ends, or ends only after an order comparison has overflowed.
std::optional<uint64_t> CountTrips(ElementType type, int64_t start, int64_t step, int64_t limit,
                                   CompareDirection direction);

// The exact trip count; nullopt if it is unknown or infinite.
std::optional<uint64_t> TripCount(const WhileLoop& loop);

// `start + count * step` in `type`, with wrap-around. Requires a constant start.
int64_t ValueAfter(const Induction& induction, uint64_t count);

// Each iteration accesses exactly one slice of a carried array. An induction variable is the start
// of the slice in one dimension.
struct ScanAccess {
  size_t carry = 0, induction = 0;
  int64_t dimension = 0, size = 1;  // slice size in that dimension
  bool is_write = false;            // else a read of a loop-invariant array
};
// The scan pattern: slices of inputs (xs) and updates of stacked outputs (ys), in the order of the
// carried values.
std::vector<ScanAccess> ScanAccesses(const WhileLoop& loop);

// Attribute of a strip-mined loop: its body is a loop of up to some number of iterations that is
// one launch and checks the condition itself.
inline constexpr std::string_view kChunksAttribute = "tokamak.chunks";
bool RunsInChunks(const Instr& loop);

}  // namespace tokamak
