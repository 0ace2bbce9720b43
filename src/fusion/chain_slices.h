#pragma once

#include <optional>
#include <unordered_map>

#include "analysis/dot_chains.h"
#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// The chains of dots of a computation (analysis/dot_chains.h), by their last instructions. They
// depend on the instructions alone, so all candidate plans of a computation share them.
class ChainSlices {
 public:
  explicit ChainSlices(const Machine& machine) : has_kernels_(machine.async_multiply) {}
  ChainSlices(const ChainSlices&) = delete;
  ChainSlices& operator=(const ChainSlices&) = delete;

  // Whether the machine has kernels for chains.
  bool has_kernels() const { return has_kernels_; }
  // The chain that ends at a dot or a reduction, with its own reductions inside if one pass over
  // the columns suffices for them; null if there is none. Found on the first request, and valid as
  // long as this object.
  const ChainSlice* BestOf(const Instr& last);

 private:
  bool has_kernels_;
  std::unordered_map<const Instr*, std::optional<ChainSlice>> slices_;
};

}  // namespace tokamak
