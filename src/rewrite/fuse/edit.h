#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "ir/ir.h"
#include "rewrite/bodies.h"

namespace tokamak::fuse {

// Makes fusions as XLA's text has them: an instruction that calls fused_computation.N. All take and
// give instructions of one computation; those that are replaced are removed. Origins stay with what
// they are of; a fusion has those of all that is in it.
class FusionEditor {
 public:
  explicit FusionEditor(Module& module);

  // A fusion of this instruction alone.
  Instr* Wrap(Instr* instr);
  // `user` with `producer` (an instruction, or a fusion of one result) computed inside. The
  // producer stays, for others.
  Instr* Fuse(Instr* producer, Instr* user);
  // One fusion with the results of both, first those of a. b may use a, nothing of a may need b.
  Instr* Join(Instr* a, Instr* b, bool horizontal = false);

  // Removes the bodies of fusions that are no more.
  void Finish();

  // Reductions of at least so many elements make a fusion kInput.
  int64_t large_reduction = 1;

 private:
  Instr* Remake(Instr* fusion, const std::vector<Instr*>& operands, Shape shape);
  // The fusion, or one of the instruction, with a body that no other has.
  Instr* Own(Instr* instr);
  FusionKind KindOf(const Computation& body) const;
  void ShareResults(Instr* from, Instr* to, size_t first);

  Module& module_;
  int64_t bodies_ = 0, fusions_ = 0;
  CallCounts calls_;                             // a body that several fusions have is copied
  std::unordered_set<const Computation*> made_;  // bodies; those of merged fusions, too
};

}  // namespace tokamak::fuse
