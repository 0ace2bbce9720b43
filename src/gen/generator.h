#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/independent.h"
#include "cost/machine.h"
#include "gen/region.h"
#include "kernel/kernel.h"

namespace tokamak {

// What a region is made into. A kind has one generator.
enum class RegionKind : uint8_t {
  kLoop,      // every element of its roots by itself
  kRows,      // reductions over the last dimensions, and elements around them: a row at a time
  kColumns,   // reductions over other dimensions, contractions: lanes hold neighbouring results
  kScatter,   // updates combined into an array in place
  kScan,      // a computation along a dimension that carries values, and elements around it
  kSort,      // lines sorted by any comparison
  kContract,  // a contraction, with elements around it: tile by tile
};
std::string_view NameOf(RegionKind kind);

// An argument of a kernel's launch: an array that the program makes.
struct KernelArgument {
  const Instr* instr = nullptr;
  size_t part = 0;  // of a root with several results
  bool is_output = false;
};

// A kernel of a region, with what a launch and the assignment of memory need to know of it.
struct BuiltKernel {
  Kernel kernel;
  std::vector<KernelArgument> arguments;
  int64_t grid = 1;  // iterations of the grid's loop
  // (input, output), by the numbers of arguments: may be one memory, since every element is read
  // just before it is written and by the same lane.
  std::vector<std::pair<size_t, size_t>> in_place;
  // The output must lie where the instruction's operand 0 is: only a part of it is written.
  std::vector<std::pair<size_t, const Instr*>> updates;
  double work = 0;  // primitives and bytes of one iteration of the grid, roughly
};

// A kernel, or why the region has none, in words.
struct BuildOutcome {
  std::optional<BuiltKernel> built;
  std::string why_not;
};

BuildOutcome BuildRegion(const Region& region, RegionKind kind, const Machine& machine,
                         const std::string& name);
// Where a region comes from, for readers of its kernel: "model.py:41 (loss) jit(f)/add", each once.
std::vector<std::string> NotesOf(const Region& region);

// One per kind, for CPUs (BuildRegion calls them; those for GPUs: gpu/gpu.h).
BuildOutcome BuildLoop(const Region& region, const Machine& machine, const std::string& name);
// Only regions of kLoop with random bits that are made several at a time.
BuildOutcome BuildPhilox(const Region& region, const Machine& machine, const std::string& name);
// Only regions of kLoop that read a large input across their rows.
BuildOutcome BuildTranspose(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildRows(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildScatter(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildColumns(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildScan(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildSort(const Region& region, const Machine& machine, const std::string& name);
BuildOutcome BuildContract(const Region& region, const Machine& machine, const std::string& name);

// A while as one kernel, all its rounds (rounds.h).
struct RoundsRegion {
  WhileLoop loop;
  IndependentLoop form;
  std::optional<int64_t> rounds;  // known
  std::vector<bool> wanted;       // results that others read; of what stays none
  // Arrays that it reads: first values, constants of its body.
  std::vector<const Instr*> inputs;
};
// The region of a while; what its form has against it is in form.why_not.
RoundsRegion RoundsRegionOf(const Instr& loop);
BuildOutcome BuildRounds(const RoundsRegion& region, const Machine& machine,
                         const std::string& name);
// Whether a loop is one kernel.
bool IsOneKernel(const Instr& loop, const Machine& machine);

// Why a scatter, a sort has no kernel, in words; nothing when it has one.
std::optional<std::string> WhyNoScatter(const Instr& scatter);
std::optional<std::string> WhyNoSort(const Instr& sort, const Machine& machine);

// ---- shared by generators

// The arguments of a region's kernel, in the order of ElementEmitter.
std::vector<KernelArgument> ArgumentsOf(const Region& region);
// A kernel that breaks the rules of verify.h is none: it would compute anything, and other kernels
// can do its work. Of kernels that a plan is made of; verifying each that is only priced would take
// a tenth of planning. The words that why_not begins with then: tests look for them in decisions.
inline constexpr std::string_view kGeneratorBug = "a bug of the generator: ";
BuildOutcome OnlyIfSound(BuildOutcome outcome);
// Fills `in_place` and `work` from the kernel. `exact`: no element is written twice.
void FinishFacts(BuiltKernel& built, bool exact);
// The largest power of two that is at most x (x >= 1).
int64_t PowerBelow(int64_t x);
// Vectors of a CPU that are worked on side by side: each waits for itself, step by step, and the
// others fill the time. Of short ones more have to be under way.
int64_t VectorsTogether(const Machine& machine);
int64_t ProductOf(const Dims& dims, size_t begin, size_t end);

}  // namespace tokamak
