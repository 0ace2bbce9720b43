#include "kernel/uniform_values.h"

namespace tokamak {

// Fixed-point iteration: arrays only ever stop being uniform, so it terminates.
UniformValues::UniformValues(const Kernel& kernel) {
  arrays_.assign(kernel.arrays.size(), true);
  do {
    FindValues(kernel);
  } while (FindArrays(kernel, kernel.body, false));
}

void UniformValues::FindValues(const Kernel& kernel) {
  values_.assign(kernel.nodes.size(), true);
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    bool is_uniform = !IsExchange(node.prim);
    if (node.prim == Prim::kLoop) {
      LoopRole role = kernel.loop(node.loop()).role;
      is_uniform = role == LoopRole::kSerial || role == LoopRole::kUnrolled;
    }
    if (node.prim == Prim::kRead || node.prim == Prim::kLoad)
      is_uniform = arrays_[static_cast<size_t>(node.array())];
    for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)}))
      is_uniform = is_uniform && (*this)(operand);
    values_[i] = is_uniform;
  }
}

bool UniformValues::FindArrays(const Kernel& kernel, const StmtList& block, bool for_some) {
  bool found = false;
  auto differs = [&](ArrayId id) {
    found = found || arrays_[static_cast<size_t>(id)];
    arrays_[static_cast<size_t>(id)] = false;
  };
  for (const Stmt& stmt : block) {
    bool decides = stmt.kind == StmtKind::kIf || stmt.kind == StmtKind::kWhile;
    bool some = for_some || (decides && !(*this)(stmt.condition));
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      if (FindArrays(kernel, *inner, some)) found = true;
    if (stmt.kind == StmtKind::kMatMul) differs(stmt.array);
    if (stmt.kind != StmtKind::kStore) continue;
    // Stores to memory are visible to other threads at different times, so only registers can be
    // uniform.
    bool is_uniform = kernel.array(stmt.array).space == Space::kRegisters && !some &&
                      (*this)(stmt.index) && (*this)(stmt.value);
    if (!is_uniform) differs(stmt.array);
  }
  return found;
}

}  // namespace tokamak
