#pragma once

#include <cstddef>
#include <string_view>

namespace tokamak {

// Levenshtein distance: the number of insertions, deletions and substitutions that turn one name
// into the other. Used for "did you mean" hints. Quadratic in the lengths.
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace tokamak
