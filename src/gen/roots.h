#pragma once

#include <string>

#include "gen/element.h"
#include "gen/generator.h"

// Shared by the loop kernels of CPUs and GPUs: computing and storing the elements of a region's
// roots.

namespace tokamak {

// A root that is a dynamic-update-slice iterates over its update and stores in place.
bool IsSliceUpdate(const Instr& root);
// The shape that a loop over the root iterates over.
const Shape& DomainOf(const Instr& root);
// Returns why one loop cannot compute all roots of a region, empty if it can.
std::string WhyNoLoop(const FusedRegion& region);

// An element of a root. All elements are computed before any is stored, since outputs may alias
// inputs.
struct RootElement {
  const Instr* root = nullptr;
  size_t part = 0;
  Scalar index;  // row-major index of the store
  Element value;
};
// The element of a slice update at an index of its domain.
RootElement UpdateAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                     const Coordinates& here);
void StoreElements(ElementEmitter& emitter, const std::vector<RootElement>& elements);

// Computes all roots at one element of the domain of the first root, then stores them. `at`: its
// coordinates; `linear`: its row-major index.
void StoreRoots(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                const Coordinates& at, Scalar linear);

// Returns the kernel of a loop with its launch facts. `exact`: no element is written twice.
BuildOutcome FinishLoop(KernelBuilder& b, const ElementEmitter& emitter, const FusedRegion& region,
                        int64_t grid, bool exact);

}  // namespace tokamak
