#pragma once

#include <string>
#include <string_view>

namespace tokamak {

// A copy of the text that lives as long as the process, the same for equal texts: for views that
// outlive what they name.
const std::string& Interned(std::string_view text);

}  // namespace tokamak
