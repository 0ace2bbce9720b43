#pragma once

// Re-rolling: expresses values that differ between the steps of a loop as one function of the step
// number. It turns `x[0]`, `x[1]` ... into `x[i]`.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Writes the body of a loop under construction. Values from outside become loop-invariant carried
// values.
class StepWriter {
 public:
  // `count` is the number of steps; the counter is the body's parameter 0, an s32 that starts at 0.
  // Tables of numbers may use `table_bytes` in total.
  StepWriter(Computation& body, int64_t count, int64_t table_bytes);

  Computation& body() { return body_; }
  Instr* counter() { return counter_; }
  // Adds a carried value that starts as `init` and returns its parameter.
  Instr* Carry(Instr* init);
  // The initial value of each parameter from 1 on.
  const std::vector<Instr*>& inits() const { return inits_; }

  // The value in the body that equals values[i] in step i; null if no function of i is found.
  // Handles identical values, constants, slices of one array, and equal cheap ops applied to such
  // values.
  Instr* Express(const std::vector<Instr*>& values);
  // A scalar of `type` that equals numbers[i] in step i.
  Instr* Integer(ElementType type, const std::vector<int64_t>& numbers);
  // A slice of `x` whose start indices depend on the step; `slices` are the slices of the steps.
  Instr* Slice(Instr* x, const std::vector<Instr*>& slices);
  // A copy of `like` with other operands and the origins of all of `all`.
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
