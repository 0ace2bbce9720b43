#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/kernels/manifest.h"

// Compares the results of the device with the expected ones.

namespace tokamak {

// A deterministic number in [-1, 1): inputs of large programs are generated with it.
float DrawnAt(uint64_t seed, uint64_t i);
float FromBf16(uint16_t bits);
uint16_t ToBf16(float value);

// Counts the differing elements of a type and returns the first. NaNs are equal; everything else is
// compared bitwise.
size_t CountDifferences(const std::string& type, const char* got, const char* wanted, size_t bytes,
                        size_t& first);
// Counts reals that differ by more than a reordered sum allows; everything else is compared
// bitwise.
size_t CountMismatches(const Expected& expected, const char* got, const char* wanted,
                       size_t& first);

// A large program: y = reference(x) of rows x columns, in double; dots also have a contracted
// dimension and batches.
struct Large {
  std::string name;
  size_t rows = 0, columns = 0, depth = 0, batch = 1;
  std::vector<float> x, gamma, beta, y;
};

// Checks several thousand elements, including adjacent ones; prints the largest error.
bool CheckLarge(const Large& l, bool narrow);

}  // namespace tokamak
