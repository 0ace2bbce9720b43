#include "kernel/form.h"

namespace tokamak {
namespace {

class FormWriter {
 public:
  template <typename T>
  void Add(T value) {
    auto word = static_cast<uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void AddProductForm(FormWriter& out, const MatrixMultiply& product) {
  for (ArrayId id : {product.lhs, product.rhs}) out.Add(id);
  for (ValueId id : {product.lhs_index, product.rhs_index, product.depth}) out.Add(id);
  out.Add(product.overwrite);
  for (int64_t number :
       {product.rows, product.columns, product.lhs_row_stride, product.lhs_column_stride,
        product.rhs_row_stride, product.result_row_stride, product.rhs_column_stride,
        product.warp_rows, product.warp_columns, int64_t{product.tf32},
        static_cast<int64_t>(product.float8[0]), static_cast<int64_t>(product.float8[1])})
    out.Add(number);
}

void AddBlockForm(FormWriter& out, const StmtList& block) {
  out.Add(block.size());
  for (const Stmt& stmt : block) {
    out.Add(stmt.kind);
    out.Add(stmt.loop);
    out.Add(stmt.condition);
    out.Add(stmt.array);
    out.Add(stmt.index);
    out.Add(stmt.value);
    out.Add(stmt.scope);
    out.Add(stmt.uniform);
    AddProductForm(out, stmt.matmul);
    AddBlockForm(out, stmt.condition_stmts);
    AddBlockForm(out, stmt.body);
    AddBlockForm(out, stmt.else_body);
  }
}

}  // namespace

std::string FormOf(const Kernel& kernel) {
  FormWriter out;
  out.Add(kernel.index_bits);
  out.Add(kernel.nodes.size());
  for (const ScalarNode& node : kernel.nodes) {
    out.Add(node.prim);
    out.Add(node.type);
    for (ValueId operand : node.operands) out.Add(operand);
    out.Add(node.bits);
  }
  out.Add(kernel.arrays.size());
  for (const Array& array : kernel.arrays) {
    out.Add(array.type);
    out.Add(array.space);
    out.Add(array.access);
    out.Add(array.size);
    out.Add(array.distinct);
    out.Add(array.alignment);
  }
  out.Add(kernel.extents.size());
  for (const LaunchExtent& extent : kernel.extents) {
    out.Add(extent.multiple_of);
    out.Add(extent.minimum);
    out.Add(extent.maximum);
  }
  out.Add(kernel.loops.size());
  for (const Loop& loop : kernel.loops) {
    out.Add(loop.role);
    out.Add(loop.extent);
  }
  AddBlockForm(out, kernel.body);
  return out.Take();
}

}  // namespace tokamak
