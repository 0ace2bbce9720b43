#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace tokamak::cpu {

// The processor that code is made for.
struct Target {
  std::string triple, cpu;
  std::vector<std::string> features;  // "+avx2", "-sse4a", sorted
  int vector_bytes = 16;              // of the widest registers
  bool has_f16 = false;               // converts f16 to f32 and back

  // All of it, for keys of caches.
  std::string Text() const;
};

// This machine. TK4003 when it lacks what generated code needs.
Result<Target> HostTarget();

// What TK4003 is about: the first missing instruction set, or "".
std::string LackOf(const Target& target);

}  // namespace tokamak::cpu
