#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "ir/ir.h"

namespace tokamak {

// The phase of a training step. A program without a backward phase is all forward.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };
// Number of enumerators of Phase.
inline constexpr int kPhases = 3;
std::string_view NameOf(Phase phase);

// The phase of each instruction of a module, derived from JAX's op names: transpose(...) is
// backward, jvp(...) forward. An instruction with neither name that depends on a backward value
// belongs to the update.
class Phases {
 public:
  explicit Phases(const Module& module);
  Phase Of(const Instr& instr) const;
  // The phase of a computation of these values: the last of their phases.
  Phase Of(const std::vector<const Instr*>& roots) const;

 private:
  Phase Classify(const Instr& instr) const;

  const Module& module_;
  std::unordered_map<const Instr*, Phase> phases_;
};

}  // namespace tokamak
