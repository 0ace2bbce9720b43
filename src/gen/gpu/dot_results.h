#pragma once

#include "cost/machine.h"
#include "gen/dot_dimensions.h"
#include "gen/element.h"
#include "gen/region.h"

// What the GPU generators of dots do with a finished sum.

namespace tokamak::gpu {

// A row and a column of the result of one matrix of the batch.
struct DotPosition {
  Coordinates batch_at;
  Scalar batch, row, column;
  // The coordinates of the row in the free dimensions of lhs, if they are known.
  Coordinates row_at = {};
};

// Returns why a region does not consist of one dot with its producers and consumers, empty if
// `dot` is set.
std::string FindDot(const FusedRegion& region, const Machine& machine, const Instr*& dot);

// Makes a finished sum the element of the dot's result at `position`, for the emitter; returns its
// coordinates and row-major index.
struct BoundResult {
  Coordinates at;
  Scalar linear;
};
BoundResult BindDotResult(ElementEmitter& emitter, const Instr& dot, const DotDimensions& dot_dims,
                          const DotPosition& position, Scalar sum);
// Evaluates the consumers of one element of the dot's result, and stores the roots.
void StoreDotResult(ElementEmitter& emitter, const FusedRegion& region, const Instr& dot,
                    const DotDimensions& dot_dims, const DotPosition& position, Scalar sum);

}  // namespace tokamak::gpu
