#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"
#include "support/result.h"

// What a user says of fusion, against prices: options by instruction or source line, attributes of
// instructions (tokamak.never_fuse="true", tokamak.require_fused="group"), and scopes of JAX
// ("jit(f)/tokamak.fuse:group/add"). Passes carry origins on, so all of these are kept as origins.

namespace tokamak {

// Of options. A word is the name of an instruction, in the program as it was or as it is when
// kernels are made, or "train.py:12".
struct PinWords {
  std::vector<std::string> never_fuse;           // what each names is in a kernel of its own
  std::vector<std::string> fuse, require_fused;  // "a,b": what these name is one kernel

  bool empty() const { return never_fuse.empty() && fuse.empty() && require_fused.empty(); }
};

// Gives each instruction that the words or its own attributes pin an origin that says so. To be
// called before the passes.
void MarkPins(Module& module, const PinWords& words);

enum class PinKind : uint8_t { kNever, kFuse, kRequire };

// Instructions of one computation that one pin is about.
struct Pin {
  PinKind kind{};
  std::string said;  // as the user wrote it: "--never-fuse=add.1", "require_fused 'attention'"
  std::vector<const Instr*> members;
};

// All pins of a module as it is when kernels are planned.
class Pins {
 public:
  // TK6107 for a word that names nothing, with those that are like it, and for a group whose
  // instructions are not of one computation.
  static Result<Pins> Read(const Module& module, const PinWords& words);

  bool empty() const { return pins_.empty(); }
  const std::vector<Pin>& all() const { return pins_; }
  // The pins that keep instructions of this computation together.
  std::vector<const Pin*> TogetherIn(const Computation& computation) const;
  // The pin that keeps the instruction apart; -1: none.
  int ApartOf(const Instr& instr) const;
  bool HasApartIn(const Computation& computation) const;

 private:
  friend class PinReader;
  void Add(Pin pin);

  std::vector<Pin> pins_;
  std::unordered_map<const Instr*, int> apart_;
};

// Costs nothing where it is read, and so may stand in any kernel: broadcasts, slices, constants.
bool IsFree(const Instr& instr);
// Whether the region computes what a pin keeps apart and something else.
bool IsMixed(const Region& region, const Pins& pins);
// Whether the region computes all that the pin keeps together.
bool HoldsAll(const Region& region, const Pin& pin);

}  // namespace tokamak
