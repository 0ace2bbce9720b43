#include "text/mlir_pretty.h"

#include <unordered_map>

namespace tokamak {
namespace {

using T = MlirTypes;
using F = MlirForm;

constexpr MlirPretty kForms[] = {
    {"stablehlo.iota", T::kResult},
    {"stablehlo.select", T::kSelect},
    {"stablehlo.complex", T::kComplex},
    {"stablehlo.optimization_barrier", T::kPairwise},
    {"stablehlo.tuple", T::kTuple},
    {"stablehlo.create_token", T::kResult},
    {"stablehlo.partition_id", T::kResult},
    {"stablehlo.replica_id", T::kResult},
    {"stablehlo.get_tuple_element", T::kSame, F::kTupleElement},
    {"stablehlo.compare", T::kSame, F::kCompare},
    {"stablehlo.slice", T::kSame, F::kSlice},
    {"stablehlo.constant", T::kResult, F::kConstant},
    {"chlo.constant", T::kResult, F::kConstant},
    {"sdy.constant", T::kResult, F::kConstant},
    {"stablehlo.reduce", T::kSame, F::kReduce},
    {"stablehlo.while", T::kPairwise, F::kWhile},
    {"stablehlo.convolution", T::kSame, F::kConvolution},
    {"stablehlo.dynamic_conv", T::kSame, F::kConvolution},
    {"stablehlo.composite", T::kSame, F::kComposite},
    {"stablehlo.custom_call", T::kSame, F::kCall},
    {"func.call", T::kSame, F::kCall},
    {"call", T::kSame, F::kCall},
    {"return", T::kOperands},
    {"func.return", T::kOperands},
    {"stablehlo.return", T::kOperands},
    {"sdy.return", T::kOperands},
    {"chlo.scan", T::kSame, F::kScan},
    {"chlo.top_k", T::kSame, F::kTopK},
    {"check.expect_eq", T::kEach},
    {"check.expect_eq_const", T::kEach},
    {"check.expect_almost_eq", T::kEach},
    {"check.expect_almost_eq_const", T::kEach},
    {"check.expect_close", T::kEach},
    {"check.expect_serialized_eq", T::kEach},
    {"interpreter.print", T::kEach},
    {"sdy.sharding_constraint", T::kSame, F::kSharding},
    {"sdy.reshard", T::kSame, F::kSharding},
    {"sdy.sharding_group", T::kEach},
    {"sdy.manual_computation", T::kSame, F::kManual},
    {"sdy.named_computation", T::kSame, F::kNamed},
};

}  // namespace

const MlirPretty& PrettyFormOf(std::string_view name) {
  static const MlirPretty plain;
  static const auto table = [] {
    std::unordered_map<std::string_view, const MlirPretty*> map;
    for (const MlirPretty& form : kForms) map.emplace(form.name, &form);
    return map;
  }();
  auto it = table.find(name);
  return it == table.end() ? plain : *it->second;
}

}  // namespace tokamak
