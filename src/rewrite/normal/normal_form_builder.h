#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "rewrite/normal/graph.h"
#include "rewrite/normal/needs.h"
#include "rewrite/normal/tree.h"
#include "support/result.h"

namespace tokamak {

struct CarriedLoop;
struct BuiltLoop;

// Builds the normal form by abstract interpretation: it walks a program like an interpreter whose
// values are instructions of the new module. Calls are thereby inlined, tuples become trees of
// leaves, and NormalGraph merges equal instructions.
class NormalFormBuilder {
 public:
  // `max_steps`: the maximum number of instructions to visit.
  NormalFormBuilder(Module& out, const LoopNeeds& needs, int64_t max_steps)
      : out_(out), needs_(needs), max_steps_(max_steps) {}

  Status RunEntry(const Computation& source);

 private:
  using Operands = std::vector<const Tree*>;

  // ---- module_interpreter.cc: computations and instructions
  Result<Tree> Run(const Computation& source, const std::vector<Tree>& arguments,
                   NormalGraph& graph);
  Result<Tree> Evaluate(const Instr& instr, const Operands& operands,
                        const std::vector<Tree>& arguments, NormalGraph& graph);
  Result<Tree> EvaluatePlain(const Instr& instr, const Operands& operands, NormalGraph& graph);
  // The normal form of a computation that is called rather than inlined; computed once.
  Result<Computation*> NormalCallee(const Computation& source);

  // ---- calls.cc: instructions that are replaced by others
  Result<Tree> Inline(const Computation& callee, const Operands& operands, NormalGraph& graph);
  Result<Tree> EvaluateComposite(const Instr& instr, const Operands& operands, NormalGraph& graph);
  Result<Tree> EvaluateCustomCall(const Instr& instr, const Operands& operands, NormalGraph& graph);
  Result<Tree> EvaluateApproxTopK(const Instr& instr, const Operands& operands, NormalGraph& graph);
  Result<Tree> EvaluateManual(const Instr& instr, const Operands& operands, NormalGraph& graph);

  // ---- loops.cc
  Result<Tree> EvaluateWhile(const Instr& instr, const Operands& operands, NormalGraph& graph);
  Result<BuiltLoop> Build(const CarriedLoop& loop);

  // ---- branches.cc
  Result<Tree> EvaluateConditional(const Instr& instr, const Operands& operands,
                                   NormalGraph& graph);
  Result<Computation*> BuildBranch(const Computation& source, const std::vector<Tree>& operands,
                                   std::vector<Instr*>& branch_operands, NormalGraph& outside);

  Module& out_;
  const LoopNeeds& needs_;
  ComputationHashes hashes_;
  std::unordered_map<const Computation*, Computation*> callees_;
  int depth_ = 0;
  int64_t steps_ = 0, max_steps_;
};

// ---- module_interpreter.cc: from trees to instructions and back

void SetRoot(NormalGraph& graph, const Tree& root);
Instr* TupleOf(NormalGraph& graph, const std::vector<Instr*>& leaves);
std::vector<Instr*> Leaves(const std::vector<const Tree*>& operands);
// `shape` as a flat tuple of its leaves, without layouts.
Shape FlatShape(const Shape& shape);
// The results of an instruction with shape FlatShape(shape), as a tree for `shape`.
Tree Results(Instr* instr, const Shape& shape, NormalGraph& graph);

// Constants that are duplicated into bodies rather than captured from outside.
bool IsSmallConstant(const Instr* instr);
Instr* CloneConstant(const Instr* instr, NormalGraph& graph);

}  // namespace tokamak
