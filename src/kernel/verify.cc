#include "kernel/verify.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "kernel/cluster.h"
#include "kernel/divergence.h"
#include "kernel/verify_async.h"
#include "kernel/verify_values.h"
#include "support/limits.h"

namespace tokamak {
namespace {

// Limits on lanes of a vector loop and on iterations of an unrolled loop. Chosen: lane masks are 64
// bits; bounds code size.
constexpr int64_t kMaxLanes = 64, kMaxUnrolled = 4096;

// Checks that ids in statements are in range and that nesting is limited.
Status VerifyNumbers(const Kernel& kernel, const StmtList& block, int depth) {
  auto bad = [&](std::string_view what) {
    return MakeError(ErrorCode::kKernelStructure, fmt::format("kernel {}: {}", kernel.name, what));
  };
  if (depth > kMaxNesting) return bad(fmt::format("nested deeper than {} blocks", kMaxNesting));
  for (const Stmt& stmt : block) {
    bool has_value = stmt.kind == StmtKind::kRead || stmt.kind == StmtKind::kShuffle ||
                     stmt.kind == StmtKind::kStore;
    bool multiplies = stmt.kind == StmtKind::kMatMul;
    bool has_condition = stmt.kind == StmtKind::kIf || stmt.kind == StmtKind::kWhile;
    bool is_store = stmt.kind == StmtKind::kStore;
    auto is_value = [&](ValueId id) { return static_cast<size_t>(id) < kernel.nodes.size(); };
    if ((has_value && !is_value(stmt.value)) || (has_condition && !is_value(stmt.condition)) ||
        (is_store && !is_value(stmt.index)))
      return bad("a statement of a value that does not exist");
    if (is_store && static_cast<size_t>(stmt.array) >= kernel.arrays.size())
      return bad("a store to an array that does not exist");
    if (multiplies) {
      for (ValueId id : MatMulOperandsOf(stmt))
        if (!is_value(id)) return bad("a statement of a value that does not exist");
      for (ArrayId id : {stmt.array, stmt.matmul.lhs, stmt.matmul.rhs})
        if (static_cast<size_t>(id) >= kernel.arrays.size())
          return bad("a multiply of an array that does not exist");
    }
    if (stmt.kind == StmtKind::kAsync) {
      if (stmt.async == nullptr) return bad("a statement without asynchronous work");
      for (ValueId id : AsyncOperandsOf(stmt))
        if (!is_value(id)) return bad("a statement of a value that does not exist");
      for (ArrayId id : AsyncArraysOf(stmt))
        if (static_cast<size_t>(id) >= kernel.arrays.size())
          return bad("asynchronous work on an array that does not exist");
    }
    if (stmt.kind == StmtKind::kFor && static_cast<size_t>(stmt.loop) >= kernel.loops.size())
      return bad("a statement of a loop that does not exist");
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      TOK_RETURN_IF_ERROR(VerifyNumbers(kernel, *inner, depth + 1));
  }
  return Ok();
}

// Walks the statements with a stack of open statement blocks. The scope of a value is the innermost
// block among those of its loops and reads. It is computed once: after that block is closed, the
// value cannot be used.
class StmtVerifier {
 public:
  StmtVerifier(const Kernel& kernel, const KernelLocations* locations)
      : kernel_(kernel), locations_(locations), divergence_(kernel) {
    scopes_.resize(kernel.nodes.size());
    loop_scopes_.resize(kernel.loops.size());
    lanes_of_.assign(kernel.arrays.size(), 0);
    for (size_t i = 0; i < kernel.nodes.size(); ++i) {
      const ScalarNode& node = kernel.nodes[i];
      bool known = node.arity() > 0 ? node.prim != Prim::kLoad && !IsOrdered(node.prim)
                                    : node.prim != Prim::kLoop;
      for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)}))
        known = known && of_launch_[static_cast<size_t>(operand)];
      of_launch_.push_back(known);
    }
  }

  Status Run() {
    open_.push_back(blocks_++);
    TOK_RETURN_IF_ERROR(VerifyBlock(kernel_.body));
    return Ok();
  }

 private:
  // A statement block by depth and number. For a value: the innermost block it depends on.
  struct Reach {
    size_t depth = 0;
    int block = -1;  // -1: unknown, or not open yet
  };
  // The context of a statement.
  struct Around {
    int grid = 0, thread = 0;
    int64_t lanes = 0;      // of the enclosing vector loop; 0: none
    bool others = false;    // inside a statement other than a grid or thread loop
    bool diverges = false;  // control flow may be divergent across threads
  };

  Error VerifyError(ErrorCode code, const std::string& what) const {
    if (locations_ != nullptr) return MakeError(code, what, locations_->OfStmt(stmt_));
    return MakeError(code, fmt::format("kernel {}: statement {}: {}", kernel_.name, stmt_, what));
  }
  Error Structure(const std::string& what) const {
    return VerifyError(ErrorCode::kKernelStructure, what);
  }

  bool IsOpen(const Reach& scope) const {
    return scope.block >= 0 && scope.depth < open_.size() && open_[scope.depth] == scope.block;
  }

  // ---- values in scope

  // The scope of a value whose operands have scopes. nullopt if it is not in scope here.
  std::optional<Reach> ScopeOf(const ScalarNode& node) const {
    Reach scope{0, open_[0]};
    if (node.prim == Prim::kLoop) scope = loop_scopes_[static_cast<size_t>(node.loop())];
    if (IsOrdered(node.prim)) return std::nullopt;
    for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i) {
      const Reach& of = scopes_[static_cast<size_t>(node.operands[i])];
      if (!IsOpen(of)) return std::nullopt;
      if (of.depth > scope.depth) scope = of;
    }
    return IsOpen(scope) ? std::optional(scope) : std::nullopt;
  }

  Status Use(ValueId value) {
    if (static_cast<size_t>(value) >= kernel_.nodes.size())
      return Structure("it has no such value");
    std::vector<ValueId> stack{value};
    while (!stack.empty()) {
      ValueId id = stack.back();
      Reach& known = scopes_[static_cast<size_t>(id)];
      if (known.block >= 0) {
        if (!IsOpen(known)) return OutOfScope(id);
        stack.pop_back();
        continue;
      }
      const ScalarNode& node = kernel_.node(id);
      bool ordered = IsOrdered(node.prim);
      size_t before = stack.size();
      for (size_t i = 0; !ordered && i < static_cast<size_t>(node.arity()); ++i)
        if (scopes_[static_cast<size_t>(node.operands[i])].block < 0)
          stack.push_back(node.operands[i]);
      if (stack.size() > before) continue;
      std::optional<Reach> scope = ScopeOf(node);
      if (!scope) return OutOfScope(id);
      known = *scope;
    }
    return Ok();
  }

  Error OutOfScope(ValueId id) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kLoop)
      return Structure(fmt::format("the variable of loop {} is used outside of it",
                                   kernel_.loop(node.loop()).name));
    if (IsOrdered(node.prim))
      return Structure(
          fmt::format("a {} is used where its statement has not run", InfoOf(node.prim).text));
    return Structure("a value is used outside of a block that it depends on");
  }

  // ---- statements

  Status VerifyBlock(const StmtList& block) {
    for (const Stmt& stmt : block) {
      if (block.size() > 1 && IsParallel(stmt)) {
        ++stmt_;
        return Structure(fmt::format("{} loop {}: it must be the only statement of its block",
                                     TextOf(kernel_.loop(stmt.loop).role),
                                     kernel_.loop(stmt.loop).name));
      }
      TOK_RETURN_IF_ERROR(VerifyStmt(stmt));
    }
    return Ok();
  }

  bool IsParallel(const Stmt& stmt) const {
    if (stmt.kind != StmtKind::kFor) return false;
    LoopRole role = kernel_.loop(stmt.loop).role;
    return role == LoopRole::kGrid || role == LoopRole::kThread;
  }

  Status Inner(const StmtList& block) {
    open_.push_back(blocks_++);
    TOK_RETURN_IF_ERROR(VerifyBlock(block));
    open_.pop_back();
    return Ok();
  }

  Status VerifyStmt(const Stmt& stmt) {
    ++stmt_;
    Around before = around_;
    if (stmt.kind != StmtKind::kFor && stmt.kind != StmtKind::kIf &&
        stmt.kind != StmtKind::kWhile &&
        !(stmt.condition_stmts.empty() && stmt.body.empty() && stmt.else_body.empty()))
      return Structure("a block in a statement that has none");
    switch (stmt.kind) {
      case StmtKind::kFor:
        TOK_RETURN_IF_ERROR(For(stmt));
        break;
      case StmtKind::kIf:
        TOK_RETURN_IF_ERROR(Condition(stmt));
        Branch(stmt);
        TOK_RETURN_IF_ERROR(Inner(stmt.body));
        TOK_RETURN_IF_ERROR(Inner(stmt.else_body));
        break;
      case StmtKind::kWhile:
        Branch(stmt);
        open_.push_back(blocks_++);
        TOK_RETURN_IF_ERROR(VerifyBlock(stmt.condition_stmts));
        TOK_RETURN_IF_ERROR(Condition(stmt));
        TOK_RETURN_IF_ERROR(Inner(stmt.body));
        open_.pop_back();
        break;
      case StmtKind::kStore:
        TOK_RETURN_IF_ERROR(Store(stmt));
        break;
      case StmtKind::kRead:
      case StmtKind::kShuffle:
        TOK_RETURN_IF_ERROR(Define(stmt));
        break;
      case StmtKind::kBarrier:
        TOK_RETURN_IF_ERROR(Barrier(stmt));
        break;
      case StmtKind::kMatMul:
        TOK_RETURN_IF_ERROR(Multiply(stmt));
        break;
      case StmtKind::kAsync:
        TOK_RETURN_IF_ERROR(Async(stmt));
        break;
    }
    around_ = before;
    return Ok();
  }

  void Branch(const Stmt& stmt) {
    around_.others = true;
    around_.diverges = around_.diverges || !stmt.uniform;
  }

  Status Condition(const Stmt& stmt) {
    TOK_RETURN_IF_ERROR(Use(stmt.condition));
    if (kernel_.node(stmt.condition).type != ScalarType::kPred)
      return Structure(
          fmt::format("a condition of type {}", InfoOf(kernel_.node(stmt.condition).type).text));
    return Ok();
  }

  Status For(const Stmt& stmt) {
    const Loop& loop = kernel_.loop(stmt.loop);
    Reach& scope = loop_scopes_[static_cast<size_t>(stmt.loop)];
    if (scope.block >= 0)
      return Structure(fmt::format("loop {}: a second statement of it", loop.name));
    TOK_RETURN_IF_ERROR(Use(loop.extent));
    if (kernel_.node(loop.extent).type != ScalarType::kIndex)
      return Structure(fmt::format("loop {}: its extent is not an index", loop.name));
    TOK_RETURN_IF_ERROR(Role(loop));
    scope = {open_.size(), blocks_};
    return Inner(stmt.body);
  }

  std::optional<int64_t> ConstantExtent(const Loop& loop) const {
    const ScalarNode& node = kernel_.node(loop.extent);
    if (node.prim != Prim::kConst) return std::nullopt;
    return IntOfBits(node.type, node.bits);
  }

  Status Role(const Loop& loop) {
    bool needs_constant = loop.role == LoopRole::kThread || loop.role == LoopRole::kUnrolled ||
                          loop.role == LoopRole::kVector;
    std::optional<int64_t> extent = ConstantExtent(loop);
    if (needs_constant && (!extent || *extent < 1))
      return Structure(fmt::format("{} loop {}: its extent is not a positive constant",
                                   TextOf(loop.role), loop.name));
    switch (loop.role) {
      case LoopRole::kGrid:
        return Grid(loop);
      case LoopRole::kThread:
        return Thread(loop, *extent);
      case LoopRole::kVector:
        if (around_.lanes > 0)
          return Structure(fmt::format("vector loop {}: nested in another", loop.name));
        if (*extent > kMaxLanes)
          return Structure(fmt::format("vector loop {}: {} lanes, {} are allowed", loop.name,
                                       *extent, kMaxLanes));
        if (IsVector(kernel_, loop)) around_.lanes = *extent;
        break;
      case LoopRole::kUnrolled:
        if (*extent > kMaxUnrolled)
          return Structure(fmt::format("unrolled loop {}: {} iterations, {} are allowed", loop.name,
                                       *extent, kMaxUnrolled));
        break;
      case LoopRole::kSerial:
        if (around_.lanes > 0 && divergence_.ByLane(loop.extent))
          return Structure(fmt::format("loop {}: its extent varies by lane", loop.name));
        around_.diverges = around_.diverges || divergence_.ByThread(loop.extent);
        break;
    }
    around_.others = true;
    return Ok();
  }

  Status Grid(const Loop& loop) {
    if (around_.others || around_.thread > 0)
      return Structure(fmt::format("grid loop {}: nested in another statement", loop.name));
    if (++around_.grid > 3) return Structure("more than 3 grid loops");
    if (!of_launch_[static_cast<size_t>(loop.extent)])
      return Structure(
          fmt::format("grid loop {}: its extent is not made of constants and extents of the launch",
                      loop.name));
    return Ok();
  }

  Status Thread(const Loop& loop, int64_t extent) {
    if (around_.others)
      return Structure(fmt::format("thread loop {}: nested in another statement", loop.name));
    if (++around_.thread > 3) return Structure("more than 3 thread loops");
    if (around_.thread == 1) outermost_ = std::min(extent, kMaxThreadsPerBlock + 1);
    threads_ = extent > kMaxThreadsPerBlock ? extent : threads_ * extent;
    bool is_cluster = around_.thread > 1 && outermost_ <= kMaxClusterBlocks;
    int64_t most = kMaxThreadsPerBlock * (is_cluster ? outermost_ : 1);
    if (threads_ > most)
      return Structure(
          fmt::format("thread loop {}: {} threads, {} are allowed", loop.name, threads_, most));
    return Ok();
  }

  Status Store(const Stmt& stmt) {
    const Array& array = kernel_.array(stmt.array);
    TOK_RETURN_IF_ERROR(Use(stmt.index));
    TOK_RETURN_IF_ERROR(Use(stmt.value));
    ScalarType index = kernel_.node(stmt.index).type, value = kernel_.node(stmt.value).type;
    if (index != ScalarType::kIndex)
      return VerifyError(ErrorCode::kKernelTypes,
                         fmt::format("store: an index of type {}", InfoOf(index).text));
    if (value != array.type)
      return VerifyError(ErrorCode::kKernelTypes,
                         fmt::format("store: a {} into {}, whose elements are {}",
                                     InfoOf(value).text, array.name, InfoOf(array.type).text));
    if (array.space == Space::kArgument && array.access == Access::kRead)
      return VerifyError(ErrorCode::kKernelMemory,
                         fmt::format("store: {} is only read", array.name));
    if (array.space == Space::kMbarrier) return OnMbarrier("store", array);
    if (divergence_.PerLane(stmt.array) && around_.lanes > 0) return Lanes(stmt.array);
    return Ok();
  }

  // An error of verify_async.h with the place of its statement.
  Status Located(Status status) const {
    if (status.ok() || locations_ == nullptr) return status;
    return MakeError(status.error().code, status.error().message, locations_->OfStmt(stmt_));
  }

  Error OnMbarrier(std::string_view what, const Array& array) const {
    return VerifyError(
        ErrorCode::kKernelMemory,
        fmt::format("{}: {} is an mbarrier: it is waited for and arrived at", what, array.name));
  }

  // A per-lane array has one copy per lane of the enclosing vector loop, so all such loops have one
  // extent.
  Status Lanes(ArrayId id) {
    int64_t& lanes = lanes_of_[static_cast<size_t>(id)];
    const std::string& name = kernel_.array(id).name;
    if (around_.lanes == 0)
      return VerifyError(
          ErrorCode::kKernelMemory,
          fmt::format("{} is private to each lane: it may be read only in a vector loop", name));
    if (lanes != 0 && lanes != around_.lanes)
      return VerifyError(ErrorCode::kKernelMemory,
                         fmt::format("{} is private to each lane: it has {} lanes, but {} here",
                                     name, lanes, around_.lanes));
    lanes = around_.lanes;
    return Ok();
  }

  Status Define(const Stmt& stmt) {
    Prim prim = kernel_.node(stmt.value).prim;
    bool is_read = stmt.kind == StmtKind::kRead;
    std::string_view text = is_read ? "read" : InfoOf(prim).text;
    if (is_read ? prim != Prim::kRead : !IsExchange(prim))
      return Structure(fmt::format("{}: it defines no such value", text));
    Reach& scope = scopes_[static_cast<size_t>(stmt.value)];
    if (scope.block >= 0) return Structure(fmt::format("{}: a second statement of it", text));
    for (ValueId operand : kernel_.operands(stmt.value)) TOK_RETURN_IF_ERROR(Use(operand));
    scope = {open_.size() - 1, open_.back()};
    if (prim == Prim::kMatch && (around_.thread == 0 || around_.lanes != 0))
      return Structure("match: not of the threads of a warp");
    if (prim == Prim::kShuffle && around_.thread == 0 && around_.lanes == 0)
      return Structure("shuffle: neither under a thread loop nor under a vector loop");
    ArrayId array = kernel_.node(stmt.value).array();
    if (is_read && kernel_.array(array).space == Space::kMbarrier)
      return OnMbarrier("read", kernel_.array(array));
    if (is_read && divergence_.PerLane(array)) return Lanes(array);
    return Ok();
  }

  Status Multiply(const Stmt& stmt) {
    const MatrixMultiply& product = stmt.matmul;
    for (ValueId id : MatMulOperandsOf(stmt)) {
      TOK_RETURN_IF_ERROR(Use(id));
      if (kernel_.node(id).type != ScalarType::kIndex)
        return VerifyError(ErrorCode::kKernelTypes, "multiply: an operand is not an index");
    }
    if (around_.lanes > 0) return Structure("multiply: under a vector loop");
    bool by_threads = product.IsBlockWide() || product.async;
    if (by_threads != (around_.thread > 0))
      return Structure(by_threads ? "multiply: of a block, and not under a thread loop"
                                  : "multiply: of one thread, under a thread loop");
    const Array &to = kernel_.array(stmt.array), &lhs = kernel_.array(product.lhs),
                &rhs = kernel_.array(product.rhs);
    bool narrow = VnniGroupSize(lhs.type) > 1;
    if (product.async) {
      if (divergence_.PerLane(stmt.array))
        return VerifyError(ErrorCode::kKernelMemory, "multiply: into registers of lanes");
      return Located(VerifyAsyncMultiply(kernel_, stmt));
    }
    if (rhs.type != lhs.type || AccumulatorScalarType(lhs.type) != to.type)
      return VerifyError(ErrorCode::kKernelTypes,
                         fmt::format("multiply: {} by {} into {}", InfoOf(lhs.type).text,
                                     InfoOf(rhs.type).text, InfoOf(to.type).text));
    if (product.IsBlockWide()) return BlockMultiply(stmt);
    if (lhs.type == ScalarType::kF16)
      return VerifyError(ErrorCode::kKernelTypes, "multiply: only blocks multiply f16");
    bool writes = to.space == Space::kArgument && to.access == Access::kWrite && product.overwrite;
    if ((to.space != Space::kShared && !writes) || stmt.array == product.lhs ||
        stmt.array == product.rhs)
      return VerifyError(
          ErrorCode::kKernelMemory,
          fmt::format("multiply: into {}, which is neither its own shared memory nor "
                      "write-only",
                      to.name));
    bool registers = lhs.space == Space::kRegisters || rhs.space == Space::kRegisters;
    bool overlaps = !lhs.distinct || !rhs.distinct;
    if (registers || overlaps)
      return VerifyError(ErrorCode::kKernelMemory,
                         "multiply: an operand is in registers or is written by the kernel");
    bool counts = product.rows >= 1 && product.columns >= 1 && product.lhs_row_stride >= 1 &&
                  product.lhs_column_stride >= 1 && product.rhs_row_stride >= product.columns &&
                  product.result_row_stride >= product.columns &&
                  (!narrow || product.lhs_column_stride == 1);
    return counts ? Ok() : Structure("multiply: rows, columns or distances out of range");
  }

  Status BlockMultiply(const Stmt& stmt) const {
    const MatrixMultiply& product = stmt.matmul;
    const Array &to = kernel_.array(stmt.array), &lhs = kernel_.array(product.lhs),
                &rhs = kernel_.array(product.rhs);
    if (around_.diverges)
      return Structure("multiply: divergent control flow around a block-wide multiply");
    if (to.space != Space::kRegisters || divergence_.PerLane(stmt.array) ||
        lhs.space != Space::kShared || rhs.space != Space::kShared)
      return VerifyError(ErrorCode::kKernelMemory,
                         "multiply: a block multiplies shared memory, into registers");
    if (product.tf32 && lhs.type != ScalarType::kF32)
      return VerifyError(ErrorCode::kKernelTypes, "multiply: tf32 requires f32 operands");
    const ScalarNode &depth = kernel_.node(product.depth), &at = kernel_.node(stmt.index);
    bool warps = product.rows >= 1 && product.columns >= 1 && product.warp_columns >= 1 &&
                 product.warp_rows % MatrixMultiply::kFragmentRows == 0 &&
                 product.warp_columns % MatrixMultiply::kFragmentColumns == 0 &&
                 product.rows % product.warp_rows == 0 &&
                 product.columns % product.warp_columns == 0;
    if (!warps || around_.thread != 1 || product.Threads() != threads_)
      return Structure("multiply: the block has other threads than its warps");
    if (at.prim != Prim::kConst || at.bits != 0 || to.size != product.AccumulatorsPerThread())
      return VerifyError(ErrorCode::kKernelMemory,
                         fmt::format("multiply: {} has {} elements, not a thread's {} sums",
                                     to.name, to.size, product.AccumulatorsPerThread()));
    if (depth.prim != Prim::kConst ||
        IntOfBits(depth.type, depth.bits) % MatrixMultiply::DepthUnit(lhs.type) != 0)
      return Structure("multiply: the depth is not a constant multiple of the mma depth");
    bool counts = product.lhs_row_stride >= 1 && product.lhs_column_stride >= 1 &&
                  product.rhs_row_stride >= 1 && product.rhs_column_stride >= 1 &&
                  std::min(product.lhs_row_stride, product.lhs_column_stride) == 1 &&
                  std::min(product.rhs_row_stride, product.rhs_column_stride) == 1;
    return counts ? Ok() : Structure("multiply: rows or columns have no neighbours");
  }

  Status Async(const Stmt& stmt) {
    for (ValueId id : AsyncOperandsOf(stmt)) {
      TOK_RETURN_IF_ERROR(Use(id));
      if (kernel_.node(id).type != ScalarType::kIndex)
        return VerifyError(ErrorCode::kKernelTypes,
                           "asynchronous work: an operand is not an index");
    }
    if (around_.thread == 0 || around_.lanes > 0)
      return Structure("asynchronous work: not under a thread loop, or under a vector loop");
    return Located(VerifyAsync(kernel_, stmt));
  }

  Status Barrier(const Stmt& stmt) const {
    if (around_.thread == 0 || around_.lanes > 0)
      return Structure("barrier: not under a thread loop, or under a vector loop");
    if (stmt.scope == BarrierScope::kBlock && around_.diverges)
      return Structure(
          "barrier: divergent control flow (an if or while around it is not "
          "uniform, or the extent of a loop varies by thread)");
    return Ok();
  }

  const Kernel& kernel_;
  const KernelLocations* locations_;
  Divergence divergence_;
  std::vector<Reach> scopes_, loop_scopes_;
  std::vector<int64_t> lanes_of_;  // per array
  std::vector<bool> of_launch_;    // per value: computed from constants and extents only
  std::vector<int> open_;          // numbers of the open blocks, outermost first
  Around around_;
  int64_t threads_ = 1, outermost_ = 1;
  int blocks_ = 0, stmt_ = -1;
};

}  // namespace

Status VerifyKernel(const Kernel& kernel, const KernelLocations* locations) {
  TOK_RETURN_IF_ERROR(VerifyValues(kernel, locations));
  TOK_RETURN_IF_ERROR(VerifyNumbers(kernel, kernel.body, 1));
  return StmtVerifier(kernel, locations).Run();
}

}  // namespace tokamak
