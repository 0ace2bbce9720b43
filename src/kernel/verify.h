#pragma once

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

// Verifies the invariants of kernel IR. Returns the first violation, with its source location if
// `locations` is given.
//
//   Values      Operands precede users and have the types of prims.def. f16 and bf16 are storage
//               types: they are only loaded, stored, selected, and converted to and from other
//               floats.
//   Scope       A value is used only inside the loops that it depends on, and after the reads and
//               shuffles that it depends on, in their statement block or a nested one.
//   Loops       Each loop has one statement. Grid loops (at most 3, with extents computed from
//               constants and launch extents) are outermost. Thread loops (at most 3, 1024 threads;
//               with several, the outermost may count up to 16 thread blocks of a cluster,
//               cluster.h) follow. The statement block that contains a grid or thread loop contains
//               nothing else. Extents of thread, unrolled and vector loops are positive constants.
//               Vector loops (at most 64 lanes) do not nest, and extents of loops inside them are
//               uniform across lanes.
//   Memory      Arguments come first. A load is from a read-only argument; a read is from a written
//               argument, shared memory or registers; a store is not to a read-only argument.
//               Arrays with per-lane copies (divergence.h) are read under vector loops, all of one
//               extent.
//   Barrier     A block barrier is under thread loops, uniform ifs and whiles, and loops whose
//               extents are uniform across threads. A shuffle is under a thread or vector loop. A
//               block-wide multiply follows the rules of barriers and has exactly one thread loop
//               around it, with the threads of its warps. Its accumulators fill an array of
//               registers.
//   Depth       At most kMaxNesting nested statement blocks.
Status VerifyKernel(const Kernel& kernel, const KernelLocations* locations = nullptr);

}  // namespace tokamak
