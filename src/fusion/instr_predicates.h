#pragma once

// Questions that planners ask about a single instruction, answered without looking at its
// neighbours; and the order in which planners visit the instructions of a computation.

#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// All instructions, operands and control predecessors before users: parameters, then what the
// computation's root needs, then what instructions with side effects need, then dead instructions.
// The order depends on the graph and not on the order in the program, except that side effects keep
// their order.
std::vector<Instr*> OrderFromRoot(const Computation& computation);

// ---- where the value is computed

// Never in a kernel, on any machine: a parameter, control flow, or an instruction whose result is
// not an array. Exceptions are the ops whose results, if there are several, one kernel computes:
// those of IsMultiResultOp, and sort.
bool IsNeverInKernel(const Instr& instr);
// Why no kernel on this machine can compute the instruction, decided by its op, attributes and
// shapes; empty if one may. CandidatePlan::IsOutsideKernels also considers library calls and the
// users of the value.
std::string WhyNoKernel(const Instr& instr, const Machine& machine);
// Bytes; a larger splat constant is filled by a kernel when it is needed instead of being kept in
// memory. Chosen: up to a page, a launch costs more than the memory.
inline constexpr int64_t kMaxStoredSplat = 4096;
// A constant that kernels load from memory: an array with more than one distinct value, an array
// without elements, or a tuple. Other constants, which are scalars and splats, are embedded in the
// code of kernels (IsImmediate, gen/region.h).
bool IsMemoryConstant(const Instr& instr);
// The value can share the bytes of its operands (tuple), of its only operand (reshape, copy, ...),
// or of one element of a tuple operand (get-tuple-element). Outside kernels, nothing has to be
// computed. Inside a region, the kernel computes the same op by index arithmetic.
bool IsAlias(const Instr& instr);
// An op that may have a tuple of results, all of which one kernel computes, possibly together with
// their users (reduce, scan, reduce-window). Not sort: it may have a tuple of results too, but it
// is always the only root of its kernel, so its users are in other kernels. Decided by the op
// alone: also true if this instruction has a single result.
bool IsMultiResultOp(const Instr& instr);
// Overwrites some elements of operand 0 in place and keeps the others (dynamic-update-slice,
// scatter). Always a root of its region.
bool IsPartialUpdate(const Instr& instr);

// ---- what computing it costs

// Costs nothing to repeat. Some are index arithmetic or immediates in the kernel (broadcast, iota,
// slice, reshape, constant). Others are never computed in a kernel (tuple, parameter). This is
// narrower than data movement: a transpose or a gather is not free.
//
// A source line or a label of a fusion constraint (constraints.h) may match several instructions.
// If any of them is not free, the constraint ignores the free ones.
bool IsFreeToRecompute(const Instr& instr);
bool IsReduceDotOrScan(const Instr& instr);
// Whether a reduce reduces the minor-most (contiguous) dimensions.
bool IsRowReduction(const Instr& instr);
// Number of elements of the result; of the first result for a tuple.
int64_t ResultElementCount(const Instr& instr);
// Number of elements that the instruction computes: the updated ones for a partial update, else
// ResultElementCount.
int64_t ComputedElementCount(const Instr& instr);
// Bytes of the result; of all results for a tuple.
int64_t ResultBytes(const Instr& instr);

bool ContainsInstr(const std::vector<const Instr*>& list, const Instr* instr);

}  // namespace tokamak
