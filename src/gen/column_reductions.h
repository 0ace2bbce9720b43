#pragma once

#include <string>
#include <vector>

#include "gen/generator.h"
#include "gen/reducer.h"

// Shared by the column kernels (GeneratorKind::kColumns) of CPUs and GPUs: reductions over any
// dimensions and dots whose results all have one shape. A vector lane computes one result. In a
// reduction over a major dimension adjacent lanes sum adjacent columns, hence the name.

namespace tokamak {

// A root with an element for each one that is reduced: a kernel that visits each of them once
// stores it there, such as a gradient beside its column sums. It may be padded after the last
// dimension, which is then not reduced.
struct ElementRoot {
  const Instr* root = nullptr;
  const Instr* value = nullptr;  // without the padding
};

struct ColumnReductions {
  std::vector<Reducer> reducers;  // all with the same input shape and reduced dimensions
  std::vector<const Instr*> dots;
  Dims dims;  // of the results
  std::vector<ElementRoot> element_roots;
};

// Fills `found`. Returns why the region's reductions and dots do not fit one column kernel, an
// empty string if they do.
std::string AnalyzeColumnReductions(const FusedRegion& region, ColumnReductions& found);

// The input coordinates of an element that is reduced into `result`.
Coordinates InputCoordinates(const Reducer& reducer, const Coordinates& result,
                             const Coordinates& reduced);

// The sum of a dot in registers, one element per lane. It has the AccumulatorElementType of the
// dot's type.
struct DotSum {
  const Instr* dot = nullptr;
  ElementArrays arrays{};
};

// What column kernels do with sums; their loops over results and reduced elements differ.
class ColumnEmitter {
 public:
  ColumnEmitter(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region)
      : b_(b), emitter_(emitter), region_(region) {}

  DotSum AddSum(const Instr& dot, int64_t lanes);
  Element Read(const DotSum& sum, Scalar lane);
  void WriteZero(const DotSum& sum, Scalar lane);
  // Adds the product of one pair of elements to the sum `before` of a lane. `contracted`:
  // coordinates along the contracting dimensions, in the order of the attributes.
  void AddTerm(const DotSum& sum, Scalar lane, const Coordinates& result,
               const Coordinates& contracted, const Element& before);

  // From here on the element `at` of the reduction is the result of these sums, and that of each
  // dot the sum of the lane.
  void Bind(Accumulators& sums, const Coordinates& at, const std::vector<Element>& values);
  void BindDots(const Coordinates& at, Scalar lane);
  // Stores the elements of all roots but `others` at these coordinates of results of dimensions
  // `dims`, which are at row-major index `linear`.
  void StoreRoots(const Coordinates& at, const Dims& dims, Scalar linear,
                  const std::vector<ElementRoot>& others = {});

 private:
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const FusedRegion& region_;
  std::vector<DotSum> dot_sums_;
};

}  // namespace tokamak
