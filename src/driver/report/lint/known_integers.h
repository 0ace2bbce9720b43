#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// The elements of an integer or pred array that is computed from constants and iotas alone, as
// indices are; row-major. Nullopt if it depends on anything else, is larger than a limit, or has an
// op that indices do not need. Linear in the elements of the values behind it.
std::optional<std::vector<int64_t>> IntegersOf(const Instr& value);

}  // namespace tokamak
