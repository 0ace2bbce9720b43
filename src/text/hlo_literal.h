#pragma once

#include <string>

#include "ir/literal.h"

namespace tokamak {

class HloCursor;

// Reads the value of a constant whose shape is known: 1.5, {1, 2, 3},
// {{1, 2}, {3, 4}}, (1, -2.5) of a complex type, ({1, 2}, 3) of a tuple, inf,
// nan, true. Beyond XLA's grammar: {7, ...}, every element being 7.
//
// {...} is what XLA prints in place of a large constant. Its own reader then
// fills the bytes with the 32-bit numbers 0, 1, 2 ... (pred: their lowest bits
// per byte), and so does this one.
bool ReadHloLiteral(HloCursor& cursor, const Shape& shape, Literal& literal);

// The text that ReadHloLiteral reads back to equal bits (NaN payloads aside).
void AppendHloLiteral(std::string& out, const Literal& literal);
// One real number, as short as it can be without changing its bits.
void AppendHloFloat(std::string& out, ElementType type, uint64_t bits);

}  // namespace tokamak
