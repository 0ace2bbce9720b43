#include "kernel/divergence.h"

namespace tokamak {

bool IsVector(const Kernel& kernel, const Loop& loop) {
  if (loop.role != LoopRole::kVector) return false;
  const ScalarNode& extent = kernel.node(loop.extent);
  return extent.prim != Prim::kConst || extent.bits != 1;
}

// Fixed-point iteration: per-lane arrays depend on divergent indices and vice versa. Arrays only
// ever become per-lane, so it terminates.
Divergence::Divergence(const Kernel& kernel) {
  per_lane_.assign(kernel.arrays.size(), false);
  do {
    FindValues(kernel);
  } while (FindArrays(kernel, kernel.body, false, false));
}

void Divergence::FindValues(const Kernel& kernel) {
  by_lane_.assign(kernel.nodes.size(), false);
  by_thread_.assign(kernel.nodes.size(), false);
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    bool lane = false, thread = false;
    for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)})) {
      lane = lane || by_lane_[static_cast<size_t>(operand)];
      thread = thread || by_thread_[static_cast<size_t>(operand)];
    }
    if (node.prim == Prim::kLoop) {
      const Loop& loop = kernel.loop(node.loop());
      lane = IsVector(kernel, loop);
      thread = loop.role == LoopRole::kThread;
    } else if (node.prim == Prim::kRead) {
      const Array& array = kernel.array(node.array());
      lane = lane || per_lane_[static_cast<size_t>(node.array())];
      thread = thread || array.space == Space::kRegisters;
    } else if (IsExchange(node.prim)) {
      thread = true;
    }
    by_lane_[i] = lane;
    by_thread_[i] = thread;
  }
}

bool Divergence::FindArrays(const Kernel& kernel, const StmtList& block, bool in_vector,
                            bool for_some) {
  bool found = false;
  for (const Stmt& stmt : block) {
    bool vector =
        in_vector || (stmt.kind == StmtKind::kFor && IsVector(kernel, kernel.loop(stmt.loop)));
    bool decides = stmt.kind == StmtKind::kIf || stmt.kind == StmtKind::kWhile;
    bool some = for_some || (vector && decides && ByLane(stmt.condition));
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      if (FindArrays(kernel, *inner, vector, some)) found = true;
    if (stmt.kind != StmtKind::kStore || !vector) continue;
    auto array = static_cast<size_t>(stmt.array);
    if (kernel.arrays[array].space != Space::kRegisters || per_lane_[array] || ByLane(stmt.index))
      continue;
    if (!for_some && !ByLane(stmt.value)) continue;
    per_lane_[array] = true;
    found = true;
  }
  return found;
}

}  // namespace tokamak
