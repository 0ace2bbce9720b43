#pragma once

#include <array>
#include <vector>

#include "cost/work.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// Operations of one execution pipe. A list holds the nonzero ones.
struct PipeOps {
  size_t pipe;
  double count;
};

// Estimates the work of a region from its instructions, without building a kernel. The planner asks
// this for every move that it considers, so everything that depends on one instruction alone is
// computed once. A walk from the roots to the inputs counts how often an element of each
// instruction is computed: as often as its consumer, or more often if the consumer reduces,
// broadcasts or moves elements (Reach). Loads and stores follow from these counts.
class Summarizer {
 public:
  Summarizer(const Computation& computation, const Machine& machine)
      : machine_(machine), facts_(computation) {}
  Summarizer(const Summarizer&) = delete;
  Summarizer& operator=(const Summarizer&) = delete;

  Work Of(const FusedRegion& region);

 private:
  struct Facts;
  // How often an operand is evaluated, relative to its user.
  enum class Reach : uint8_t {
    kSame,      // equally often
    kRepeated,  // once for several adjacent elements (broadcast)
    kReduced,   // once per reduced element (reduce)
    kFixed,     // a fixed number of times, independent of the user
    kTimes,     // `number` times as often, at other indices than other users
    kSubset     // at other indices, by its fraction of the user's elements
  };
  struct Use {
    Facts* operand;
    Reach reach;
    double number, own;  // `own`: element count of the user
  };
  // Facts about an instruction. The first two belong to the current region, the others to the
  // instruction alone.
  struct Facts {
    // Evaluations (or loads) at the indices of the users, which share them, and at other indices.
    double same_elements = 0, elsewhere = 0;
    double count = -1;  // elements of the first array, at least 1; < 0 if unknown
    double bytes = 0;   // of all arrays of the result
    bool is_known = false;
    double reduced_count = 1;        // elements reduced per result, for a reduce
    std::vector<Use> uses = {};      // one per operand
    std::vector<PipeOps> unit = {};  // operations per element

    double evals() const { return same_elements + elsewhere; }
  };
  Facts& FactsOf(const Instr& instr) {
    Facts& facts = facts_[&instr];
    if (facts.count < 0) Learn(instr, facts);
    return facts;
  }
  // Also fills in reduced_count, uses and unit.
  Facts& FullFactsOf(const Instr& instr) {
    Facts& facts = FactsOf(instr);
    if (!facts.is_known) LearnAll(instr, facts);
    return facts;
  }
  void Learn(const Instr& instr, Facts& facts);
  void LearnAll(const Instr& instr, Facts& facts);
  double CountOf(const Instr& instr) { return FactsOf(instr).count; }
  Use UseOf(const Instr& instr, size_t operand);
  // Counts the evaluations of each instruction and the loads of each input.
  void CountElements(const FusedRegion& region);
  void AddStoresOf(const Instr& root, Work& work);
  enum class Access : uint8_t { kLoad, kStore };
  void AddAccess(Access access, ElementType type, double elements, Work& work);

  const Machine& machine_;
  InstrMap<Facts> facts_;
  struct AccessOps {
    std::vector<PipeOps> ops;
    bool is_known = false;
  };
  std::vector<std::array<AccessOps, 2>> accesses_;  // operations per element, by type and access
};

}  // namespace tokamak
