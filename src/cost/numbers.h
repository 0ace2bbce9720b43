#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/range.h"

namespace tokamak {

// Iterations that are assumed of a loop whose trip count is data-dependent. Chosen: with 16, its
// body outweighs what surrounds it, but does not outweigh loops that are known to be long.
inline constexpr int64_t kUnknownTripCount = 16;

// Average values of the indices of a kernel, trip counts of its loops, and the loops that each
// value depends on.
class IndexFacts {
 public:
  // `grid`: number of grid iterations; 0: as the kernel's constant extents say.
  IndexFacts(const Kernel& kernel, int64_t grid);

  double Mean(ValueId id);
  double TripsOf(LoopId loop);
  // The most iterations that one execution of the loop has; TripsOf if nothing bounds them.
  double MaxTripsOf(LoopId loop);
  // The fraction of evaluations for which a condition is true.
  double Fraction(ValueId condition);
  bool DependsOn(ValueId id, LoopId loop) const {
    auto l = static_cast<size_t>(loop);
    return (depends_[static_cast<size_t>(id) * words_ + l / kWordBits] >> (l % kWordBits) & 1) != 0;
  }

 private:
  void FindReads(const StmtList& block, std::vector<uint64_t>& around);
  void FindDepends();
  double FindMean(const ScalarNode& node);
  // Of x / y, rounded down. Assumes that x is uniformly distributed.
  double MeanQuotient(ValueId x, ValueId y);

  static constexpr size_t kWordBits = std::numeric_limits<uint64_t>::digits;

  const Kernel& kernel_;
  int64_t grid_;
  size_t words_;
  std::vector<uint64_t> depends_;
  std::vector<double> means_, trips_;
  RangeTable ranges_;
};

}  // namespace tokamak
