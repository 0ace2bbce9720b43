#pragma once

#include <string>

#include "driver/spread.h"

namespace tokamak {

// How an array is spread, as a serialized OpSharding of XLA.
std::string WriteOpSharding(const Spread& spread, int64_t devices);

}  // namespace tokamak
