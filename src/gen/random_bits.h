#pragma once

#include <array>
#include <optional>
#include <string>

#include "gen/element.h"

namespace tokamak {

// Counter-based random bits: each element is a function of the state and its index, from an
// rng-bit-generator that returns only the bits (passes/target/expand_random.cc).

// Returns why elements have no code, nullopt if they have.
std::optional<std::string> WhyNoRandomBits(const Instr& random);

// The element at coordinates; `state`: the state words.
Element RandomBitsAt(KernelBuilder& b, const Instr& random, const std::array<Scalar, 3>& state,
                     const Coordinates& at);

// Philox turns one counter into a block of four 32-bit words, which is PhiloxElements elements.
bool IsPhilox(const Instr& random);
int64_t PhiloxElements(const Instr& random);
std::array<Element, 4> PhiloxBlock(KernelBuilder& b, const Instr& random,
                                   const std::array<Scalar, 3>& state, Scalar block);

}  // namespace tokamak
