#pragma once

#include <string>
#include <unordered_map>

#include "cost/work.h"
#include "gen/generator.h"

namespace tokamak {

// What running a region as one kernel takes, or why there is none.
struct RegionPrice {
  std::string why_not;  // "": there is one
  Price price;
  RegionKind kind{};

  bool IsLegal() const { return why_not.empty(); }
};

// Equal for regions that differ in names and places only: what is planned for one layer is known
// for all that are like it.
uint64_t StructuralHash(const Region& region);

// Prices regions by their kernels, each structure once.
class Pricer {
 public:
  explicit Pricer(const Machine& machine) : machine_(machine) {}

  const RegionPrice& Of(const Region& region);
  const Machine& machine() const { return machine_; }
  size_t kernels_built() const { return built_; }

 private:
  RegionPrice Build(const Region& region);

  const Machine& machine_;
  std::unordered_map<uint64_t, RegionPrice> known_;
  size_t built_ = 0;
};

}  // namespace tokamak
