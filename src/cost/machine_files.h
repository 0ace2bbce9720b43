#pragma once

#include <span>
#include <string_view>

namespace tokamak {

// The files of machines/, which the build puts into the library.
struct MachineFile {
  std::string_view name, text;
};
std::span<const MachineFile> MachineFiles();

}  // namespace tokamak
