#pragma once

#include <string>
#include <vector>

#include "gen/generator.h"
#include "gen/reducer.h"

// Shared by the column kernels (GeneratorKind::kColumns) of CPUs and GPUs: reductions over any
// dimensions and dots whose results all have one shape. A vector lane computes one result. In a
// reduction over a major dimension adjacent lanes sum adjacent columns, hence the name.

namespace tokamak {

struct ColumnReductions {
  std::vector<Reducer> reducers;  // all with the same input shape and reduced dimensions
  std::vector<const Instr*> dots;
  Dims dims;  // of the results
};

// Fills `found`. Returns why the region's reductions and dots do not fit one column kernel, an
// empty string if they do.
std::string AnalyzeColumnReductions(const FusedRegion& region, ColumnReductions& found);

// The input coordinates of an element that is reduced into `result`.
Coordinates InputCoordinates(const Reducer& reducer, const Coordinates& result,
                             const Coordinates& reduced);

// Adds the product of one pair of elements to a dot's sum, which has the AccumulatorElementType of
// the dot's type, and returns the new sum. `contracted`: coordinates along the contracting
// dimensions, in the order of the attributes.
Element AddDotTerm(KernelBuilder& b, ElementEmitter& emitter, const Instr& dot,
                   const Coordinates& result, const Coordinates& contracted, Element sum);

}  // namespace tokamak
