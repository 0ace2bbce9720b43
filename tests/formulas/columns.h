#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Many values of one scalar, each in the low bits of its word.
using Column = std::vector<Bits>;

// Evaluates pure values of a kernel over columns: load nodes take those of their argument. A
// primitive at a time over all rows, as a processor computes it, which is many times as fast as
// EvaluatePrim a row at a time (and is compared with that by the test).
class ColumnEvaluator {
 public:
  // What a row met that its primitives leave open: a formula must never get there.
  struct Open {
    Prim prim;
    size_t row;
  };

  ColumnEvaluator(const Kernel& kernel, std::vector<ValueId> roots);
  // Columns of the arguments, all of one length; the columns of the roots.
  std::vector<Column> Run(std::span<const Column> arguments);
  const std::vector<Open>& open() const { return open_; }
  size_t node_count() const { return order_.size(); }
  // Runs EvaluatePrim instead, for comparison.
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
