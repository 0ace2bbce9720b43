#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "fusion/cut.h"
#include "ir/ir.h"

namespace tokamak {

// Fusions that somebody made of a module: the passes of the paper's compiler, or XLA. The planner
// takes them as they are.
class GivenFusions {
 public:
  // Puts the bodies of all fusions in their place, in every computation that runs by itself, and
  // remembers which instruction was in which. Pointers to instructions of those are void; the
  // module must not change afterwards.
  static GivenFusions Dissolve(Module& module);

  // The instructions of one fusion are one region, of a horizontal one several that are a pack;
  // every other that a kernel has to make is a region of its own.
  Cut CutOf(const Computation& computation, const Machine& machine) const;

  // How many fusions there were.
  int64_t count() const { return count_; }

 private:
  // Of an instruction: the fusion and the part of it that it was in; -1: none.
  struct Tag {
    int fusion = -1, part = 0;
  };
  Tag TagOf(const Instr& instr) const;
  void DissolveIn(Computation& computation);

  std::unordered_map<const Computation*, std::vector<Tag>> tags_;  // by id
  int count_ = 0;
};

}  // namespace tokamak
