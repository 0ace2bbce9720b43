#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "ir/ir.h"

namespace tokamak {

// What part of a training step something belongs to. All of a program without a backward part is
// its forward part.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };
inline constexpr int kPhases = 3;
std::string_view NameOf(Phase phase);

// The phase of each instruction of a module, as JAX's names tell it: transpose(...) is backward,
// jvp(...) forward. What has neither name and needs something that is backward is the update.
class Phases {
 public:
  explicit Phases(const Module& module);
  Phase Of(const Instr& instr) const;
  // Of what computes these values: the last of theirs.
  Phase Of(const std::vector<const Instr*>& roots) const;

 private:
  Phase Judge(const Instr& instr) const;

  const Module& module_;
  std::unordered_map<const Instr*, Phase> phases_;
};

}  // namespace tokamak
