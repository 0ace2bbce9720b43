#pragma once

#include <cstddef>
#include <string_view>

namespace tokamak {

// How many characters must be put in, taken out or exchanged to turn one name into the other: for
// asking "did you mean". Quadratic in the names.
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace tokamak
