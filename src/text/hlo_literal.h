#pragma once

#include <string>

#include "ir/literal.h"

namespace tokamak {

class HloCursor;

// Reads the value of a constant of a known shape: 1.5, {1, 2, 3}, {{1, 2}, {3, 4}}, (1, -2.5) for a
// complex type, ({1, 2}, 3) for a tuple, inf, nan, true. Extends XLA's grammar by {7, ...}: every
// element is 7.
//
// XLA prints {...} instead of a large constant. XLA's reader then fills the bytes with the 32-bit
// numbers 0, 1, 2 ... (pred: their lowest bits per byte), and so does this one.
bool ReadHloLiteral(HloCursor& cursor, const Shape& shape, Literal& literal);

// Appends text that ReadHloLiteral parses to equal bits (except NaN payloads).
void AppendHloLiteral(std::string& out, const Literal& literal);
// Appends one real number in the shortest form that preserves its bits.
void AppendHloFloat(std::string& out, ElementType type, uint64_t bits);

}  // namespace tokamak
