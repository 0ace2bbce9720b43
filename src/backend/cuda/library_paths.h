#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak::cuda {

// Where a library of NVIDIA may be, by the beginning of its file's name ("libnvrtc.so"): in the
// Python packages of the environment, or of this process; where the loader looks (no path);
// in /usr/local/cuda*. The best first.
std::vector<std::string> LibraryPaths(std::string_view name);

// Opens the first that can be; null, and why not, when none can.
void* OpenLibrary(std::string_view name, std::string& why_not);

// Which file that would be, with its size and time, without opening it; "" when only the loader
// knows.
std::string LibraryIdentity(std::string_view name);

}  // namespace tokamak::cuda
