#pragma once

#include <array>
#include <optional>
#include <string>

#include "gen/element.h"

// Counter-based random bits: each element is a function of the state and its index. In a region an
// rng-bit-generator returns only the bits: expand-random (passes/target/expand_random.cc) computes
// the new state with a separate add.

namespace tokamak {

// Returns why elements of an rng-bit-generator have no code, nullopt if they have.
std::optional<std::string> WhyNoRandomBitsCode(const Instr& random);

// The element at coordinates; `state`: the state words (ElementEmitter::RandomState).
Element RandomBitsAt(KernelBuilder& b, const Instr& random, const RandomStateWords& state,
                     const Coordinates& at);

// Philox turns one counter into a block of 32-bit words, four by definition of Philox4x32. The
// alternative is ThreeFry.
inline constexpr size_t kPhiloxWords = 4;
bool IsPhilox(const Instr& random);
// Elements per block: 2 of 64 bits, or one per word of up to 32 bits (narrower ones use the low
// bits).
int64_t ElementsPerPhiloxBlock(const Instr& random);
// The elements of block `block`; only the first ElementsPerPhiloxBlock entries have values.
std::array<Element, kPhiloxWords> PhiloxBlock(KernelBuilder& b, const Instr& random,
                                              const RandomStateWords& state, Scalar block);

}  // namespace tokamak
