#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/independent.h"
#include "cost/machine.h"
#include "gen/region.h"
#include "gen/schedule.h"
#include "kernel/kernel.h"

// Kernel generators: each turns a fused region (region.h) into one kernel in kernel IR
// (kernel/kernel.h). A generator owns the loop nest: grid, threads, vectors, reductions. The scalar
// code inside the loops comes from ElementEmitter (element.h), which is the same for all generators
// and machines. The CPU generators are in this folder, the GPU generators in gpu/; library/ decides
// which ops go to vendor or runtime libraries instead.
//
// Words of this folder:
//   task          one iteration of the grid loop: a thread block on a GPU, a job of the thread pool
//                 on a CPU
//   row           the elements of an array at one index of its major dimensions: what a reduction
//                 over the minor dimensions combines. In kRows on a CPU also the elements that a
//                 strided reduction, one over other dimensions, combines (row_levels.h)
//   line          a 1-d slice of an array along the dimension of a sort, which may be any
//                 dimension: its elements need not be contiguous
//   point         one index of the parallel dimensions of a while loop (whole_loop.h)
//   domain        the index space that a generator's loops cover, usually a root's dimensions
//   `at`          coordinates, one index per dimension; `linear` and `index` are row-major indices
//   local array   an array of the kernel that is not an argument: Space::kShared or
//                 Space::kRegisters, on CPUs stack or scratch memory of the task. CUDA's local
//                 memory is never meant
//   lane          an iteration of a vector loop (LoopRole::kVector): a SIMD lane on a CPU, an
//                 element of a thread's vector access on a GPU; "lane of a warp" is CUDA's
//   factor, sum   the operands of a dot's multiplications, and its accumulators
//   Chosen        in the comment on a constant: the value was set by hand and not measured
//
// A while loop runs in one of three ways, tried in this order (docs/loops.md):
//   whole-loop kernel   BuildWholeLoop: one generated kernel contains the serial loop over the
//                       iterations. Points are independent, so no thread waits for another thread
//                       block (whole_loop.h).
//   persistent kernel   (GPU) the body is lowered to several ordinary kernels first. One
//                       cooperative launch runs them as phases of each iteration, with a grid
//                       barrier between dependent phases (lower/persistent.h). Requires that every
//                       step of the body is a generated kernel or a copy: one library call in the
//                       body excludes it (PrefersKernelInLoop, library/dot.h). So does a kernel
//                       that is launched as a cluster, and some grid and block sizes
//                       (lower/persistent.cc). Generators do nothing special for it.
//   loop of steps       the host launches the kernels of the body once per iteration.
// None of these is a "loop kernel" (kLoop): that is an elementwise kernel, a loop over elements.

namespace tokamak {

// An argument of a kernel launch: an array of the program.
struct KernelArgument {
  const Instr* instr = nullptr;
  size_t result_index = 0;  // index of the result if the instruction has several
  bool is_output = false;
};

// A region's kernel, with the facts that launch and buffer assignment need.
struct BuiltKernel {
  Kernel kernel;
  std::vector<KernelArgument> arguments;
  int64_t grid = 1;  // tasks: trip count of the kernel's single grid loop
  // May alias: pairs (input, output) of argument indices that may share a buffer, since every
  // element is read just before it is written, by the same lane.
  std::vector<std::pair<size_t, size_t>> may_alias;
  // Must alias: (output argument, array). The output must be in the array's buffer, because the
  // kernel writes only part of it and the rest keeps the array's values.
  std::vector<std::pair<size_t, const Instr*>> must_alias;
  // Unset if its generator has no schedules (schedule.h).
  std::optional<Schedule> schedule = std::nullopt;
};

// A kernel, or the reason why the region has none.
struct BuildOutcome {
  std::optional<BuiltKernel> built;
  std::string why_not;
};

// The schedules (schedule.h) with which the generator of `kind` can build the region's kernel, in
// order of preference and without duplicates. Empty if the generator has no schedules, or if it
// rejects the region. Every schedule of the list fits the machine, but the element code of the
// region may still be rejected when it is emitted.
std::vector<Schedule> Schedules(const FusedRegion& region, GeneratorKind kind,
                                const Machine& machine);
// Builds the kernel of a region with the generator of `kind` for the machine, with the first of its
// schedules if it has any.
BuildOutcome BuildRegion(const FusedRegion& region, GeneratorKind kind, const Machine& machine,
                         const std::string& name);
// Builds the kernel of a region with exactly this schedule. The outcome says why if the schedule
// does not fit the region or the machine.
BuildOutcome BuildRegion(const FusedRegion& region, const Schedule& schedule,
                         const Machine& machine, const std::string& name);
// Source locations of a region, without duplicates, for comments in its kernel: "model.py:41 (loss)
// jit(f)/add".
std::vector<std::string> NotesOf(const FusedRegion& region);

// The CPU generators, one per kind. For kLoop there are three: BuildRegion tries BuildPhilox, then
// BuildTranspose, then BuildElementwise. The GPU generators are in gpu/gpu.h.
// `schedule` may be null in all generators that have schedules: the first of the list.
BuildOutcome BuildElementwise(const FusedRegion& region, const Schedule* schedule,
                              const Machine& machine, const std::string& name);
// The schedules of BuildTranspose, then those of BuildElementwise.
std::vector<Schedule> LoopSchedules(const FusedRegion& region, const Machine& machine);
// kLoop regions with random bits: computes all words of a Philox block together.
BuildOutcome BuildPhilox(const FusedRegion& region, const Machine& machine,
                         const std::string& name);
// kLoop regions that read a large input transposed.
BuildOutcome BuildTranspose(const FusedRegion& region, const Schedule* schedule,
                            const Machine& machine, const std::string& name);
std::vector<Schedule> TransposeSchedules(const FusedRegion& region, const Machine& machine);
BuildOutcome BuildRows(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
                       const std::string& name);
std::vector<Schedule> RowsSchedules(const FusedRegion& region, const Machine& machine);
BuildOutcome BuildScatter(const FusedRegion& region, const Machine& machine,
                          const std::string& name);
BuildOutcome BuildColumns(const FusedRegion& region, const Schedule* schedule,
                          const Machine& machine, const std::string& name);
std::vector<Schedule> ColumnsSchedules(const FusedRegion& region, const Machine& machine);
BuildOutcome BuildScan(const FusedRegion& region, const Machine& machine, const std::string& name);
BuildOutcome BuildSort(const FusedRegion& region, const Machine& machine, const std::string& name);
BuildOutcome BuildContract(const FusedRegion& region, const Schedule* schedule,
                           const Machine& machine, const std::string& name);
std::vector<Schedule> ContractSchedules(const FusedRegion& region, const Machine& machine);

// A while loop as input of the whole-loop generators (whole_loop.h).
struct WholeLoopRegion {
  WhileLoop loop;
  LoopIndependence independence;      // the loop's parallel dimensions
  std::optional<int64_t> trip_count;  // if known at compile time
  // Per carried value: whether the kernel has an output for it, because it is used after the loop
  // and changes in it. Users of a loop invariant read its initial value instead.
  std::vector<bool> has_output;
  // Arrays that the kernel reads: initial values and constants of the body.
  std::vector<const Instr*> inputs;
};
// Returns the region of a while loop. If the loop has no parallel dimension, independence.why_not
// says why.
WholeLoopRegion WholeLoopRegionOf(const Instr& loop);
// Builds the whole-loop kernel with the generator of the machine: gpu::BuildWholeLoop (gpu/gpu.h)
// on GPUs, else the CPU generator (whole_loop.cc).
BuildOutcome BuildWholeLoop(const WholeLoopRegion& region, const Machine& machine,
                            const std::string& name);
// Whether a whole-loop kernel can be built. Builds and discards one; lowering (lower/launches.cc)
// also compares its cost with the loop of steps.
bool CanBuildWholeLoop(const Instr& loop, const Machine& machine);

// Returns why a scatter or sort has no kernel, nullopt if it has one.
std::optional<std::string> WhyNoScatterKernel(const Instr& scatter);
std::optional<std::string> WhyNoSortKernel(const Instr& sort, const Machine& machine);

// ---- shared by generators

// The arguments of a region's kernel, in the order in which ElementEmitter declares them.
std::vector<KernelArgument> ArgumentsOf(const FusedRegion& region);
// VerifyOrReject rejects a kernel that violates the rules of kernel IR (kernel/verify.h). The
// planner then forms smaller regions instead; a single instruction without a kernel is computed
// by the reference interpreter, on the host. A while loop runs in another of the ways above. Only
// kernels of complete plans are verified: verifying every candidate would add a tenth to planning
// time. why_not starts with kGeneratorBug; tests look for that prefix in decision records.
inline constexpr std::string_view kGeneratorBug = "generator bug: ";
BuildOutcome VerifyOrReject(BuildOutcome outcome);
// Fills `may_alias` from the kernel, which must write no element of an output twice. For other
// kernels it stays empty: they compute nothing in place.
void FindMayAlias(BuiltKernel& built);
// The largest power of two that is at most x (x >= 1).
int64_t FloorPowerOfTwo(int64_t x);
// Independent vectors that a CPU kernel processes per iteration, so that their dependence chains
// overlap (instruction-level parallelism). Machines with shorter vectors need more of them.
int64_t InterleaveFactor(const Machine& machine);
// Registers that one vector of results may take on a CPU. Chosen: two independent chains overlap;
// more are left to the loops that interleave vectors.
inline constexpr int64_t kRegistersOfVector = 2;
// Elements from which a CPU kernel is worth distributing over cores. Chosen: tens of microseconds
// of one core, above the cost of waking the threads.
inline constexpr int64_t kMinParallelWork = 1 << 17;
// Batches from which each thread has some of its own, so a batch is not divided. Chosen: 16 batches
// balance the cores of a typical CPU.
inline constexpr int64_t kManyBatches = 16;
// The product of dims[begin, end).
int64_t ProductOf(const Dims& dims, size_t begin, size_t end);

}  // namespace tokamak
