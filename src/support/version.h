#pragma once

#include <string_view>

namespace tokamak {

// As in project(VERSION) of CMakeLists.txt.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace tokamak
