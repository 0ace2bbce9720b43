#pragma once

#include <cstddef>

namespace tokamak {

// Bytes that this process may take at most: the machine's memory, or less where its control group
// says so.
size_t HostMemory();

// Wishes that memory which is about to be written for the first time comes in large pages: the
// system hands out small ones at a few GB/s. Does nothing where that cannot be had.
void WishForLargePages(void* data, size_t bytes);

}  // namespace tokamak
