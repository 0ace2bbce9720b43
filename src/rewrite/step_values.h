#pragma once

// The values that the steps of a loop take, one a step, as one function of the number of the step:
// how re-rolling turns `x[0]`, `x[1]` ... into `x[i]`.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Writes the body of a loop that is being made. What it takes from outside becomes a carried value
// that stays.
class StepWriter {
 public:
  // `count` is the number of steps; the counter is the body's parameter 0, an s32 from 0 on.
  // Tables of numbers may take `table_bytes` in all.
  StepWriter(Computation& body, int64_t count, int64_t table_bytes);

  Computation& body() { return body_; }
  Instr* counter() { return counter_; }
  // A further carried value that starts as `init`. Its number is that of the parameter.
  Instr* Carry(Instr* init);
  // What each parameter from 1 on starts as.
  const std::vector<Instr*>& inits() const { return inits_; }

  // The value in the body that is values[i] in step i; null when no function of i is found: they
  // are all the same; constants; slices of one array; or equal cheap ops of such.
  Instr* Express(const std::vector<Instr*>& values);
  // The scalar of `type` that is numbers[i] in step i.
  Instr* Integer(ElementType type, const std::vector<int64_t>& numbers);
  // A slice of `x` whose starts differ from step to step; `slices` are the slices of the steps.
  Instr* Slice(Instr* x, const std::vector<Instr*>& slices);
  // A copy of `like` on other operands, with the origins of all of `all`.
  Instr* Copy(const Instr& like, std::vector<Instr*> operands, const std::vector<Instr*>& all);
  // Constants of the body.
  Instr* Zero();
  Instr* Scalar(ElementType type, int64_t value);

 private:
  Instr* Express(const std::vector<Instr*>& values, int depth);
  Instr* Outside(Instr* value);
  Instr* Constants(const std::vector<Instr*>& values);
  // reshape(dynamic-slice(table, counter)): row i.
  Instr* Row(Literal table, const Shape& row);
  bool Spend(int64_t bytes);

  Computation& body_;
  int64_t count_, bytes_left_;
  int64_t nodes_left_;
  Instr* counter_;
  std::vector<Instr*> inits_;
  std::unordered_map<const Instr*, Instr*> outside_;
};

}  // namespace tokamak
