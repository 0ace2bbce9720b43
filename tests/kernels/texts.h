#pragma once

// Files of kernel text, for the kernel tests.

#include <string>
#include <vector>

namespace tokamak {

// The contents of a file; "" if it does not exist.
std::string FileText(const std::string& path);

// Splits a text of kernels, as `tokamak kernels` prints it: each from `kernel` to its closing
// brace.
std::vector<std::string> KernelsOf(const std::string& text);

}  // namespace tokamak
