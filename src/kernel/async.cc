#include "kernel/async.h"

#include <algorithm>

namespace tokamak {

bool UsesAsync(const StmtList& block) {
  return std::ranges::any_of(block, [](const Stmt& stmt) {
    if (stmt.kind == StmtKind::kAsync) return true;
    if (stmt.kind == StmtKind::kMatMul && stmt.matmul.async) return true;
    return UsesAsync(stmt.condition_stmts) || UsesAsync(stmt.body) || UsesAsync(stmt.else_body);
  });
}

bool UsesAsync(const Kernel& kernel) {
  return UsesAsync(kernel.body);
}

}  // namespace tokamak
