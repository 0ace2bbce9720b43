#pragma once

// The table of MLIR attributes. Readers and writer walk the same rows.

#include <tuple>

#include "text/mlir_attribute_forms.h"
#include "text/mlir_attribute_row.h"

namespace tokamak {

namespace mlir_table {

inline constexpr MlirRecordName kGatherDims{"dimension_numbers", "stablehlo.gather"};
inline constexpr MlirRecordName kScatterDims{"scatter_dimension_numbers", "stablehlo.scatter"};
inline constexpr MlirRecordName kDotDims{"dot_dimension_numbers", "stablehlo.dot"};
inline constexpr MlirRecordName kRaggedDims{"ragged_dot_dimension_numbers", "chlo.ragged_dot"};
inline constexpr MlirRecordName kConvDims{"dimension_numbers", "stablehlo.conv"};

// The rows of an attribute struct; none if no MLIR op has it.
template <typename Struct>
struct Attributes {
  static constexpr std::tuple<> Rows() { return {}; }
};
#define TOK_AT(field)        \
  [](auto& attrs) -> auto& { \
    return attrs.field;      \
  }
#define TOK_MLIR_ATTRS(Struct, ...)                                  \
  template <>                                                        \
  struct Attributes<Struct> {                                        \
    using A = Struct;                                                \
    static constexpr auto Rows() { return std::tuple(__VA_ARGS__); } \
  };
#define TOK_MLIR_RECORD(Struct, kind, ...)                           \
  template <>                                                        \
  struct RecordFields<Struct> {                                      \
    using A = Struct;                                                \
    static constexpr std::string_view kKind = kind;                  \
    static constexpr auto Rows() { return std::tuple(__VA_ARGS__); } \
  };
#include "text/mlir_attributes.def"

}  // namespace mlir_table

// Calls fn(row) for each attribute of the op, whose attribute struct is A.
template <typename A, typename Fn>
void VisitMlirRows(Op op, Fn fn) {
  auto visit = [&](const auto& row) {
    if (row.facts.Applies(op)) fn(row);
  };
  std::apply([&](const auto&... row) { (visit(row), ...); }, mlir_table::Attributes<A>::Rows());
}

}  // namespace tokamak
