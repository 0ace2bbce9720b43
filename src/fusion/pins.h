#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"
#include "support/result.h"

// Fusion constraints: what the user says about fusion, which overrides estimated costs. They come
// from options that name instructions or source lines, from instruction attributes
// (tokamak.never_fuse="true", tokamak.require_fused="group") and from JAX scopes
// ("jit(f)/tokamak.fuse:group/add"). All of them are stored as origins of instructions, because
// passes preserve origins.

namespace tokamak {

// Constraints from options. A word names an instruction, in the program as passed in or as it is
// when kernels are planned, or a source line ("train.py:12").
struct PinWords {
  std::vector<std::string> never_fuse;           // each named instruction gets its own kernel
  std::vector<std::string> fuse, require_fused;  // "a,b": the named instructions form one kernel

  bool empty() const { return never_fuse.empty() && fuse.empty() && require_fused.empty(); }
};

// Adds an origin to each instruction that the options or its own attributes constrain. Call it
// before the passes.
void MarkPins(Module& module, const PinWords& words);

enum class PinKind : uint8_t { kNever, kFuse, kRequire };

// The instructions of one computation that one constraint applies to.
struct Pin {
  PinKind kind{};
  std::string said;  // as the user wrote it: "--never-fuse=add.1", "require_fused 'attention'"
  std::vector<const Instr*> members;
};

// All constraints of a module, read when kernels are planned.
class Pins {
 public:
  // Returns TK6107 for a word that names nothing, with similar names, and for a group whose
  // instructions are not all in one computation.
  static Result<Pins> Read(const Module& module, const PinWords& words);

  bool empty() const { return pins_.empty(); }
  const std::vector<Pin>& all() const { return pins_; }
  // The fuse and require_fused constraints of this computation.
  std::vector<const Pin*> TogetherIn(const Computation& computation) const;
  // The never_fuse constraint of the instruction, as an index into all(); -1 if none.
  int ApartOf(const Instr& instr) const;
  bool HasApartIn(const Computation& computation) const;

 private:
  friend class PinParser;
  void Add(Pin pin);

  std::vector<Pin> pins_;
  std::unordered_map<const Instr*, int> apart_;
};

// Free to recompute, so it may be in any kernel: broadcasts, slices, constants.
bool IsFree(const Instr& instr);
// Whether the region computes a never_fuse instruction together with one that the same constraint
// does not name (free ones excepted).
bool IsMixed(const FusedRegion& region, const Pins& pins);
// Whether the region computes all instructions of a fuse or require_fused constraint.
bool HoldsAll(const FusedRegion& region, const Pin& pin);

}  // namespace tokamak
