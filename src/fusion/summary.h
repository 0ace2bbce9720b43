#pragma once

#include <vector>

#include "cost/work.h"
#include "gen/generator.h"
#include "ir/ir.h"

namespace tokamak {

// What regions of a computation do, told from their instructions: no kernel is made. A planner that
// looks at many regions asks this first.
class Summarizer {
 public:
  Summarizer(const Computation& computation, const Machine& machine)
      : machine_(machine), facts_(computation), evals_(computation) {}

  Work Of(const Region& region);

 private:
  // What is known of an instruction by itself.
  struct Facts {
    double count = -1;  // elements of its first part, at least 1; < 0: not known yet
    double bytes = 0;   // of all parts
    bool elementwise = false;
    std::vector<Work> unit = {};  // computing one element; empty: not known yet
  };
  // How often an element of each instruction is computed, or loaded.
  void CountElements(const Region& region);
  void CountOperand(const Instr& instr, size_t operand, double times);
  const Facts& FactsOf(const Instr& instr);
  double CountOf(const Instr& instr) { return FactsOf(instr).count; }
  const Work& UnitOf(const Instr& instr);

  const Machine& machine_;
  InstrMap<Facts> facts_;
  // Of the region at hand: at the places of the users, and at others.
  struct Evals {
    double alike = 0, elsewhere = 0;
    double all() const { return alike + elsewhere; }
  };
  InstrMap<Evals> evals_;
};

}  // namespace tokamak
