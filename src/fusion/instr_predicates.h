#pragma once

// Questions that planners ask about a single instruction, answered without looking at its
// neighbours; and the order in which planners visit the instructions of a computation.

#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// All instructions, operands and control predecessors before users, in an order that depends on the
// graph and not on the order in the program: parameters, then what the computation's root needs,
// then what effects need.
std::vector<Instr*> OrderFromRoot(const Computation& computation);

// ---- where the value is computed

// Never in a kernel, on any machine: a parameter, control flow, a tuple.
bool IsNeverInKernel(const Instr& instr);
// Why no kernel on this machine can compute the instruction, decided by its op, attributes and
// shapes; empty if one may. CandidatePlan::IsOutsideKernels also considers library calls and the
// users of the value.
std::string WhyNoKernel(const Instr& instr, const Machine& machine);
// An array constant, which kernels load from memory. Other constants are embedded in their code.
bool IsMemoryConstant(const Instr& instr);
// The value shares the bytes of its operand, or of one element of a tuple operand, so nothing has
// to be computed (get-tuple-element, reshape, copy, ...).
bool IsAlias(const Instr& instr);
// An op that may have a tuple of results, all of which one kernel computes (reduce, scan,
// reduce-window).
bool IsMultiResultOp(const Instr& instr);
// Overwrites some elements of operand 0 in place and keeps the others (dynamic-update-slice,
// scatter). Always a root of its region.
bool IsPartialUpdate(const Instr& instr);

// ---- what computing it costs

// Computes nothing, so any kernel may repeat it: broadcasts, slices, reshapes, tuples, constants,
// parameters. Fusion constraints (constraints.h) do not apply to such instructions. This is
// narrower than data movement: a transpose or a gather is not free.
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
