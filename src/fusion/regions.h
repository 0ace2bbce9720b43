#pragma once

// Regions of the baseline planner (first_planner.h) while they grow. It visits instructions from
// the last to the first and asks for each whether it may join the regions of its users.

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
  FusedRegionShape shape;
  int64_t flops = 0;     // for one element of each instruction
  int64_t operands = 0;  // total operand count of all instructions
  // How an instruction is computed in the region: `sites` is an upper bound on the distinct indices
  // at which one element of the domain needs it. `in_vain` says that it is also computed where its
  // value is unused (a concatenation or pad computes all its operands).
  struct Cost {
    int64_t sites = 1;
    bool in_vain = false;
    int64_t times = 1;         // how often a contraction computes each element
    bool per_product = false;  // recomputed for every multiply-add of a dot
  };
  std::unordered_map<const Instr*, Cost> costs;
};

// Finds out by building whether a region has a kernel; once per structure.
class KernelProbes {
 public:
  KernelProbes(const Computation& computation, const Machine& machine)
      : machine_(machine), hasher_(computation) {}
  // Why the region has no kernel of this kind; empty if it has one.
  const std::string& WhyNot(const FusedRegion& region, GeneratorKind kind);

 private:
  const Machine& machine_;
  FusedRegionHasher hasher_;
  std::unordered_map<uint64_t, std::string> known_;
};

// The regions of a computation, grown from the last instruction to the first. An instruction may be
// in several.
class OpenRegions {
 public:
  OpenRegions(const Computation& computation, const std::vector<Instr*>& order,
              const Machine& machine, KernelProbes& probes);

  // Whether something outside kernels reads the value: the result, control flow, a host step.
  bool IsNeededAsArray(const Instr& instr) const;
  // The regions that contain its users, each once.
  std::vector<int> ConsumerRegions(const Instr& instr) const;

  // Why the instruction may not be computed inside a region, given that `copies` regions would
  // compute it, or may not be one of its roots; empty if it may.
  std::string WhyNot(const Instr& instr, int region, size_t copies) const;
  std::string WhyNotRoot(const Instr& instr, int region) const;
  // Why an instruction that the region does not need may not become another root of it; empty if it
  // may. Reductions must reduce the same indices and share an input array; elementwise values must
  // have the same shape and share an expensive subexpression.
  std::string WhyNotBeside(const Instr& instr, int region) const;

  // Starts a region whose root is the instruction.
  void Begin(const Instr& instr);
  void Add(const Instr& instr, int region);
  void AddRoot(const Instr& instr, int region);

  size_t size() const { return regions_.size(); }
  const OpenRegion& region(int i) const { return regions_[static_cast<size_t>(i)]; }
  bool IsInside(const Instr& instr) const { return !members_[&instr].empty(); }
  // The finished region: instructions in order, with inputs.
  FusedRegion Finish(int region) const;

 private:
  // A copy of the region with the instruction added.
  OpenRegion With(const Instr& instr, int region) const;
  // Adds an instruction with this cost.
  void Grow(OpenRegion& open, const Instr& instr, OpenRegion::Cost cost) const;
  bool ReadsTooMuch(const Instr& instr, int region, bool copied) const;
  OpenRegion::Cost CostIn(const Instr& instr, int region) const;
  std::string WhyNotReduction(const Instr& instr, int region) const;
  std::string WhyNotBesideLoop(const Instr& instr, int region) const;
  // The expensive elementwise instructions of `count` elements from which the given values are
  // computed (a bounded walk).
  std::vector<const Instr*> ExpensiveProducers(std::vector<const Instr*> open, int64_t count) const;
  bool Reaches(const Instr& from, int region) const;
  // No instruction after the returned position leads to the region, not even through other regions.
  size_t LastPositionBefore(int region) const;
  // Whether the region depends on a user of the instruction that is outside of it.
  bool IsNeededInside(const Instr& instr, int region) const;
  bool MayMakeRows(const Instr& instr, int region, bool kept) const;
  std::string WhyNotBuilt(OpenRegion with, const Instr& root) const;
  FusedRegion FinishOpen(const OpenRegion& open) const;

  const Machine& machine_;
  KernelProbes& probes_;
  std::vector<OpenRegion> regions_;
  // Per region: positions of its last instruction, with which it started, and of its first root.
  struct Ends {
    size_t last, first_root;
  };
  std::vector<Ends> ends_;
  InstrMap<std::vector<int>> members_;
  InstrMap<size_t> positions_;
  mutable InstrMap<uint32_t> seen_;  // the last walk that visited it
  mutable std::vector<uint32_t> seen_regions_;
  mutable uint32_t walk_ = 0;
};

}  // namespace tokamak
