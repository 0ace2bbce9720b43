#pragma once

#include <cstddef>

// Queries and hints about the host's memory.
namespace tokamak {

// The memory that this process may use, in bytes: the machine's, or the limit of its cgroup if
// lower.
size_t HostMemory();

// Advises the system to back memory that is about to be written for the first time with huge
// pages: page faults of small pages limit first writes to a few GB/s. Does nothing where that is
// unsupported.
void WishForLargePages(void* data, size_t bytes);

}  // namespace tokamak
