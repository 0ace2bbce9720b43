#pragma once

#include <vector>

#include "kernel/kernel.h"

// Liveness of kernel IR values.

namespace tokamak::gpu {

// The values that statements use, directly or transitively.
class UsedValues {
 public:
  explicit UsedValues(const Kernel& kernel) : kernel_(kernel), used_(kernel.nodes.size()) {
    Walk(kernel.body);
  }
  // `i`: index of the node in Kernel::nodes.
  bool operator[](size_t i) const { return used_[i]; }

 private:
  void Walk(const StmtList& block) {
    for (const Stmt& stmt : block) {
      switch (stmt.kind) {
        case StmtKind::kFor:
          Use(kernel_.loop(stmt.loop).extent);
          break;
        case StmtKind::kIf:
        case StmtKind::kWhile:
          Use(stmt.condition);
          break;
        case StmtKind::kStore:
          Use(stmt.index);
          Use(stmt.value);
          break;
        case StmtKind::kRead:
        case StmtKind::kShuffle:
          Use(stmt.value);
          break;
        case StmtKind::kMatMul:
          for (ValueId operand : MatMulOperandsOf(stmt)) Use(operand);
          break;
        case StmtKind::kAsync:
          for (ValueId operand : AsyncOperandsOf(stmt)) Use(operand);
          break;
        case StmtKind::kBarrier:
          break;
      }
      for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        Walk(*inner);
    }
  }
  void Use(ValueId value) {
    std::vector<ValueId> worklist = {value};
    while (!worklist.empty()) {
      ValueId id = worklist.back();
      worklist.pop_back();
      if (used_[static_cast<size_t>(id)]) continue;
      used_[static_cast<size_t>(id)] = true;
      for (ValueId operand : kernel_.operands(id)) worklist.push_back(operand);
    }
  }

  const Kernel& kernel_;
  std::vector<bool> used_;
};

}  // namespace tokamak::gpu
