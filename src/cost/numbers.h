#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/range.h"

namespace tokamak {

// What the indices of a kernel are on the average, and which loops they depend on.
class IndexFacts {
 public:
  // `grid`: rounds of the grid; 0: as many as the kernel says.
  IndexFacts(const Kernel& kernel, int64_t grid);

  double Mean(ValueId id);
  double TripsOf(LoopId loop);
  // How often a condition holds, of all times that it is asked.
  double Share(ValueId condition);
  bool DependsOn(ValueId id, LoopId loop) const {
    auto l = static_cast<size_t>(loop);
    return (depends_[static_cast<size_t>(id) * words_ + l / 64] >> (l % 64) & 1) != 0;
  }

 private:
  void FindReads(const Block& block, std::vector<uint64_t>& around);
  void FindDepends();
  double FindMean(const ScalarNode& node);

  const Kernel& kernel_;
  int64_t grid_;
  size_t words_;
  std::vector<uint64_t> depends_;
  std::vector<double> means_, trips_;
  RangeTable ranges_;
};

}  // namespace tokamak
