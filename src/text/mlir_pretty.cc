#include "text/mlir_pretty.h"

#include <unordered_map>

namespace tokamak {
namespace {

using T = MlirTypes;
using F = MlirForm;

constexpr MlirPretty kForms[] = {
    {"stablehlo.broadcast_in_dim", T::kSame, {{{"dims", "broadcast_dimensions"}}}},
    {"stablehlo.dynamic_broadcast_in_dim", T::kSame, {{{"dims", "broadcast_dimensions"}}}},
    {"stablehlo.broadcast", T::kSame, {{{"sizes", "broadcast_sizes"}}}},
    {"stablehlo.transpose", T::kSame, {{{"dims", "permutation"}}}},
    {"stablehlo.reverse", T::kSame, {{{"dims", "dimensions"}}}},
    {"stablehlo.concatenate", T::kSame, {{{"dim", "dimension"}}}},
    {"stablehlo.iota", T::kResult, {{{"dim", "iota_dimension"}}}},
    {"stablehlo.dynamic_iota", T::kSame, {{{"dim", "iota_dimension"}}}},
    {"stablehlo.get_dimension_size", T::kSame, {{{"dim", "dimension"}}}},
    {"stablehlo.set_dimension_size", T::kSame, {{{"dim", "dimension"}}}},
    {"stablehlo.dynamic_slice", T::kSame, {{{"sizes", "slice_sizes"}}}},
    {"stablehlo.pad",
     T::kSame,
     {{{"low", "edge_padding_low"},
       {"high", "edge_padding_high"},
       {"interior", "interior_padding"}}}},
    {"stablehlo.fft", T::kSame, {{{"type", "fft_type"}, {"length", "fft_length"}}}},
    {"stablehlo.rng", T::kSame, {{{"distribution", "rng_distribution"}}}},
    {"stablehlo.rng_bit_generator", T::kSame, {{{"algorithm", "rng_algorithm"}}}},
    {"stablehlo.dot", T::kSame, {{{"precision", "precision_config"}}}},
    {"stablehlo.dot_general",
     T::kSame,
     {{{"precision", "precision_config"},
       {"batching_dims", "batching"},
       {"contracting_dims", "contracting"}}}},
    {"stablehlo.einsum", T::kSame, {{{"config", "einsum_config"}}}},
    {"stablehlo.unary_einsum", T::kSame, {{{"config", "einsum_config"}}}},
    {"stablehlo.select", T::kSelect, {}},
    {"stablehlo.complex", T::kComplex, {}},
    {"stablehlo.optimization_barrier", T::kPairwise, {}},
    {"stablehlo.tuple", T::kTuple, {}},
    {"stablehlo.create_token", T::kResult, {}},
    {"stablehlo.partition_id", T::kResult, {}},
    {"stablehlo.replica_id", T::kResult, {}},
    {"stablehlo.get_tuple_element", T::kSame, {}, F::kTupleElement},
    {"stablehlo.compare", T::kSame, {}, F::kCompare},
    {"stablehlo.slice", T::kSame, {}, F::kSlice},
    {"stablehlo.constant", T::kResult, {}, F::kConstant},
    {"chlo.constant", T::kResult, {}, F::kConstant},
    {"sdy.constant", T::kResult, {}, F::kConstant},
    {"stablehlo.reduce", T::kSame, {}, F::kReduce},
    {"stablehlo.while", T::kPairwise, {}, F::kWhile},
    {"stablehlo.convolution", T::kSame, {}, F::kConvolution},
    {"stablehlo.dynamic_conv", T::kSame, {}, F::kConvolution},
    {"stablehlo.composite", T::kSame, {}, F::kComposite},
    {"stablehlo.custom_call", T::kSame, {}, F::kCall},
    {"func.call", T::kSame, {}, F::kCall},
    {"call", T::kSame, {}, F::kCall},
    {"return", T::kOperands, {}},
    {"func.return", T::kOperands, {}},
    {"stablehlo.return", T::kOperands, {}},
    {"sdy.return", T::kOperands, {}},
    {"chlo.scan", T::kSame, {}, F::kScan},
    {"chlo.top_k", T::kSame, {}, F::kTopK},
    {"check.expect_eq", T::kEach, {}},
    {"check.expect_eq_const", T::kEach, {}},
    {"check.expect_almost_eq", T::kEach, {}},
    {"check.expect_almost_eq_const", T::kEach, {}},
    {"check.expect_close", T::kEach, {}},
    {"check.expect_serialized_eq", T::kEach, {}},
    {"interpreter.print", T::kEach, {}},
    {"sdy.sharding_constraint", T::kSame, {}, F::kSharding},
    {"sdy.reshard", T::kSame, {}, F::kSharding},
    {"sdy.sharding_group", T::kEach, {}},
    {"sdy.manual_computation", T::kSame, {}, F::kManual},
    {"sdy.named_computation", T::kSame, {}, F::kNamed},
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
