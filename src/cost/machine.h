#pragma once

#include <cstdint>

namespace tokamak {

// What generators need to know of the machine that a kernel is for. Rates come from measurements
// and will stand here when there are some.
struct Machine {
  int64_t vector_bits = 128;
  int64_t cores = 1;

  // Lanes of a vector whose elements take `bits`.
  int64_t Lanes(int64_t bits) const { return vector_bits / (bits < 8 ? 8 : bits); }
};

}  // namespace tokamak
