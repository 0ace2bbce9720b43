#pragma once

#include <string>
#include <string_view>
#include <vector>

// Locates NVIDIA's shared libraries.
namespace tokamak::cuda {

// Candidate paths of a library, best first, by the prefix of its file name ("libnvrtc.so"): Python
// packages of the environment or of this process, the loader's search path (no directory), then
// /usr/local/cuda*.
std::vector<std::string> LibraryPaths(std::string_view name);

// Opens the first candidate that loads. Returns null and sets `why_not` if none does.
void* OpenLibrary(std::string_view name, std::string& why_not);

// Identifies the file that OpenLibrary would open by path, size and time, without opening it; empty
// if only the loader can resolve it.
std::string LibraryIdentity(std::string_view name);

}  // namespace tokamak::cuda
