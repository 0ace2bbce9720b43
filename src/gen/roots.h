#pragma once

#include <string>

#include "gen/element.h"
#include "gen/generator.h"

// Shared by the loop kernels (GeneratorKind::kLoop, elementwise) of CPUs and GPUs: computing and
// storing the elements of a region's roots. FinishRegionKernel serves kernels of other kinds too.

namespace tokamak {

// Whether the root is a dynamic-update-slice. Its kernel loops over the elements of the update only
// and stores them in place (BuiltKernel::must_alias).
bool IsSliceUpdate(const Instr& root);
// The shape that a loop over the root iterates over.
const Shape& DomainOf(const Instr& root);
// Returns why one loop cannot compute all roots of a region, empty if it can.
std::string WhyNoLoopKernel(const FusedRegion& region);

// An element of a root. All elements are computed before any is stored, since outputs may alias
// inputs.
struct RootElement {
  const Instr* root = nullptr;
  size_t result_index = 0;
  Scalar index;  // row-major index of the store
  Element value;
};
// The element of a slice update at coordinates of its domain (the update).
RootElement UpdateAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                     const Coordinates& here);
void StoreElements(ElementEmitter& emitter, const std::vector<RootElement>& elements);

// Computes all roots at one element of the domain of the first root, then stores them. `at`: its
// coordinates; `linear`: its row-major index. All domains have the same number of elements: a root
// with other dimensions is computed at the same linear index.
void StoreRoots(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                const Coordinates& at, Scalar linear);

// Takes the kernel from the builder, with its arguments and aliases, or returns the emitter's
// failure. `writes_once`: no element of an output is written twice (FindMayAlias). Most generators
// of region kernels end with it.
BuildOutcome FinishRegionKernel(KernelBuilder& b, const ElementEmitter& emitter,
                                const FusedRegion& region, int64_t grid, bool writes_once);

}  // namespace tokamak
