#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gen/element.h"

// reduce-window: code for elements of its results. Taps are reduced in row-major order starting
// from the initial value, and each step is rounded. Taps in the padding, or between the elements of
// a base-dilated array, are skipped.

namespace tokamak {

// Returns why elements of a reduce-window have no code, nullopt if they have.
std::optional<std::string> WhyNoReduceWindowCode(const Instr& window);
// Windows of up to 32 taps (kFewTaps) are unrolled: the element emitter computes them at any
// coordinates. Long windows are loops that a generator emits (ReduceLongWindows); their results
// exist only for the current element.
bool IsLongWindow(const Instr& instr);

// All results at one element, unrolled.
std::vector<Element> WindowAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& window,
                              const Coordinates& at);
// Emits the loops of a region's long windows at one element of an array of dimensions `dims`, and
// binds their results. Fails the emitter if a window has other dimensions.
void ReduceLongWindows(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                       const Dims& dims, const Coordinates& at);

// The first and last coordinate along the last dimension of `dims` at which all taps of all windows
// of a region are in bounds, so that the loop between them needs no bounds checks. Returns nullopt
// if no window needs one anywhere; last < first if every coordinate needs one.
std::optional<std::pair<int64_t, int64_t>> InteriorOfWindows(const FusedRegion& region,
                                                             const Dims& dims);

}  // namespace tokamak
