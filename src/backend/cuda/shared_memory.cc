#include "backend/cuda/shared_memory.h"

#include <algorithm>

namespace tokamak::cuda {
namespace {

// Bytes: the widest access of a thread.
constexpr int64_t kSharedAlignment = 16;

int64_t BytesIn(const Array& array) {
  return (array.size * BytesOf(array.type) + kSharedAlignment - 1) / kSharedAlignment *
         kSharedAlignment;
}

// The statements of a thread, below the grid and thread loops.
const StmtList& BodyOfThreads(const Kernel& kernel) {
  const StmtList* at = &kernel.body;
  while (at->size() == 1 && (*at)[0].kind == StmtKind::kFor) {
    LoopRole role = kernel.loop((*at)[0].loop).role;
    if (role != LoopRole::kGrid && role != LoopRole::kThread) break;
    at = &(*at)[0].body;
  }
  return *at;
}

// Whether a statement ends in a barrier of all threads of the block.
bool EndsInBarrier(const Kernel& kernel, const Stmt& stmt) {
  if (stmt.kind == StmtKind::kBarrier) return stmt.scope == BarrierScope::kBlock;
  if (stmt.kind != StmtKind::kFor || stmt.body.empty()) return false;
  const ScalarNode& extent = kernel.node(kernel.loop(stmt.loop).extent);
  return extent.prim == Prim::kConst && IntOfBits(extent.type, extent.bits) > 0 &&
         EndsInBarrier(kernel, stmt.body.back());
}

// Lifetimes of arrays, as ranges of a thread's top-level statements.
class Lives {
 public:
  explicit Lives(const Kernel& kernel)
      : kernel_(kernel),
        body_(BodyOfThreads(kernel)),
        first_(kernel.arrays.size(), body_.size()),
        last_(kernel.arrays.size(), 0) {
    is_async_.resize(kernel.arrays.size());
    for (size_t i = 0; i < body_.size(); ++i) Walk(body_[i], i);
  }

  // Whether a barrier separates all accesses to x from all accesses to y.
  bool IsBefore(size_t x, size_t y) const {
    if (is_async_[x] || is_async_[y]) return false;
    for (size_t i = last_[x]; i < first_[y]; ++i)
      if (EndsInBarrier(kernel_, body_[i])) return true;
    return false;
  }

 private:
  void Touch(ArrayId id, size_t at) {
    auto i = static_cast<size_t>(id);
    first_[i] = std::min(first_[i], at);
    last_[i] = std::max(last_[i], at);
  }
  void Walk(const Stmt& stmt, size_t at) {
    if (stmt.kind == StmtKind::kStore || stmt.kind == StmtKind::kMatMul) Touch(stmt.array, at);
    if (stmt.kind == StmtKind::kRead) Touch(kernel_.node(stmt.value).array(), at);
    if (stmt.kind == StmtKind::kMatMul)
      for (ArrayId id : {stmt.matmul.lhs, stmt.matmul.rhs}) Touch(id, at);
    if (stmt.kind == StmtKind::kAsync)
      for (ArrayId id : AsyncArraysOf(stmt)) is_async_[static_cast<size_t>(id)] = true;
    if (stmt.kind == StmtKind::kMatMul && stmt.matmul.async)
      for (ArrayId id : {stmt.matmul.lhs, stmt.matmul.rhs})
        is_async_[static_cast<size_t>(id)] = true;
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      for (const Stmt& below : *inner) Walk(below, at);
  }

  const Kernel& kernel_;
  const StmtList& body_;
  std::vector<size_t> first_, last_;
  std::vector<bool> is_async_;
};

}  // namespace

SharedMemoryLayout SharedMemoryLayoutOf(const Kernel& kernel, bool reuse) {
  SharedMemoryLayout memory;
  memory.offsets.resize(kernel.arrays.size());
  Lives lives(kernel);
  std::vector<size_t> assigned;
  for (size_t i = 0; i < kernel.arrays.size(); ++i) {
    if (kernel.arrays[i].space != Space::kShared) continue;
    int64_t at = 0, bytes = BytesIn(kernel.arrays[i]);
    int64_t alignment = std::max(kernel.arrays[i].alignment, kSharedAlignment);
    // First fit: moves behind every conflicting array until there is no conflict.
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t other : assigned) {
        int64_t begin = memory.offsets[other], end = begin + BytesIn(kernel.arrays[other]);
        bool may = reuse && (lives.IsBefore(other, i) || lives.IsBefore(i, other));
        if (may || end <= at || at + bytes <= begin) continue;
        at = (end + alignment - 1) / alignment * alignment;
        moved = true;
      }
    }
    memory.offsets[i] = at;
    memory.bytes = std::max(memory.bytes, at + bytes);
    memory.alignment = std::max(memory.alignment, alignment);
    assigned.push_back(i);
  }
  return memory;
}

}  // namespace tokamak::cuda
