#include "kernel/async.h"

#include <algorithm>
#include <unordered_set>

namespace tokamak {
namespace {

// Arrivals that expect bytes are for copies, not for other threads.
void CollectMbarriers(const StmtList& block, AsyncKind kind, std::unordered_set<ArrayId>& arrays) {
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kAsync && stmt.async->kind == kind && stmt.async->number == 0)
      arrays.insert(stmt.array);
    CollectMbarriers(stmt.body, kind, arrays);
    CollectMbarriers(stmt.else_body, kind, arrays);
  }
}

}  // namespace

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

bool TakesTurns(const StmtList& block) {
  std::unordered_set<ArrayId> arrived, awaited;
  CollectMbarriers(block, AsyncKind::kArrive, arrived);
  CollectMbarriers(block, AsyncKind::kWait, awaited);
  return std::ranges::any_of(arrived, [&](ArrayId array) { return awaited.contains(array); });
}

}  // namespace tokamak
