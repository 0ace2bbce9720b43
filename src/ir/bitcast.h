#pragma once

#include "ir/shape.h"

namespace tokamak {

// Bits that an element of either side of a bitcast-convert takes. Those of a pred are one, as
// StableHLO has it (pred[8] is a u8[]), or eight where the dimensions are those of bytes, as XLA
// has it (pred[8] is a u8[8], pred[2] a u16[]).
struct BitcastWidths {
  int from = 0, to = 0;
};
BitcastWidths WidthsOfBitcast(const Shape& from, const Shape& to);

}  // namespace tokamak
