#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cost/machine.h"
#include "fusion/region_hash.h"
#include "fusion/region_shape.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// A region that is still growing.
struct OpenRegion {
  std::vector<const Instr*> instrs;  // users before operands
  std::vector<const Instr*> roots;
  RegionShape shape;
  int64_t flops = 0;     // of one element of each of its instructions
  int64_t operands = 0;  // of all of them, one by one
  // How an instruction is computed in it: at how many places for one element of the domain, at
  // most, and whether also where nobody needs it (all parts of a concatenation are).
  struct Cost {
    int64_t places = 1;
    bool in_vain = false;
    int64_t times = 1;         // how often each element is made for a contraction
    bool per_product = false;  // it is made again for each product of one
  };
  std::unordered_map<const Instr*, Cost> costs;
};

// Which regions of a computation have kernels: each structure is built once.
class KernelProbes {
 public:
  KernelProbes(const Computation& computation, const Machine& machine)
      : machine_(machine), hasher_(computation) {}
  // Why the region has no kernel of this kind; "" when it has one.
  const std::string& WhyNot(const Region& region, RegionKind kind);

 private:
  const Machine& machine_;
  RegionHasher hasher_;
  std::unordered_map<uint64_t, std::string> known_;
};

// The regions of a computation while it is cut, from the last instruction to the first. An
// instruction may be in several.
class RegionTable {
 public:
  RegionTable(const Computation& computation, const std::vector<Instr*>& order,
              const Machine& machine, KernelProbes& probes);

  // Whether something outside of kernels reads it: a result, control flow, a host step.
  bool IsNeededAsArray(const Instr& instr) const;
  // The regions that its users sit in, each once.
  std::vector<int> RegionsOfUsers(const Instr& instr) const;

  // Why the instruction may not be computed inside of a region, being computed in `copies` of them,
  // or be one of its roots; "" when it may.
  std::string WhyNot(const Instr& instr, int region, size_t copies) const;
  std::string WhyNotRoot(const Instr& instr, int region) const;
  // Why a reduction that nothing in the region needs may not be made beside those of the region; ""
  // when it may: they fold elements of the same places, and read an array in common. Likewise of
  // elements: those of the same places that compute something dear in common.
  std::string WhyNotBeside(const Instr& instr, int region) const;

  void Begin(const Instr& instr);
  void Add(const Instr& instr, int region);
  void AddRoot(const Instr& instr, int region);

  size_t size() const { return regions_.size(); }
  const OpenRegion& region(int i) const { return regions_[static_cast<size_t>(i)]; }
  bool IsInside(const Instr& instr) const { return !members_[&instr].empty(); }
  // The region in order, with its inputs.
  Region Finish(int region) const;

 private:
  OpenRegion With(const Instr& instr, int region) const;
  // The region grows by an instruction that costs so much in it.
  void Grow(OpenRegion& open, const Instr& instr, OpenRegion::Cost cost) const;
  bool ReadsTooMuch(const Instr& instr, int region, bool copied) const;
  OpenRegion::Cost CostIn(const Instr& instr, int region) const;
  std::string WhyNotFold(const Instr& instr, int region) const;
  std::string WhyNotBesideLoop(const Instr& instr, int region) const;
  // What is computed element by element, and dearly, for some values, near them.
  std::vector<const Instr*> DearBehind(std::vector<const Instr*> open, int64_t count) const;
  bool Reaches(const Instr& from, int region) const;
  // No instruction behind this place leads to the region, not even through other regions.
  size_t LastPlaceBefore(int region) const;
  // Whether a user of the instruction outside of the region is needed inside of it.
  bool IsNeededAgain(const Instr& instr, int region) const;
  bool MayMakeRows(const Instr& instr, int region, bool kept) const;
  std::string WhyNotBuilt(OpenRegion with, const Instr& root) const;
  Region FinishOpen(const OpenRegion& open) const;

  const Machine& machine_;
  KernelProbes& probes_;
  std::vector<OpenRegion> regions_;
  // Of each region, the places of its last instruction, which it began with, and its first root.
  struct Ends {
    size_t last, first_root;
  };
  std::vector<Ends> ends_;
  InstrMap<std::vector<int>> members_;
  InstrMap<size_t> places_;
  mutable InstrMap<uint32_t> seen_;  // in which walk
  mutable std::vector<uint32_t> seen_regions_;
  mutable uint32_t walk_ = 0;
};

}  // namespace tokamak
