#pragma once

#include <array>
#include <vector>

#include "cost/work.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// Operations of one pipe. A list has those that there are any of.
struct PipeOps {
  size_t pipe;
  double count;
};

// What regions of a computation do, told from their instructions: no kernel is made. A planner that
// looks at many regions asks this first, so that all that an instruction adds by itself is worked
// out once.
class Summarizer {
 public:
  Summarizer(const Computation& computation, const Machine& machine)
      : machine_(machine), facts_(computation) {}
  Summarizer(const Summarizer&) = delete;
  Summarizer& operator=(const Summarizer&) = delete;

  Work Of(const Region& region);

 private:
  struct Facts;
  // How often an operand's element is computed when its user's is.
  enum class Reach : uint8_t {
    kSame,       // as often
    kStretched,  // once for some neighbours
    kFolded,     // more often, by the elements that are folded
    kFixed,      // so many times, however often the user is
    kTimes,      // at other places, so many times as often
    kPart        // at other places, by its share of the user's elements
  };
  struct Use {
    Facts* operand;
    Reach reach;
    double number, own;  // own: elements of the user
  };
  // What is known of an instruction by itself.
  struct Facts {
    // Of the region at hand: how often an element is computed, or loaded, at the places of the
    // users, and at others.
    double alike = 0, elsewhere = 0;
    double count = -1;  // elements of its first part, at least 1; < 0: not known yet
    double bytes = 0;   // of all parts
    bool is_known = false;
    double folded = 1;               // of a reduction, elements that one of its own takes
    std::vector<Use> uses = {};      // of its operands
    std::vector<PipeOps> unit = {};  // computing one element

    double evals() const { return alike + elsewhere; }
  };
  Facts& FactsOf(const Instr& instr) {
    Facts& facts = facts_[&instr];
    if (facts.count < 0) Learn(instr, facts);
    return facts;
  }
  // With all that it takes to compute it.
  Facts& FullFactsOf(const Instr& instr) {
    Facts& facts = FactsOf(instr);
    if (!facts.is_known) LearnAll(instr, facts);
    return facts;
  }
  void Learn(const Instr& instr, Facts& facts);
  void LearnAll(const Instr& instr, Facts& facts);
  double CountOf(const Instr& instr) { return FactsOf(instr).count; }
  Use UseOf(const Instr& instr, size_t operand);
  // How often an element of each instruction is computed, or loaded.
  void CountElements(const Region& region);
  void AddStoresOf(const Instr& root, Work& work);
  enum class Access : uint8_t { kLoad, kStore };
  void AddAccess(Access access, ElementType type, double elements, Work& work);

  const Machine& machine_;
  InstrMap<Facts> facts_;
  struct AccessOps {
    std::vector<PipeOps> ops;
    bool is_known = false;
  };
  std::vector<std::array<AccessOps, 2>> accesses_;  // of one element, by type and access
};

}  // namespace tokamak
