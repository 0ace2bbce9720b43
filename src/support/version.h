#pragma once

#include <string_view>

namespace tokamak {

// The library version. Must equal project(VERSION) in CMakeLists.txt.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace tokamak
