#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "support/result.h"

namespace tokamak::cuda {

// Types and functions that stand before the functions of a text, where one uses them.
enum class Helper : uint8_t {
  kPacks,
  kBytes,
  kF16,
  kBf16,
  kExtremes,
  kHidden,
  kApproximations,
  kDivision,
  kNarrowDivision,
  kOne,
  kSigns,
  kAlike,
  kTeamMultiply,
  kCluster,
  kArrivals
};

// A kernel in CUDA C++, for NVRTC with --fmad=false and no headers.
struct CudaSource {
  std::string name;  // of the __global__ function, not mangled
  std::string text;
  // The block. The grid is one-dimensional: the product of the extents of all grid loops.
  std::array<int, 3> threads{1, 1, 1};
  // Blocks that run a team together: the grid has so many for each.
  int cluster = 1;
  // Team memory that the launch has to ask for: more than a block has without asking.
  int64_t dynamic_bytes = 0;
  std::set<Helper> helpers;
};

// What comes before the functions of a text.
std::string Prelude(const CudaSource& source);

// Of a verified kernel: parameters are the arguments, then the extents; one line a value; the
// kernel's notes stand above it. Lanes of a vector loop run one after the other in registers, and
// what they load and store side by side at an aligned place is one wide access. TK4120 when CUDA
// C++ has no form for it.
Result<CudaSource> CudaText(const Kernel& kernel);

// The same as a function of the device, `name`, without what comes before functions: its parameters
// are the number of the team, team memory, then the arguments. Threads are those of a
// one-dimensional block, from the first on; `dynamic_bytes` is all the team memory that it needs.
// Only of kernels without extents.
Result<CudaSource> CudaPartText(const Kernel& kernel, const std::string& name);

// How a pack of kernels gets its pointers: those of all arguments, one kernel's after the other's.
enum class PointerTable : uint8_t {
  kParameter,  // by value: the only parameter of the launch
  kMemory,     // in memory of the device, which the only parameter points to
};

struct CudaPackSource {
  CudaSource source;
  PointerTable table{};
};

// Kernels, each with its number of teams, as one: teams of the first, then of the second and so on.
// Equal kernels are one function. A team has as many threads as the largest needs; of others' teams
// those beyond their own end at once.
struct CudaPackPart {
  const Kernel* kernel = nullptr;
  int64_t teams = 0;
};
Result<CudaPackSource> CudaPackText(const std::string& name, std::span<const CudaPackPart> parts);

// A loop as one kernel whose teams all run at the same time: each phase of a round runs kernels, or
// copies, and teams meet before those phases that need what others made.
struct LoopShape {
  struct Phase {
    size_t parts = 0;    // the next so many kernels, side by side; 0: a copy
    int64_t bytes = 0;   // of a copy, to the first of two pointers from the second
    bool meets = false;  // all teams meet before it; they always do at the end of a round
    bool operator==(const Phase&) const = default;
  };
  // What computes whether another round follows: a byte, whose pointer comes after the condition's.
  // None: so many rounds as the launch says.
  std::vector<Phase> condition;
  std::vector<Phase> body;
  std::vector<Phase> closing;  // copies, after an odd number of rounds
  // Odd rounds have pointers of their own, which come after those of even ones.
  bool in_turn = false;

  bool has_condition() const { return !condition.empty(); }
  bool operator==(const LoopShape&) const = default;
};

// How many pointers a loop has: of a round (both kinds have as many), and of all.
struct LoopPointers {
  size_t condition = 0, round = 0, closing = 0, all = 0;
};
LoopPointers PointersOf(const LoopShape& shape, std::span<const CudaPackPart> parts);

// Parts: kernels of the condition, then those of the body. Parameters of the kernel: all pointers
// by value; memory of kLoopMemory bytes, all zero, where teams meet; the most rounds of this
// launch; whether the first is odd; whether the loop closes after them. It leaves the number of
// rounds that it did, and whether the condition ended them, in the last two words of that memory.
inline constexpr size_t kLoopMemory = 512;
Result<CudaSource> CudaLoopText(const std::string& name, std::span<const CudaPackPart> parts,
                                const LoopShape& shape);

}  // namespace tokamak::cuda
