#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gen/element.h"

// reduce-window: elements of its results. The window's taps are folded in their order, row-major,
// from the first value on, each step rounded; a tap that lies in the padding, or between the
// elements of a dilated array, is left out.

namespace tokamak {

// Why no kernel folds so, in words; nothing when one does.
std::optional<std::string> WhyNoWindow(const Instr& window);
int64_t TapsOf(const Instr& window);
// Few taps are written out, and an element is a value like any other. More are loops, around which
// a generator stands: its results are computed at the element at hand alone (FoldLongWindows).
bool IsLongWindow(const Instr& instr);

// All results at one element, as a value.
std::vector<Element> WindowAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& window,
                              const Coordinates& at);
// Folds the long windows of a region at one element, of an array of dimensions `dims`, and binds
// what they give. A fault of the emitter when one is of other dimensions.
void FoldLongWindows(KernelBuilder& b, ElementEmitter& emitter, const Region& region,
                     const Dims& dims, const Coordinates& at);

// Coordinates along the last dimension, first and last one, at which all taps of all windows of a
// region lie inside of their arrays; the last is before the first when there are none. Nothing when
// it is so everywhere along that dimension, or no window lies along it.
std::optional<std::pair<int64_t, int64_t>> InsideOfWindows(const Region& region, const Dims& dims);

}  // namespace tokamak
