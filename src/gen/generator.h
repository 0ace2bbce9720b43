#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/independent.h"
#include "cost/machine.h"
#include "gen/region.h"
#include "kernel/kernel.h"

// Kernel generators: each turns a fused region (region.h) into one kernel in kernel IR
// (kernel/kernel.h). A generator owns the loop nest: grid, threads, vectors, reductions. The scalar
// code inside the loops comes from ElementEmitter (element.h), which is the same for all generators
// and machines. The CPU generators are in this folder, the GPU generators in gpu/; library/ decides
// which ops go to vendor or runtime libraries instead.

namespace tokamak {

// The loop nest that a region is lowered to. Each kind has one generator per machine type.
enum class GeneratorKind : uint8_t {
  kLoop,      // elementwise: each element of the roots independently
  kRows,      // reductions over the minor dimensions plus elementwise code: row by row
  kColumns,   // other reductions and small dots: one vector lane per result
  kScatter,   // updates combined into an array in place
  kScan,      // a scan (carried values along one dimension) plus elementwise code
  kSort,      // lines sorted with any comparator
  kContract,  // a dot (contraction) with elementwise prologue and epilogue: tiled
};
std::string_view NameOf(GeneratorKind kind);

// An argument of a kernel launch: an array of the program.
struct KernelArgument {
  const Instr* instr = nullptr;
  size_t part = 0;  // index of the result if the instruction has several
  bool is_output = false;
};

// A region's kernel, with the facts that launch and buffer assignment need.
struct BuiltKernel {
  Kernel kernel;
  std::vector<KernelArgument> arguments;
  int64_t grid = 1;  // trip count of the grid loop
  // Pairs (input, output) of argument indices that may share a buffer: every element is read just
  // before it is written, by the same lane.
  std::vector<std::pair<size_t, size_t>> in_place;
  // (output argument, array): the output must be in the array's buffer, because the kernel writes
  // only part of it and the rest keeps the array's values.
  std::vector<std::pair<size_t, const Instr*>> updates;
  double work = 0;  // rough work of one grid iteration: primitive operations plus bytes
};

// A kernel, or the reason why the region has none.
struct BuildOutcome {
  std::optional<BuiltKernel> built;
  std::string why_not;
};

BuildOutcome BuildRegion(const FusedRegion& region, GeneratorKind kind, const Machine& machine,
                         const std::string& name);
// Source locations of a region, without duplicates, for comments in its kernel: "model.py:41 (loss)
// jit(f)/add".
std::vector<std::string> NotesOf(const FusedRegion& region);

// The CPU generators, one per kind. BuildRegion calls them; the GPU generators are in gpu/gpu.h.
BuildOutcome BuildLoop(const FusedRegion& region, const Machine& machine, const std::string& name);
// kLoop regions with random bits: computes all words of a Philox block together.
BuildOutcome BuildPhilox(const FusedRegion& region, const Machine& machine,
                         const std::string& name);
// kLoop regions that read a large input transposed.
BuildOutcome BuildTranspose(const FusedRegion& region, const Machine& machine,
                            const std::string& name);
BuildOutcome BuildRows(const FusedRegion& region, const Machine& machine, const std::string& name);
BuildOutcome BuildScatter(const FusedRegion& region, const Machine& machine,
                          const std::string& name);
BuildOutcome BuildColumns(const FusedRegion& region, const Machine& machine,
                          const std::string& name);
BuildOutcome BuildScan(const FusedRegion& region, const Machine& machine, const std::string& name);
BuildOutcome BuildSort(const FusedRegion& region, const Machine& machine, const std::string& name);
BuildOutcome BuildContract(const FusedRegion& region, const Machine& machine,
                           const std::string& name);

// A while loop lowered to one kernel that runs all its iterations (fused_loop.h).
struct FusedLoopRegion {
  WhileLoop loop;
  IndependentLoop form;
  std::optional<int64_t> trip_count;  // if known at compile time
  std::vector<bool> wanted;  // per carried value: used after the loop; false for loop invariants
  // Arrays that the kernel reads: initial values and constants of the body.
  std::vector<const Instr*> inputs;
};
// Returns the region of a while loop. If the loop cannot be fused, form.why_not says why.
FusedLoopRegion FusedLoopRegionOf(const Instr& loop);
BuildOutcome BuildFusedLoop(const FusedLoopRegion& region, const Machine& machine,
                            const std::string& name);
// Whether the whole loop becomes one kernel.
bool IsOneKernel(const Instr& loop, const Machine& machine);

// Returns why a scatter or sort has no kernel, nullopt if it has one.
std::optional<std::string> WhyNoScatter(const Instr& scatter);
std::optional<std::string> WhyNoSort(const Instr& sort, const Machine& machine);

// ---- shared by generators

// The arguments of a region's kernel, in the order in which ElementEmitter declares them.
std::vector<KernelArgument> ArgumentsOf(const FusedRegion& region);
// OnlyIfSound rejects a kernel that violates kernel IR (kernel/verify.h); the region can still be
// lowered in another way. It is called only for kernels of the final plan: verifying every
// candidate would add a tenth to planning time. why_not then starts with kGeneratorBug; tests look
// for that prefix in decision records.
inline constexpr std::string_view kGeneratorBug = "a bug of the generator: ";
BuildOutcome OnlyIfSound(BuildOutcome outcome);
// Fills `in_place` and `work` from the kernel. `exact`: no element is written twice.
void FinishFacts(BuiltKernel& built, bool exact);
// The largest power of two that is at most x (x >= 1).
int64_t PowerBelow(int64_t x);
// Independent vectors that a CPU kernel processes per iteration, so that their dependence chains
// overlap (instruction-level parallelism). Machines with shorter vectors need more of them.
int64_t VectorsTogether(const Machine& machine);
int64_t ProductOf(const Dims& dims, size_t begin, size_t end);

}  // namespace tokamak
