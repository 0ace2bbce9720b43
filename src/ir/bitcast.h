#pragma once

#include "ir/shape.h"

namespace tokamak {

// Element widths in bits on both sides of a bitcast-convert. A pred has one bit in StableHLO
// (pred[8] converts to u8[]) and eight bits in XLA (pred[8] converts to u8[8], pred[2] to u16[]).
// The dimensions determine which of the two applies.
struct BitcastWidths {
  int from = 0, to = 0;
};
BitcastWidths WidthsOfBitcast(const Shape& from, const Shape& to);

}  // namespace tokamak
