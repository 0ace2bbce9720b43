#pragma once

#include <optional>
#include <string>

#include "gen/element.h"

// select-and-scatter, as code for an element of its result: the element asks each window that it
// lies in, in their order, whether it is the one that the window selects.

namespace tokamak {

// Why no kernel does it, in words; nothing when one does.
std::optional<std::string> WhyNoSelectAndScatter(const Instr& instr);
// Taps of all windows that an element asks.
int64_t TapsAsked(const Instr& instr);

Element SelectAndScatterAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& instr,
                           const Coordinates& at);

}  // namespace tokamak
