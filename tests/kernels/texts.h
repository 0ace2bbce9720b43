#pragma once

#include <string>
#include <vector>

namespace tokamak {

// All of a file; "" where there is none.
std::string FileText(const std::string& path);

// The kernels of a text, of which `tokamak kernels` prints many: from `kernel` to the brace that
// closes it.
std::vector<std::string> KernelsOf(const std::string& text);

}  // namespace tokamak
