#pragma once

#include <string>
#include <vector>

#include "gen/generator.h"
#include "gen/reducer.h"

// What column kernels of every machine share: reductions of any dimensions and contractions, all
// with results of one shape.

namespace tokamak {

struct Folds {
  std::vector<Reducer> reducers;  // of one shape, over the same dimensions
  std::vector<const Instr*> dots;
  Dims dims;  // of the results
};

// Why the region's reductions and contractions are not such, in words; "" when they are.
std::string FindFolds(const Region& region, Folds& found);

// Where elements that fold into a result lie in a reduction's inputs.
Coordinates FoldedElement(const Reducer& reducer, const Coordinates& result,
                          const Coordinates& reduced);

// A contraction's sum, in WideType of its type, with the product of one pair of elements added.
// `contracted` are coordinates along the contracting dimensions, in the order of the attributes.
Element DotTerm(KernelBuilder& b, ElementEmitter& emitter, const Instr& dot,
                const Coordinates& result, const Coordinates& contracted, Element sum);

}  // namespace tokamak
