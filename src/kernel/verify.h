#pragma once

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

// What every kernel keeps to. The first fault, located when `places` are given.
//
//   Values      Operands are older than users and have the types of prims.def. f16 and bf16 are for
//               memory: they are loaded, stored, selected and converted from and to other floats.
//   Scope       A value is used only where the loops that it depends on are open, and after the
//               reads and shuffles that it depends on, in their block or within.
//   Loops       Each loop is one statement. Grid loops (at most 3, extents of constants and launch
//               extents) stand around all else, thread loops (at most 3, 1024 threads; of several
//               the outermost may count up to 16 blocks, cluster.h) around all but them; the block
//               that holds such a loop holds nothing else. Extents of thread, unrolled and vector
//               loops are constants above 0. Vector loops (at most 64 lanes) do not nest, and
//               extents of loops within them do not vary by lane.
//   Memory      Arguments come first. A load is of an argument that is only read; a read is of one
//               that is also written, of team memory or of registers; a store is not to an argument
//               that is only read. Registers of lanes (variance.h) are read under vector loops, all
//               of one extent.
//   Meeting     A barrier of the block stands under thread loops, uniform ifs and whiles, and loops
//               whose extents do not vary by thread. A shuffle stands under a thread or vector
//               loop.
//               So does a team's multiply, whose thread loop is one and has the threads of its
//               warps. Its sums fill an array of registers.
//   Depth       At most kMaxNesting blocks within each other.
Status VerifyKernel(const Kernel& kernel, const KernelPlaces* places = nullptr);

}  // namespace tokamak
