#pragma once

#include <cstddef>

namespace tokamak {

// Bytes that this process may take at most: the machine's memory, or less where its control group
// says so.
size_t HostMemory();

}  // namespace tokamak
