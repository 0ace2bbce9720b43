#include "kernel/hash.h"

#include <algorithm>
#include <vector>

#include "support/hash.h"

namespace tokamak {
namespace {

class KernelHasher {
 public:
  explicit KernelHasher(const Kernel& kernel) : kernel_(kernel) {
    loops_.assign(kernel.loops.size(), 0);
    arrays_.assign(kernel.arrays.size(), 0);
    ordered_.assign(kernel.nodes.size(), 0);
    values_.resize(kernel.nodes.size());
    sums_.resize(kernel.nodes.size());
  }

  uint64_t Run() {
    size_t arguments = kernel_.ArgumentCount();
    for (size_t i = 0; i < arguments; ++i) arrays_[i] = next_array_++;
    Number(kernel_.body);
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) Value(i);
    hasher_.Add(kernel_.index_bits);
    hasher_.Add(kernel_.extents.size());
    for (const LaunchExtent& extent : kernel_.extents) {
      hasher_.Add(extent.multiple_of);
      hasher_.Add(extent.minimum);
      hasher_.Add(extent.maximum);
    }
    hasher_.Add(arguments);
    for (size_t i = 0; i < kernel_.arrays.size(); ++i)
      if (arrays_[i] != 0) order_.push_back(i);
    std::ranges::sort(order_, {}, [&](size_t i) { return arrays_[i]; });
    for (size_t i : order_) AddArray(kernel_.arrays[i]);
    AddBlock(kernel_.body);
    return hasher_.digest();
  }

 private:
  void AddArray(const Array& array) {
    hasher_.Add(array.type);
    hasher_.Add(array.space);
    hasher_.Add(array.size);
    hasher_.Add(array.alignment);
    hasher_.Add(array.arrivals);
    if (array.space != Space::kArgument) return;
    hasher_.Add(array.access);
    hasher_.Add(array.distinct);
  }

  // Numbers loops, reads and local arrays in the order in which statements reach them.
  void Number(const StmtList& block) {
    auto array = [&](ArrayId id) {
      uint64_t& number = arrays_[static_cast<size_t>(id)];
      if (number == 0) number = next_array_++;
    };
    for (const Stmt& stmt : block) {
      if (stmt.kind == StmtKind::kFor) loops_[static_cast<size_t>(stmt.loop)] = next_++;
      if (stmt.kind == StmtKind::kStore) array(stmt.array);
      if (stmt.kind == StmtKind::kMatMul)
        for (ArrayId id : {stmt.array, stmt.matmul.lhs, stmt.matmul.rhs}) array(id);
      if (stmt.kind == StmtKind::kAsync) {
        if (HasArray(stmt.async->kind)) array(stmt.array);
        if (HasCopy(stmt.async->kind))
          for (ArrayId id : {stmt.async->copy.from, stmt.async->copy.to}) array(id);
      }
      if (stmt.kind == StmtKind::kRead) array(kernel_.node(stmt.value).array());
      if (stmt.kind == StmtKind::kRead || stmt.kind == StmtKind::kShuffle)
        ordered_[static_cast<size_t>(stmt.value)] = next_++;
      for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
        Number(*inner);
    }
  }

  static bool Commutes(const ScalarNode& node) {
    switch (node.prim) {
      case Prim::kAdd:
      case Prim::kMul:
      case Prim::kAnd:
      case Prim::kOr:
      case Prim::kXor:
      case Prim::kEq:
      case Prim::kNe:
        return true;
      default:
        return false;
    }
  }

  void Value(size_t i) {
    const ScalarNode& node = kernel_.nodes[i];
    Hasher hasher;
    hasher.Add(node.prim);
    hasher.Add(node.type);
    auto of = [&](size_t k) { return static_cast<size_t>(node.operands[k]); };
    if (node.prim == Prim::kAdd && node.type == ScalarType::kIndex) {
      // Sum of the hashes of the terms: independent of their order.
      sums_[i] = sums_[of(0)] + sums_[of(1)];
      hasher.Add(sums_[i]);
      values_[i] = hasher.digest();
      return;
    }
    if (node.prim == Prim::kLoop) {
      hasher.Add(loops_[node.bits]);
    } else if (node.prim == Prim::kLoad || node.prim == Prim::kRead) {
      hasher.Add(arrays_[node.bits]);
    } else {
      hasher.Add(node.bits);
    }
    hasher.Add(ordered_[i]);
    if (Commutes(node)) {
      hasher.Add(std::min(values_[of(0)], values_[of(1)]));
      hasher.Add(std::max(values_[of(0)], values_[of(1)]));
    } else {
      for (size_t k = 0; k < static_cast<size_t>(node.arity()); ++k) hasher.Add(values_[of(k)]);
    }
    values_[i] = hasher.digest();
    Hasher term;
    term.Add(values_[i]);
    sums_[i] = term.digest();
  }

  uint64_t ValueHash(ValueId id) const { return values_[static_cast<size_t>(id)]; }

  void AddProduct(const Stmt& stmt) {
    const MatrixMultiply& product = stmt.matmul;
    for (ArrayId id : {stmt.array, product.lhs, product.rhs})
      hasher_.Add(arrays_[static_cast<size_t>(id)]);
    for (ValueId id : MatMulOperandsOf(stmt)) hasher_.Add(ValueHash(id));
    hasher_.Add(product.overwrite);
    for (int64_t number :
         {product.rows, product.columns, product.lhs_row_stride, product.lhs_column_stride,
          product.rhs_row_stride, product.result_row_stride, product.rhs_column_stride,
          product.warp_rows, product.warp_columns, int64_t{product.tf32}, int64_t{product.async},
          product.lhs_panel, product.rhs_panel, static_cast<int64_t>(product.float8[0]),
          static_cast<int64_t>(product.float8[1])})
      hasher_.Add(number);
  }

  void AddAsync(const Stmt& stmt) {
    const AsyncOp& op = *stmt.async;
    hasher_.Add(op.kind);
    hasher_.Add(op.number);
    for (ValueId id : AsyncOperandsOf(stmt)) hasher_.Add(ValueHash(id));
    if (HasArray(op.kind)) hasher_.Add(arrays_[static_cast<size_t>(stmt.array)]);
    if (!HasCopy(op.kind)) return;
    hasher_.Add(arrays_[static_cast<size_t>(op.copy.from)]);
    hasher_.Add(arrays_[static_cast<size_t>(op.copy.to)]);
    hasher_.Add(op.copy.swizzled);
    hasher_.Add(op.copy.tf32);
    for (const TileCopy::Dimension& dimension : op.copy.dimensions)
      for (int64_t number : {dimension.size, dimension.stride, dimension.box, dimension.step})
        hasher_.Add(number);
  }

  void AddBlock(const StmtList& block) {
    hasher_.Add(block.size());
    for (const Stmt& stmt : block) {
      hasher_.Add(stmt.kind);
      switch (stmt.kind) {
        case StmtKind::kFor: {
          const Loop& loop = kernel_.loop(stmt.loop);
          hasher_.Add(loop.role);
          hasher_.Add(ValueHash(loop.extent));
          break;
        }
        case StmtKind::kIf:
        case StmtKind::kWhile:
          hasher_.Add(stmt.uniform);
          hasher_.Add(ValueHash(stmt.condition));
          break;
        case StmtKind::kStore:
          hasher_.Add(arrays_[static_cast<size_t>(stmt.array)]);
          hasher_.Add(ValueHash(stmt.index));
          hasher_.Add(ValueHash(stmt.value));
          break;
        case StmtKind::kRead:
        case StmtKind::kShuffle:
          hasher_.Add(ValueHash(stmt.value));
          break;
        case StmtKind::kMatMul:
          AddProduct(stmt);
          break;
        case StmtKind::kAsync:
          AddAsync(stmt);
          break;
        case StmtKind::kBarrier:
          hasher_.Add(stmt.scope);
          break;
      }
      AddBlock(stmt.condition_stmts);
      AddBlock(stmt.body);
      AddBlock(stmt.else_body);
    }
  }

  const Kernel& kernel_;
  Hasher hasher_;
  std::vector<uint64_t> loops_, arrays_, ordered_, values_, sums_;
  std::vector<size_t> order_;
  uint64_t next_ = 1, next_array_ = 1;
};

}  // namespace

uint64_t HashOf(const Kernel& kernel) {
  return KernelHasher(kernel).Run();
}

}  // namespace tokamak
