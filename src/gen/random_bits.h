#pragma once

#include <array>
#include <optional>
#include <string>

#include "gen/element.h"

namespace tokamak {

// Random bits that are a function of a state and of where the element is: a rng-bit-generator that
// gives an array (passes/target/expand_random.cc).

// Why an element has no code, in words; nothing when it has.
std::optional<std::string> WhyNoRandomBits(const Instr& random);

// The element at coordinates; `state`: words of the state.
Element RandomBitsAt(KernelBuilder& b, const Instr& random, const std::array<Scalar, 3>& state,
                     const Coordinates& at);

// Philox makes four words of one counter: so many elements.
bool IsPhilox(const Instr& random);
int64_t PhiloxElements(const Instr& random);
std::array<Element, 4> PhiloxBlock(KernelBuilder& b, const Instr& random,
                                   const std::array<Scalar, 3>& state, Scalar block);

}  // namespace tokamak
