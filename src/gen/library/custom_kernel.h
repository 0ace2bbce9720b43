#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"
#include "support/result.h"

// Custom kernels: ops whose code the user wrote in C, C++ or CUDA C++ (docs/custom_kernels.md). In
// the program one is a custom call of kCustomKernelTarget. Its attribute `kernel`, a JSON object,
// has the sources and how to launch them, so that the program is complete without Python.
//
// The pass fuse-custom-kernels puts a kernel with element hooks, and the elementwise instructions
// around it, into a fusion of kind custom. Its computation is ordinary HLO, which the interpreter
// evaluates.

namespace tokamak {

inline constexpr std::string_view kCustomKernelTarget = "tokamak.kernel";

// An operand or a result of a kernel.
struct CustomKernelArray {
  std::string name;
  ElementType type{};
  Dims dims;
  bool hooked = false;  // accessed only through TOK_LOAD_i or TOK_STORE_j
  int64_t Count() const;
};

// A source text, and where the user wrote it.
struct CustomKernelText {
  std::string text;  // empty: none
  std::string file;
  int64_t line = 1;
};

// Dimensions of a grid and of a block (CUDA programming guide).
inline constexpr size_t kLaunchRank = 3;
using LaunchSizes = std::array<int64_t, kLaunchRank>;

struct CustomKernel {
  std::string name;  // also the entry point
  CustomKernelText c, cuda;
  bool is_cpp = false;  // `c` is C++
  std::vector<CustomKernelArray> inputs, outputs;
  std::vector<std::pair<size_t, size_t>> aliases;  // input, output that is updated in place
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> c_options, cuda_options;  // of the compilers
  int64_t blocks = 1;                                // CPU: calls of the entry point
  LaunchSizes grid{1, 1, 1};                         // GPU: thread blocks
  LaunchSizes threads{1, 1, 1};                      // GPU: of a block
  int64_t shared_bytes = 0;                          // GPU: dynamic shared memory of a block
  double loads = 1;                                  // TOK_LOAD per element of an input, on average
};

// Whether the instruction is a call of a custom kernel.
bool IsCustomKernelCall(const Instr& instr);
// The call of a custom kernel that a step executes: the instruction itself, or the call inside a
// fusion; null if it is neither.
const Instr* CustomKernelIn(const Instr& instr);

// Whether a well-formed call has a source for CPUs.
bool HasCSource(const Instr& call);

// The kernel of a call. TK4007 if its description is malformed or does not match the operands.
Result<CustomKernel> CustomKernelOf(const Instr& call);

// An input that a load hook computes, or an output whose consumers a store hook computes.
struct CustomKernelHook {
  size_t number = 0;  // of the input or output
  // Of a load: one root, the operand. Of a store: the output is among the inputs.
  FusedRegion region;
};

// The region of a hook: what `roots` need, back to instructions that are not inside.
template <typename IsInside>
FusedRegion RegionOfHook(std::vector<const Instr*> roots, IsInside&& is_inside) {
  FusedRegion region;
  region.computation = roots[0]->parent();
  region.roots = std::move(roots);
  std::unordered_set<const Instr*> needed;
  std::vector<const Instr*> open = region.roots;
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (!is_inside(instr) || !needed.insert(instr).second) continue;
    open.insert(open.end(), instr->operands().begin(), instr->operands().end());
  }
  for (const Instr* instr : region.computation->PostOrder())
    if (needed.contains(instr)) region.instrs.push_back(instr);
  region.inputs = InputsOf(region.instrs);
  return region;
}

// What a step executes: a kernel, and how the operands and results of the step reach it.
struct CustomKernelStep {
  CustomKernel kernel;
  const Instr* call = nullptr;
  // Per input of the kernel: the operand of the step that it is; unset if a hook computes it.
  std::vector<std::optional<size_t>> operands;
  // Per output of the kernel: the result of the step; unset if only a hook uses it.
  std::vector<std::optional<size_t>> results;
  std::vector<CustomKernelHook> loads, stores;
  // The result of the step that an instruction of a store hook is.
  size_t ResultOf(const Instr& root) const;
  const Instr* fusion = nullptr;  // null: the step is the call itself
};
Result<CustomKernelStep> CustomKernelStepOf(const Instr& instr);

// The value of output `number` in the computation of a call; null if nothing uses it.
const Instr* OutputOfCustomKernel(const Instr& call, size_t number);

}  // namespace tokamak
