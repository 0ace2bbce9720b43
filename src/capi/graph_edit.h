#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capi/graph_program.h"
#include "support/result.h"

namespace tokamak {

// Edits of a program. Each returns an error, TK6117 or that of the verifier, if the program would
// be invalid; the program is then to be discarded (the C API edits a copy).

// A program to be inserted: its entry computation, applied to instructions of one computation.
struct GraphFragment {
  const Module* module = nullptr;
  std::vector<int64_t> operands;
  int64_t beside = -1;  // without operands: an instruction of the computation; -1: the entry
};
// Appends the instructions of a fragment, and returns the numbers of its results: elements of the
// root if that is a tuple op.
Result<std::vector<int64_t>> AddFragment(GraphProgram& program, const GraphFragment& fragment);

// Replaces every use of `from` by `to`, and removes `from` and what only it used. Several values
// replace the elements of a tuple.
Status ReplaceInstr(GraphProgram& program, int64_t from, std::span<const int64_t> to);
// Makes these users of `from` use `to` instead. Without `users`: all, also the results of the
// computation, but not those that `to` depends on.
Status ReplaceUses(GraphProgram& program, int64_t from, int64_t to, std::span<const int64_t> users);
// Makes `operand` the operand `i` of an instruction.
Status SetOperand(GraphProgram& program, int64_t user, size_t i, int64_t operand);
// Removes an instruction without users.
Status RemoveInstr(GraphProgram& program, int64_t id);
// Sets a fusion constraint (fusion/constraints.h) as attribute of instructions: `kind` is
// "never_fuse", "fuse" or "require_fused".
Status PinInstrs(GraphProgram& program, std::span<const int64_t> ids, std::string_view kind,
                 const std::string& label);

// Moves instructions of one computation into a new one and returns the number of its call.
Result<int64_t> Outline(GraphProgram& program, std::span<const int64_t> ids, std::string_view name);
// Replaces a call by the instructions of its computation, which is removed if nothing else calls
// it.
Status InlineCall(GraphProgram& program, int64_t call);

// Instances of the entry of another module (rewrite/user_match.h), by numbers.
struct GraphMatch {
  std::vector<int64_t> results, variables, inner;
};
Result<std::vector<GraphMatch>> MatchesOf(const GraphProgram& program, const Module& pattern,
                                          bool any_shape);

// A shortest path of dependences between two instructions, ends included; empty if there is none.
// It enters called computations at their parameters and leaves them at their root.
std::vector<int64_t> PathBetween(const GraphProgram& program, int64_t from, int64_t to);

}  // namespace tokamak
