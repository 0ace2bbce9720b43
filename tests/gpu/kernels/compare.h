#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/kernels/manifest.h"

// What the device gave beside what it should have given.

namespace tokamak {

// A number in [-1, 1), the same everywhere: inputs of large programs are drawn.
float DrawnAt(uint64_t seed, uint64_t i);
float FromBf16(uint16_t bits);
uint16_t ToBf16(float value);

// How many elements of a type differ, and the first that does. NaNs are equal; all else bit by bit.
size_t CountDifferences(const std::string& type, const char* got, const char* wanted, size_t bytes,
                        size_t& first);
// Reals that differ by more than what another order of sums may do; all else bit by bit.
size_t CountFar(const Expected& expected, const char* got, const char* wanted, size_t& first);

// A large program: y = reference(x) of rows x columns, in double; of dots also a depth, and
// batches.
struct Large {
  std::string name;
  size_t rows = 0, columns = 0, depth = 0, batch = 1;
  std::vector<float> x, gamma, beta, y;
};

// Looks at some thousand elements, neighbours among them; prints the one that is off most.
bool CheckLarge(const Large& l, bool narrow);

}  // namespace tokamak
