#pragma once

// Fusion constraints: what the user says about fusion, which overrides costs. Decisions about them
// are logged under the rule fusion.pin, and the manual calls them pins (docs/explain.md).
//
//   never_fuse      the instruction shares no kernel with other instructions; a source line names
//                   several, which may share kernels with each other
//   fuse            one kernel computes all of the instructions if possible; if not, a decision
//                   says why
//   require_fused   one kernel computes all of the instructions, or compilation fails
//
// That kernel may contain other instructions too, and other kernels may recompute some of the
// instructions.
//
// They come from options that name instructions or source lines, from instruction attributes
// (tokamak.never_fuse="true", tokamak.require_fused="label") and from JAX scopes
// ("jit(f)/tokamak.fuse:label/add"). Instructions with the same label form one constraint.
//
// Before the passes, options and attributes are recorded in the provenance of instructions
// (Instr::origins, ir/origin.h), where JAX scopes already are: passes preserve provenance, and so
// the constraint applies to whatever an instruction has become when kernels are planned.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Constraints from options, as texts. Each instruction is named by its name, in the program as
// passed in or as it is when kernels are planned, or by a source line ("train.py:12").
struct ConstraintOptions {
  std::vector<std::string> never_fuse;           // one instruction or source line each
  std::vector<std::string> fuse, require_fused;  // "a,b": a list each

  bool empty() const { return never_fuse.empty() && fuse.empty() && require_fused.empty(); }
};

// Adds an origin to each instruction that the options or its own attributes constrain. Call it
// before the passes.
void AttachConstraints(Module& module, const ConstraintOptions& options);

enum class ConstraintKind : uint8_t { kNeverFuse, kFuse, kRequireFused };

// The instructions of one computation that one constraint applies to.
struct FusionConstraint {
  ConstraintKind kind{};
  std::string source_text;  // for messages: "--never-fuse=add.1", "require_fused 'attention'"
  // Without those that are free to recompute (IsFreeToRecompute), unless all are.
  std::vector<const Instr*> members;
};

// All constraints of a module, read when kernels are planned.
class FusionConstraints {
 public:
  // Returns an error (TK6107, invalid option value) for an option that names no instruction, whose
  // message suggests similar names, and for an option whose instructions are not all in one
  // computation.
  static Result<FusionConstraints> Read(const Module& module, const ConstraintOptions& options);

  bool empty() const { return constraints_.empty(); }
  const std::vector<FusionConstraint>& all() const { return constraints_; }
  // The fuse and require_fused constraints of this computation.
  std::vector<const FusionConstraint*> FuseConstraintsIn(const Computation& computation) const;
  // The never_fuse constraint of the instruction, as an index into all(); -1 if none.
  int NeverFuseConstraintOf(const Instr& instr) const;
  bool HasNeverFuseIn(const Computation& computation) const;

 private:
  friend class ConstraintParser;
  void Add(FusionConstraint constraint);

  std::vector<FusionConstraint> constraints_;
  std::unordered_map<const Instr*, int> never_fuse_of_;  // see NeverFuseConstraintOf
};

// Whether the region computes a never_fuse instruction together with one that the same constraint
// does not name. Of the latter, those that are free to recompute (IsFreeToRecompute) do not count.
// Of the named ones, free instructions count only if all are free.
bool ViolatesNeverFuse(const FusedRegion& region, const FusionConstraints& constraints);
// Whether the region computes all members of a fuse or require_fused constraint.
bool ComputesAll(const FusedRegion& region, const FusionConstraint& constraint);

}  // namespace tokamak
