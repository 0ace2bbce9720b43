#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cost/machine.h"
#include "ir/element_type.h"

namespace tokamak {

class Instr;
struct Kernel;

// The cost model, first half: what a kernel does (Work) and the estimate made from it
// (CostEstimate). The second half, what a machine can do, is rates.h.
//
//   Work      = counts: bytes read and written, operations per pipe, dependent chains, barriers
//   Rates     = measured: ns per operation, bandwidth by working set, launch overhead
//   estimate  = launch + smooth_max(memory, compute)        in microseconds
//
// memory is bytes over bandwidth. compute is the sum over pipes of count * ns, or the latency of
// the longest dependent chains if that is greater. smooth_max is a p-norm: memory and compute
// overlap, but not perfectly when they are about equal. docs/cost_model.md has the formulas.

// A pipe is a class of machine operations with one throughput. On a CPU a vector register counts as
// one operation, on a GPU each element of each thread does.
enum class Pipe : uint8_t {
  kSimple,    // add, multiply, compare, select, logic, shift, min; bitcasts are free
  kInteger,   // integer multiplication, popcount, clz
  kDivide,    // 32-bit float division
  kDivide64,  // 64-bit float division
  kRoot,      // 32-bit square root
  kRoot64,
  kConvert,  // between widths, and between integers and floats
  kScalar,   // operations that are not vectorized: integer division
  kIndex,    // lane-uniform scalar arithmetic
  kLoad,     // contiguous or broadcast
  kStore,
  kGather,      // one element per lane at arbitrary addresses
  kScatter,     // as kGather, stores
  kBranch,      // loop back edges and conditional branches
  kMultiply,    // multiply-adds of a `multiply` statement: f32 and 32-bit integers
  kMultiply64,  // f64
  kMultiply16,  // bf16 and narrow integers, two or more per 32-bit lane
  kTensor,  // GPU: multiply-adds of 16-bit types by asynchronous multiplies (wgmma), at their full
            // rate
};
inline constexpr size_t kPipes = static_cast<size_t>(Pipe::kTensor) + 1;

// What a kernel does, summed over the grid. Counted from kernel IR (WorkOf), or by a planner from
// the instructions of a fused region before a kernel exists (tasks, reads, writes, AddElementOp).
struct Work {
  double tasks = 1;              // grid iterations
  double reads = 0, writes = 0;  // bytes of arrays, each element once
  double rereads = 0;            // bytes read again and served by the L2 cache
  double memory_rereads = 0;     // bytes read again and served by the last-level cache or memory
  std::array<double, kPipes> ops{};  // operations per pipe
  double registers = 0;              // maximum number of live vector registers
  double min_chunk = 0;              // minimum tasks per thread; 0: use MinChunkOf
  double lines = 0;  // non-contiguous cache-line accesses of arrays that exceed the L2 cache
  // Operations on dependent chains (each waits for the previous one): float additions, others.
  double sums = 0, chain = 0;
  // GPU only: threads per block, 32-bit registers per thread, barriers per block, shared memory per
  // block in bytes.
  double threads = 1, thread_registers = 0, barriers = 0, shared_bytes = 0;
  // GPU only: loads of each thread that fills panels of asynchronous multiplies, of all blocks.
  double panel_loads = 0;
  // GPU only: bytes that bulk copies write to shared memory and asynchronous multiplies read from
  // it, of all blocks.
  double panel_bytes = 0;
  // GPU only: bytes that bulk copies bring to panels in shared memory, and those that the consumers
  // of results copy there, of all blocks.
  double copied_bytes = 0, result_bytes = 0;
  // GPU only: operations of all threads that fill panels, as simple operations that take the same
  // time. They are not in `ops`: other threads multiply at the same time.
  double panel_ops = 0;
  // GPU only: loads of each thread that uses the results of asynchronous multiplies, of all blocks.
  double result_loads = 0;
  // GPU only: whether the warpgroups take turns at asynchronous multiplies. The consumers of the
  // results of one then run beside the multiplies of the other.
  bool takes_turns = false;
  // GPU only, of kernels with asynchronous multiplies: tiles of the thread block with the most of
  // them, and its share of the work over the average one.
  double most_tiles = 1, imbalance = 1;

  double& operator[](Pipe pipe) { return ops[static_cast<size_t>(pipe)]; }
  double operator[](Pipe pipe) const { return ops[static_cast<size_t>(pipe)]; }
};

// The estimated run time of one execution, by term, in microseconds.
struct CostEstimate {
  double launch = 0, memory = 0, compute = 0;
  // The largest term: "launch", "memory" or "compute".
  std::string_view binding = "launch";
  // launch + the smooth maximum of memory and compute. At least launch plus either of them.
  double all = 0;
  // CPU: threads that the runtime will use. GPU: thread blocks that run at once.
  double threads = 1;

  double total() const { return all; }
};

CostEstimate EstimateCost(const Work& work, const Machine& machine);
// GPU: the launch, and the bytes of arrays at full bandwidth. No schedule with the same traffic
// takes less.
double LeastMicroseconds(const Work& work, const Machine& machine);
// The minimum number of grid iterations per thread that amortizes waking a thread, scaled by
// `times`.
int64_t MinChunkOf(const Work& work, const Machine& machine, int64_t times = 1);

// Counts the work of a verified kernel from its statements. `grid` is the number of grid
// iterations; 0: as the kernel's constant extents say.
Work WorkOf(const Kernel& kernel, int64_t grid, const Machine& machine);

// Adds the operations that compute `elements` elements of an instruction from elements of its
// operands. For a reduction, `elements` counts operand elements; for a dot, result elements. Does
// not count memory traffic: the caller, which knows what is loaded and stored, adds it.
void AddElementOp(Work& work, const Instr& instr, double elements, const Machine& machine);
// Add contiguous loads or stores of elements in their storage type (operations only, not bytes).
void AddLoads(Work& work, double elements, ElementType type, const Machine& machine);
void AddStores(Work& work, double elements, ElementType type, const Machine& machine);

}  // namespace tokamak
