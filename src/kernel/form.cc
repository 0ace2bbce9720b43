#include "kernel/form.h"

#include <type_traits>
#include <utility>

namespace tokamak {
namespace {

// Writes every field of a kernel but names and notes. The functions name all fields of a struct, so
// that one that is added does not compile until it is written here.
class FormWriter {
 public:
  void Add(const Kernel& kernel) {
    const auto& [name, index_bits, nodes, arrays, extents, loops, body, notes] = kernel;
    Add(index_bits);
    AddAll(nodes);
    AddAll(arrays);
    AddAll(extents);
    AddAll(loops);
    AddAll(body);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  requires std::is_enum_v<T> || std::is_integral_v<T>
  void Add(T value) {
    auto word = static_cast<uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  template <typename... T>
  void AddFields(const T&... fields) {
    (Add(fields), ...);
  }
  template <typename Items>
  void AddAll(const Items& items) {
    Add(items.size());
    for (const auto& item : items) Add(item);
  }

  void Add(const ScalarNode& node) {
    const auto& [prim, type, operands, bits] = node;
    AddFields(prim, type, operands[0], operands[1], operands[2], bits);
  }
  void Add(const Array& array) {
    const auto& [name, type, space, access, size, distinct, alignment, arrivals] = array;
    AddFields(type, space, access, size, distinct, alignment, arrivals);
  }
  void Add(const LaunchExtent& extent) {
    const auto& [name, multiple_of, minimum, maximum] = extent;
    AddFields(multiple_of, minimum, maximum);
  }
  void Add(const Loop& loop) {
    const auto& [name, role, extent] = loop;
    AddFields(role, extent);
  }
  void Add(const MatrixMultiply& multiply) {
    const auto& [lhs, rhs, lhs_index, rhs_index, depth, overwrite, rows, columns, lhs_row_stride,
                 lhs_column_stride, rhs_row_stride, result_row_stride, rhs_column_stride, warp_rows,
                 warp_columns, tf32, async, lhs_panel, rhs_panel, float8] = multiply;
    AddFields(lhs, rhs, lhs_index, rhs_index, depth, overwrite, rows, columns, lhs_row_stride,
              lhs_column_stride, rhs_row_stride, result_row_stride, rhs_column_stride, warp_rows,
              warp_columns, tf32, async, lhs_panel, rhs_panel, float8[0], float8[1]);
  }
  void Add(const TileCopy::Dimension& dimension) {
    const auto& [size, stride, box, at, step] = dimension;
    AddFields(size, stride, box, at, step);
  }
  void Add(const TileCopy& copy) {
    const auto& [from, to, to_index, from_index, dimensions, swizzled, tf32] = copy;
    AddFields(from, to, to_index, from_index, swizzled, tf32);
    AddAll(dimensions);
  }
  void Add(const AsyncOp& op) {
    const auto& [kind, number, parity, copy] = op;
    AddFields(kind, number, parity, copy);
  }
  void Add(const Stmt& stmt) {
    const auto& [kind, loop, condition, array, index, value, scope, uniform, matmul, async,
                 condition_stmts, body, else_body] = stmt;
    AddFields(kind, loop, condition, array, index, value, scope, uniform, matmul, async != nullptr);
    if (async != nullptr) Add(*async);
    AddAll(condition_stmts);
    AddAll(body);
    AddAll(else_body);
  }

  std::string bytes_;
};

}  // namespace

std::string FormOf(const Kernel& kernel) {
  FormWriter out;
  out.Add(kernel);
  return out.Take();
}

}  // namespace tokamak
