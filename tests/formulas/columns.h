#pragma once

// A fast evaluator of kernel formulas over columns of arguments, for tok_formula_tests.

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Many values of one scalar, each in the low bits of its word.
using Column = std::vector<Bits>;

// Evaluates pure values of a kernel over columns; load nodes read the column of their argument. It
// evaluates one primitive at a time over all rows with the processor's arithmetic, which is much
// faster than EvaluatePrim row by row (the test compares the two).
class ColumnEvaluator {
 public:
  // A row for which a primitive's result is unspecified: a formula must never produce one.
  struct Open {
    Prim prim;
    size_t row;
  };

  ColumnEvaluator(const Kernel& kernel, std::vector<ValueId> roots);
  // Takes columns of the arguments, all of one length; returns the columns of the roots.
  std::vector<Column> Run(std::span<const Column> arguments);
  const std::vector<Open>& open() const { return open_; }
  size_t node_count() const { return order_.size(); }
  // Uses EvaluatePrim instead, for comparison.
  void set_slow(bool slow) { slow_ = slow; }

 private:
  void RunNode(ValueId id, size_t rows);
  void RunNodeSlowly(ValueId id, size_t rows);

  const Kernel& kernel_;
  std::vector<ValueId> roots_, order_;
  std::vector<Column> columns_;  // by node
  std::span<const Column> arguments_;
  std::vector<Open> open_;
  bool slow_ = false;
};

}  // namespace tokamak
