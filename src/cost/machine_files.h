#pragma once

#include <span>
#include <string_view>

namespace tokamak {

// The files of machines/, embedded into the library by the build.
struct MachineFile {
  std::string_view name, text;
};
std::span<const MachineFile> MachineFiles();

}  // namespace tokamak
