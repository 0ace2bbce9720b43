#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "ir/ir.h"
#include "rewrite/bodies.h"

namespace tokamak::fuse {

// Creates fusions as XLA's text represents them: an instruction that calls fused_computation.N. All
// methods take and return instructions of one computation and remove the replaced ones.
// Instructions keep their origins; a fusion has the origins of everything inside it.
class FusionEditor {
 public:
  explicit FusionEditor(Module& module);

  // Returns a fusion of this instruction alone.
  Instr* Wrap(Instr* instr);
  // Returns `user` with `producer` (an instruction, or a fusion with one result) computed inside.
  // The producer stays for its other users.
  Instr* Fuse(Instr* producer, Instr* user);
  // Returns one fusion with the results of both, those of a first. b may use a; a must not depend
  // on b.
  Instr* Join(Instr* a, Instr* b, bool horizontal = false);

  // Removes the bodies of fusions that no longer exist.
  void Finish();

  // Reductions of at least this many elements make a fusion kInput.
  int64_t large_reduction = 1;

 private:
  Instr* Remake(Instr* fusion, const std::vector<Instr*>& operands, Shape shape);
  // Returns the fusion, or a new fusion of the instruction, with a body that it does not share.
  Instr* Own(Instr* instr);
  FusionKind KindOf(const Computation& body) const;
  void ShareResults(Instr* from, Instr* to, size_t first);

  Module& module_;
  int64_t bodies_ = 0, fusions_ = 0;
  CallCounts calls_;                             // a body shared by several fusions is copied
  std::unordered_set<const Computation*> made_;  // bodies created here, including those of merged
                                                 // fusions
};

}  // namespace tokamak::fuse
