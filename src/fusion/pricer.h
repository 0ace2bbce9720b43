#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "cost/work.h"
#include "fusion/region_hash.h"
#include "fusion/summary.h"
#include "gen/accepts_rows.h"
#include "gen/generator.h"

namespace tokamak {

// What running a region as one kernel takes, or why there is none.
struct RegionPrice {
  std::string why_not;  // "": there is one
  Price price;
  RegionKind kind{};

  bool IsLegal() const { return why_not.empty(); }
};

// Prices regions by their kernels, or quickly by their instructions; each structure once.
class Pricer {
 public:
  Pricer(const Computation& computation, const Machine& machine)
      : machine_(machine), hasher_(computation), summarizer_(computation, machine) {}

  RegionHasher& hasher() { return hasher_; }
  // Microseconds, roughly, without a kernel.
  double Estimate(const Region& region) {
    return PriceOf(summarizer_.Of(region), machine_).total();
  }
  double Estimate(const Region& region, uint64_t hash);
  const RegionPrice& Of(const Region& region) { return Of(region, hasher_.Of(region)); }
  const RegionPrice& Of(const Region& region, uint64_t hash);
  // What somebody has made of a region is a kernel of it.
  void Learn(uint64_t hash, RegionKind kind, const BuiltKernel& built);
  // Whether all have kernels, which are built only where nothing else tells: of loops over single
  // elements there always is one, and of most rows and contractions it is known from their shapes.
  bool HaveKernels(const std::vector<Region>& regions);
  // The same, but of contractions that store more than one value, whose price no estimate knows.
  bool HaveSimpleKernels(const std::vector<Region>& regions, const std::vector<RegionKey>& keys);
  const Machine& machine() const { return machine_; }
  size_t kernels_built() const { return built_; }
  // What building them took, which time follows: their values, or of what has no kernel its
  // instructions.
  size_t work_done() const { return work_; }

 private:
  struct Known {
    RegionPrice price;
    std::optional<BuiltKernel> built;  // until somebody asks what it costs
  };
  bool HasKernel(const Region& region, uint64_t hash, RegionKind kind);
  // Whether there is a kernel; the price is not worked out.
  Known& Find(const Region& region, uint64_t hash);

  const Machine& machine_;
  RegionHasher hasher_;
  Summarizer summarizer_;
  std::unordered_map<uint64_t, Known> known_;
  std::unordered_map<uint64_t, double> estimates_;
  std::unordered_map<uint64_t, Accepts> accepts_;  // of rows and contractions
  size_t built_ = 0, work_ = 0;
};

}  // namespace tokamak
