#pragma once

#include <string>
#include <vector>

#include "gen/generator.h"
#include "gen/reducer.h"

// Shared by the column kernels of CPUs and GPUs: reductions over any dimensions and dots whose
// results all have one shape.

namespace tokamak {

struct ColumnReductions {
  std::vector<Reducer> reducers;  // same input shape and reduced dimensions
  std::vector<const Instr*> dots;
  Dims dims;  // of the results
};

// Returns why the region's reductions and dots do not fit one column kernel, empty if they do.
std::string FindColumnReductions(const FusedRegion& region, ColumnReductions& found);

// The input coordinates of an element that is reduced into `result`.
Coordinates InputElement(const Reducer& reducer, const Coordinates& result,
                         const Coordinates& reduced);

// Adds the product of one pair of elements to a dot's sum, which has the WideType of the dot's
// type. `contracted`: coordinates along the contracting dimensions, in the order of the attributes.
Element DotTerm(KernelBuilder& b, ElementEmitter& emitter, const Instr& dot,
                const Coordinates& result, const Coordinates& contracted, Element sum);

}  // namespace tokamak
