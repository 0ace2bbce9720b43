#pragma once

#include <optional>
#include <string>

#include "gen/element.h"

// select-and-scatter in gather form: each result element checks all windows that contain it, in
// order, and adds the source of those that select it.

namespace tokamak {

// Returns why elements of a select-and-scatter have no code, nullopt if they have.
std::optional<std::string> WhyNoSelectAndScatterCode(const Instr& instr);
// Taps that one result element evaluates, over all its windows.
int64_t TapsPerResult(const Instr& instr);
// Those windows.
int64_t WindowsPerResult(const Instr& instr);

Element SelectAndScatterAt(KernelBuilder& b, ElementEmitter& emitter, const Instr& instr,
                           const Coordinates& at);

}  // namespace tokamak
