#pragma once

#include <string>

#include "gen/element.h"
#include "gen/generator.h"

// What loops of every machine share: the elements of a region's roots.

namespace tokamak {

// A root that is a dynamic-update-slice runs over its update and writes only there.
bool IsSliceUpdate(const Instr& root);
// The elements that a loop over the root runs over.
const Shape& DomainOf(const Instr& root);
// Why one loop cannot make all roots of a region; "" when it can.
std::string WhyNoLoop(const Region& region);

// An element of a root, which is made before any root is written.
struct RootElement {
  const Instr* root = nullptr;
  size_t part = 0;
  Scalar index;  // where it is written, row-major
  Element value;
};
// Of a slice update, at a place of its domain.
RootElement UpdateAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& root,
                     const Coordinates& here);
void StoreElements(ElementEmitter& emitter, const std::vector<RootElement>& elements);

// Computes all roots at one element of the domain of the first one, then writes them. `at` are its
// coordinates, `linear` its number, row-major.
void StoreRoots(KernelBuilder& b, ElementEmitter& emitter, const Region& region,
                const Coordinates& at, Scalar linear);

// The outcome of a loop: facts for the launch. `exact`: no element is written twice.
BuildOutcome FinishLoop(KernelBuilder& b, const ElementEmitter& emitter, const Region& region,
                        int64_t grid, bool exact);

}  // namespace tokamak
