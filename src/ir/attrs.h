#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/attr_enums.h"
#include "ir/attr_value.h"
#include "ir/literal.h"
#include "ir/sharding.h"

// The attributes of ops, one struct per op or family. An attribute struct lists its fields once;
// hash, equality and plain text are each a single template over that list. Names are those of HLO
// text where HLO has them. In every struct, a value-initialised field means "not specified".

namespace tokamak {

template <typename A, typename T>
struct Field {
  std::string_view name;
  T A::*member;
};
template <typename A, typename T>
Field(std::string_view, T A::*) -> Field<A, T>;  // clang-tidy 14 cannot deduce aggregates

// TOK_FIELDS(Struct, TOK_F(Struct, name, member), ...)
// Fields() is a template so that files which only include this header do not instantiate its
// tuples.
#define TOK_F(Struct, text, member) \
  Field {                           \
    text, &Self::member             \
  }
#define TOK_FIELDS(Struct, ...)     \
  template <typename Self = Struct> \
  static constexpr auto Fields() {  \
    return std::tuple(__VA_ARGS__); \
  }                                 \
  using IsAttrs = void;             \
  bool operator==(const Struct&) const = default

struct NoAttrs {
  TOK_FIELDS(NoAttrs);
};

// ---- values and shapes ------------------------------------------------------

struct ParameterAttrs {
  int64_t number = 0;
  TOK_FIELDS(ParameterAttrs, TOK_F(ParameterAttrs, "number", number));
};

struct ConstantAttrs {
  Literal literal;
  TOK_FIELDS(ConstantAttrs, TOK_F(ConstantAttrs, "literal", literal));
};

struct IotaAttrs {
  int64_t dimension = 0;
  TOK_FIELDS(IotaAttrs, TOK_F(IotaAttrs, "iota_dimension", dimension));
};

struct TupleIndexAttrs {
  int64_t index = 0;
  TOK_FIELDS(TupleIndexAttrs, TOK_F(TupleIndexAttrs, "index", index));
};

struct DimensionAttrs {  // concatenate, get-dimension-size, set-dimension-size
  int64_t dimension = 0;
  TOK_FIELDS(DimensionAttrs, TOK_F(DimensionAttrs, "dimensions", dimension));
};

struct DimensionsAttrs {  // broadcast, transpose, reverse, reduce, map
  Dims dimensions;
  TOK_FIELDS(DimensionsAttrs, TOK_F(DimensionsAttrs, "dimensions", dimensions));
};

struct DynamicBroadcastAttrs {
  Dims dimensions, known_expanding, known_nonexpanding;
  TOK_FIELDS(DynamicBroadcastAttrs, TOK_F(DynamicBroadcastAttrs, "dimensions", dimensions),
             TOK_F(DynamicBroadcastAttrs, "known_expanding_dimensions", known_expanding),
             TOK_F(DynamicBroadcastAttrs, "known_nonexpanding_dimensions", known_nonexpanding));
};

struct SliceAttrs {
  Dims starts, limits, strides;
  TOK_FIELDS(SliceAttrs, TOK_F(SliceAttrs, "starts", starts), TOK_F(SliceAttrs, "limits", limits),
             TOK_F(SliceAttrs, "strides", strides));
};

struct DynamicSliceAttrs {
  Dims sizes;
  TOK_FIELDS(DynamicSliceAttrs, TOK_F(DynamicSliceAttrs, "dynamic_slice_sizes", sizes));
};

struct PadAttrs {
  Dims low, high, interior;
  TOK_FIELDS(PadAttrs, TOK_F(PadAttrs, "low", low), TOK_F(PadAttrs, "high", high),
             TOK_F(PadAttrs, "interior", interior));
};

// ---- elementwise ------------------------------------------------------------

// result_accuracy of exponential, log, tanh and similar ops.
struct AccuracyAttrs {
  AccuracyMode mode = AccuracyMode::kDefault;
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
  TOK_FIELDS(AccuracyAttrs, TOK_F(AccuracyAttrs, "mode", mode), TOK_F(AccuracyAttrs, "atol", atol),
             TOK_F(AccuracyAttrs, "rtol", rtol), TOK_F(AccuracyAttrs, "ulps", ulps));
};

struct CompareAttrs {
  CompareDirection direction = CompareDirection::kEq;
  CompareType type = CompareType::kNone;  // kNone also if it would only repeat the element type
  TOK_FIELDS(CompareAttrs, TOK_F(CompareAttrs, "direction", direction),
             TOK_F(CompareAttrs, "type", type));
};

struct ReducePrecisionAttrs {
  int64_t exponent_bits = 0, mantissa_bits = 0;
  TOK_FIELDS(ReducePrecisionAttrs, TOK_F(ReducePrecisionAttrs, "exponent_bits", exponent_bits),
             TOK_F(ReducePrecisionAttrs, "mantissa_bits", mantissa_bits));
};

// ---- gather, scatter --------------------------------------------------------

struct GatherAttrs {  // gather; also dynamic-gather, whose slice_sizes are an operand
  Dims offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims,
      start_index_map;
  int64_t index_vector_dim = 0;
  Dims slice_sizes;
  bool indices_are_sorted = false;
  TOK_FIELDS(GatherAttrs, TOK_F(GatherAttrs, "offset_dims", offset_dims),
             TOK_F(GatherAttrs, "collapsed_slice_dims", collapsed_slice_dims),
             TOK_F(GatherAttrs, "operand_batching_dims", operand_batching_dims),
             TOK_F(GatherAttrs, "start_indices_batching_dims", start_indices_batching_dims),
             TOK_F(GatherAttrs, "start_index_map", start_index_map),
             TOK_F(GatherAttrs, "index_vector_dim", index_vector_dim),
             TOK_F(GatherAttrs, "slice_sizes", slice_sizes),
             TOK_F(GatherAttrs, "indices_are_sorted", indices_are_sorted));
};

struct ScatterAttrs {
  Dims update_window_dims, inserted_window_dims, input_batching_dims, scatter_indices_batching_dims,
      scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
  TOK_FIELDS(ScatterAttrs, TOK_F(ScatterAttrs, "update_window_dims", update_window_dims),
             TOK_F(ScatterAttrs, "inserted_window_dims", inserted_window_dims),
             TOK_F(ScatterAttrs, "input_batching_dims", input_batching_dims),
             TOK_F(ScatterAttrs, "scatter_indices_batching_dims", scatter_indices_batching_dims),
             TOK_F(ScatterAttrs, "scatter_dims_to_operand_dims", scatter_dims_to_operand_dims),
             TOK_F(ScatterAttrs, "index_vector_dim", index_vector_dim),
             TOK_F(ScatterAttrs, "indices_are_sorted", indices_are_sorted),
             TOK_F(ScatterAttrs, "unique_indices", unique_indices));
};

struct TorchIndexSelectAttrs {
  int64_t dim = 0, batch_dims = 0;
  TOK_FIELDS(TorchIndexSelectAttrs, TOK_F(TorchIndexSelectAttrs, "dim", dim),
             TOK_F(TorchIndexSelectAttrs, "batch_dims", batch_dims));
};

// ---- contractions -----------------------------------------------------------

// stablehlo.dot_algorithm; HLO has names for some of them (dot_bf16_bf16_f32_x3).
struct DotAlgorithm {
  std::string lhs_type, rhs_type, accumulation_type;  // MLIR names: "tf32", "bf16", "f32"
  int64_t lhs_components = 1, rhs_components = 1, primitive_operations = 1;
  bool allow_imprecise_accumulation = false;
  TOK_FIELDS(DotAlgorithm, TOK_F(DotAlgorithm, "lhs_precision_type", lhs_type),
             TOK_F(DotAlgorithm, "rhs_precision_type", rhs_type),
             TOK_F(DotAlgorithm, "accumulation_type", accumulation_type),
             TOK_F(DotAlgorithm, "lhs_component_count", lhs_components),
             TOK_F(DotAlgorithm, "rhs_component_count", rhs_components),
             TOK_F(DotAlgorithm, "num_primitive_operations", primitive_operations),
             TOK_F(DotAlgorithm, "allow_imprecise_accumulation", allow_imprecise_accumulation));
};

struct DotAttrs {  // dot (dot_general); scaled-dot; ragged-dot adds its own dimensions
  Dims lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  std::vector<Precision> precision;  // empty: all default
  std::optional<DotAlgorithm> algorithm;
  Dims lhs_ragged, rhs_group;
  TOK_FIELDS(DotAttrs, TOK_F(DotAttrs, "lhs_batch_dims", lhs_batch),
             TOK_F(DotAttrs, "rhs_batch_dims", rhs_batch),
             TOK_F(DotAttrs, "lhs_contracting_dims", lhs_contracting),
             TOK_F(DotAttrs, "rhs_contracting_dims", rhs_contracting),
             TOK_F(DotAttrs, "operand_precision", precision),
             TOK_F(DotAttrs, "algorithm", algorithm),
             TOK_F(DotAttrs, "lhs_ragged_dims", lhs_ragged),
             TOK_F(DotAttrs, "rhs_group_dims", rhs_group));
};

struct EinsumAttrs {
  std::string config;  // "ab,bc->ac"
  TOK_FIELDS(EinsumAttrs, TOK_F(EinsumAttrs, "einsum_config", config));
};

struct WindowDim {
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0, base_dilation = 1, window_dilation = 1;
  bool reversed = false;
  TOK_FIELDS(WindowDim, TOK_F(WindowDim, "size", size), TOK_F(WindowDim, "stride", stride),
             TOK_F(WindowDim, "pad_low", pad_low), TOK_F(WindowDim, "pad_high", pad_high),
             TOK_F(WindowDim, "base_dilation", base_dilation),
             TOK_F(WindowDim, "window_dilation", window_dilation),
             TOK_F(WindowDim, "reversed", reversed));
};
using Window = std::vector<WindowDim>;  // convolution: spatial dimensions only

struct WindowAttrs {  // reduce-window, select-and-scatter: every dimension
  Window window;
  TOK_FIELDS(WindowAttrs, TOK_F(WindowAttrs, "window", window));
};

// The role of each dimension of each array: HLO's dim_labels=b01f_01io->b01f.
struct ConvDims {
  int64_t input_batch = 0, input_feature = 0, kernel_input = 0, kernel_output = 0, output_batch = 0,
          output_feature = 0;
  Dims input_spatial, kernel_spatial, output_spatial;
  TOK_FIELDS(ConvDims, TOK_F(ConvDims, "input_batch", input_batch),
             TOK_F(ConvDims, "input_feature", input_feature),
             TOK_F(ConvDims, "input_spatial", input_spatial),
             TOK_F(ConvDims, "kernel_input", kernel_input),
             TOK_F(ConvDims, "kernel_output", kernel_output),
             TOK_F(ConvDims, "kernel_spatial", kernel_spatial),
             TOK_F(ConvDims, "output_batch", output_batch),
             TOK_F(ConvDims, "output_feature", output_feature),
             TOK_F(ConvDims, "output_spatial", output_spatial));
};

struct ConvolutionAttrs {  // convolution; also dynamic-conv, whose padding is an operand
  Window window;
  ConvDims dims;
  int64_t feature_group_count = 1, batch_group_count = 1;
  std::vector<Precision> precision;  // empty: all default
  ConvKind kind = ConvKind::kUnset;  // the training pass (forward, backward) that XLA created it
                                     // for
  TOK_FIELDS(ConvolutionAttrs, TOK_F(ConvolutionAttrs, "conv_kind", kind),
             TOK_F(ConvolutionAttrs, "window", window), TOK_F(ConvolutionAttrs, "dim_labels", dims),
             TOK_F(ConvolutionAttrs, "feature_group_count", feature_group_count),
             TOK_F(ConvolutionAttrs, "batch_group_count", batch_group_count),
             TOK_F(ConvolutionAttrs, "operand_precision", precision));
};

// ---- sort, scan, random, linear algebra -------------------------------------

struct SortAttrs {
  int64_t dimension = 0;
  bool is_stable = false;
  TOK_FIELDS(SortAttrs, TOK_F(SortAttrs, "dimensions", dimension),
             TOK_F(SortAttrs, "is_stable", is_stable));
};

struct TopKAttrs {
  int64_t k = 0;
  bool largest = true, is_stable = true;
  TOK_FIELDS(TopKAttrs, TOK_F(TopKAttrs, "k", k), TOK_F(TopKAttrs, "largest", largest),
             TOK_F(TopKAttrs, "is_stable", is_stable));
};

struct ScanAttrs {
  int64_t dimension = 0, num_carries = 0;
  bool is_reverse = false;
  std::optional<bool> is_associative;
  TOK_FIELDS(ScanAttrs, TOK_F(ScanAttrs, "dimensions", dimension),
             TOK_F(ScanAttrs, "num_carries", num_carries),
             TOK_F(ScanAttrs, "is_reverse", is_reverse),
             TOK_F(ScanAttrs, "is_associative", is_associative));
};

struct RngAttrs {
  RngDistribution distribution = RngDistribution::kUniform;
  TOK_FIELDS(RngAttrs, TOK_F(RngAttrs, "distribution", distribution));
};

struct RngBitGeneratorAttrs {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  TOK_FIELDS(RngBitGeneratorAttrs, TOK_F(RngBitGeneratorAttrs, "algorithm", algorithm));
};

struct RngStateAttrs {
  int64_t delta = 0;
  TOK_FIELDS(RngStateAttrs, TOK_F(RngStateAttrs, "delta", delta));
};

struct FftAttrs {
  FftType type = FftType::kFft;
  Dims length;
  TOK_FIELDS(FftAttrs, TOK_F(FftAttrs, "fft_type", type), TOK_F(FftAttrs, "fft_length", length));
};

struct CholeskyAttrs {
  bool lower = false;
  TOK_FIELDS(CholeskyAttrs, TOK_F(CholeskyAttrs, "lower", lower));
};

struct TriangularSolveAttrs {
  bool left_side = false, lower = false, unit_diagonal = false;
  Transpose transpose_a = Transpose::kNone;
  TOK_FIELDS(TriangularSolveAttrs, TOK_F(TriangularSolveAttrs, "left_side", left_side),
             TOK_F(TriangularSolveAttrs, "lower", lower),
             TOK_F(TriangularSolveAttrs, "unit_diagonal", unit_diagonal),
             TOK_F(TriangularSolveAttrs, "transpose_a", transpose_a));
};

struct BatchNormAttrs {
  double epsilon = 0;  // an f32 value
  int64_t feature_index = 0;
  TOK_FIELDS(BatchNormAttrs, TOK_F(BatchNormAttrs, "epsilon", epsilon),
             TOK_F(BatchNormAttrs, "feature_index", feature_index));
};

// ---- calls ------------------------------------------------------------------

// Result `output` (a path through the result tuple) shares memory with element `operand_index` of
// operand `operand`.
struct OutputAlias {
  Dims output;
  int64_t operand = 0;
  Dims operand_index;
  TOK_FIELDS(OutputAlias, TOK_F(OutputAlias, "output", output),
             TOK_F(OutputAlias, "operand", operand),
             TOK_F(OutputAlias, "operand_index", operand_index));
};

struct CustomCallAttrs {
  std::string target;
  std::string backend_config;  // opaque bytes, or ...
  AttrDict backend_dict;       // ... the typed attributes of API_VERSION_TYPED_FFI
  bool has_side_effect = false;
  CustomCallApi api_version = CustomCallApi::kUnspecified;
  CustomCallSchedule schedule = CustomCallSchedule::kNone;
  std::vector<OutputAlias> output_aliases;
  std::optional<std::vector<Dims>> operand_layouts, result_layouts;  // minor to major (StableHLO)
  std::optional<std::vector<Shape>> operand_layout_constraints;      // HLO
  std::optional<Literal> literal;
  std::optional<Window> window;
  std::optional<ConvDims> conv_dims;
  int64_t feature_group_count = 1, batch_group_count = 1;
  std::vector<Precision> precision;
  PaddingType padding_type = PaddingType::kNone;
  std::optional<std::vector<std::vector<Dims>>> result_tilings;
  TOK_FIELDS(CustomCallAttrs, TOK_F(CustomCallAttrs, "custom_call_target", target),
             TOK_F(CustomCallAttrs, "backend_config", backend_config),
             TOK_F(CustomCallAttrs, "backend_dict", backend_dict),
             TOK_F(CustomCallAttrs, "custom_call_has_side_effect", has_side_effect),
             TOK_F(CustomCallAttrs, "api_version", api_version),
             TOK_F(CustomCallAttrs, "schedule", schedule),
             TOK_F(CustomCallAttrs, "output_to_operand_aliasing", output_aliases),
             TOK_F(CustomCallAttrs, "operand_layouts", operand_layouts),
             TOK_F(CustomCallAttrs, "result_layouts", result_layouts),
             TOK_F(CustomCallAttrs, "operand_layout_constraints", operand_layout_constraints),
             TOK_F(CustomCallAttrs, "literal", literal), TOK_F(CustomCallAttrs, "window", window),
             TOK_F(CustomCallAttrs, "dim_labels", conv_dims),
             TOK_F(CustomCallAttrs, "feature_group_count", feature_group_count),
             TOK_F(CustomCallAttrs, "batch_group_count", batch_group_count),
             TOK_F(CustomCallAttrs, "operand_precision", precision),
             TOK_F(CustomCallAttrs, "padding_type", padding_type),
             TOK_F(CustomCallAttrs, "result_tilings", result_tilings));
};

struct CompositeAttrs {
  std::string name;
  AttrDict attributes;
  int64_t version = 0;
  TOK_FIELDS(CompositeAttrs, TOK_F(CompositeAttrs, "name", name),
             TOK_F(CompositeAttrs, "attributes", attributes),
             TOK_F(CompositeAttrs, "version", version));
};

struct FusionAttrs {
  FusionKind kind = FusionKind::kLoop;
  std::vector<OutputAlias> output_aliases;
  TOK_FIELDS(FusionAttrs, TOK_F(FusionAttrs, "kind", kind),
             TOK_F(FusionAttrs, "output_to_operand_aliasing", output_aliases));
};

struct AsyncAttrs {
  std::string execution_thread;  // "": the main thread
  std::vector<OutputAlias> output_aliases;
  TOK_FIELDS(AsyncAttrs, TOK_F(AsyncAttrs, "async_execution_thread", execution_thread),
             TOK_F(AsyncAttrs, "output_to_operand_aliasing", output_aliases));
};

struct FeedAttrs {  // infeed, outfeed
  std::string config;
  std::optional<Shape> outfeed_shape;
  std::optional<std::vector<Dims>> layout;
  TOK_FIELDS(FeedAttrs, TOK_F(FeedAttrs, "config", config),
             TOK_F(FeedAttrs, "outfeed_shape", outfeed_shape), TOK_F(FeedAttrs, "layout", layout));
};

struct DomainAttrs {
  std::string kind;  // "sharding"
  Sharding entry, exit;
  TOK_FIELDS(DomainAttrs, TOK_F(DomainAttrs, "kind", kind), TOK_F(DomainAttrs, "entry", entry),
             TOK_F(DomainAttrs, "exit", exit));
};

// ---- multiple devices -------------------------------------------------------

// Which devices communicate with each other: explicit lists, 0..n-1 reshaped and transposed, or the
// axes of a mesh.
struct ReplicaGroups {
  std::vector<Dims> lists;  // empty: one group of all devices
  Dims iota_tile;           // [2,4]<=[8]: group count, group size
  TileDevices iota;
  std::string mesh;
  std::vector<AxisRef> axes;
  TOK_FIELDS(ReplicaGroups, TOK_F(ReplicaGroups, "lists", lists),
             TOK_F(ReplicaGroups, "iota_tile", iota_tile), TOK_F(ReplicaGroups, "iota", iota),
             TOK_F(ReplicaGroups, "mesh", mesh), TOK_F(ReplicaGroups, "axes", axes));
};

struct CollectiveAttrs {  // all-gather, all-reduce, reduce-scatter, all-to-all,
                          // collective-broadcast ...
  ReplicaGroups groups;
  int64_t channel_id = 0;  // 0: no channel
  int64_t channel_type = 0;
  bool use_global_device_ids = false;
  Dims dimensions;  // the dimension that is gathered, scattered or split
  bool constrain_layout = false;
  int64_t concat_dimension = 0, split_count = 0;  // StableHLO's all_to_all
  bool has_dynamic_root = false;                  // collective-reduce
  std::string mode;                               // collective_op_group_mode, if the program
                                                  // specifies it
  TOK_FIELDS(CollectiveAttrs, TOK_F(CollectiveAttrs, "replica_groups", groups),
             TOK_F(CollectiveAttrs, "channel_id", channel_id),
             TOK_F(CollectiveAttrs, "channel_type", channel_type),
             TOK_F(CollectiveAttrs, "use_global_device_ids", use_global_device_ids),
             TOK_F(CollectiveAttrs, "dimensions", dimensions),
             TOK_F(CollectiveAttrs, "constrain_layout", constrain_layout),
             TOK_F(CollectiveAttrs, "concat_dimension", concat_dimension),
             TOK_F(CollectiveAttrs, "split_count", split_count),
             TOK_F(CollectiveAttrs, "has_dynamic_root", has_dynamic_root),
             TOK_F(CollectiveAttrs, "mode", mode));
};

struct PermuteAttrs {  // collective-permute, send, recv and their done ops
  std::vector<Dims> source_target_pairs;
  int64_t channel_id = 0, channel_type = 0;
  bool is_host_transfer = false;
  std::vector<Dims> slice_sizes;
  TOK_FIELDS(PermuteAttrs, TOK_F(PermuteAttrs, "source_target_pairs", source_target_pairs),
             TOK_F(PermuteAttrs, "channel_id", channel_id),
             TOK_F(PermuteAttrs, "channel_type", channel_type),
             TOK_F(PermuteAttrs, "is_host_transfer", is_host_transfer),
             TOK_F(PermuteAttrs, "slice_sizes", slice_sizes));
};

// ---- sdy --------------------------------------------------------------------

struct ManualComputationAttrs {
  std::vector<Sharding> in_shardings, out_shardings;
  std::vector<std::string> manual_axes;
  TOK_FIELDS(ManualComputationAttrs, TOK_F(ManualComputationAttrs, "in_shardings", in_shardings),
             TOK_F(ManualComputationAttrs, "out_shardings", out_shardings),
             TOK_F(ManualComputationAttrs, "manual_axes", manual_axes));
};

struct ShardingOpAttrs {  // sdy.sharding_constraint, sdy.reshard, sdy.sharding_group,
                          // sdy.propagation_barrier
  Sharding sharding;
  int64_t group = -1;
  std::string direction;
  TOK_FIELDS(ShardingOpAttrs, TOK_F(ShardingOpAttrs, "sharding", sharding),
             TOK_F(ShardingOpAttrs, "group", group),
             TOK_F(ShardingOpAttrs, "direction", direction));
};

// ---- check and interpreter dialects -----------------------------------------

// check.expect_*(x, y), or (x) against `expected`.
struct CheckAttrs {
  CheckKind kind = CheckKind::kEqual;
  std::optional<Literal> expected;
  double tolerance = -1;                      // kAlmostEqual; -1: the default
  std::optional<int64_t> min_ulps, max_ulps;  // kClose
  std::string probe_id;                       // kSerializedEqual
  int64_t iteration = 0;
  TOK_FIELDS(CheckAttrs, TOK_F(CheckAttrs, "kind", kind), TOK_F(CheckAttrs, "expected", expected),
             TOK_F(CheckAttrs, "tolerance", tolerance), TOK_F(CheckAttrs, "min_ulps", min_ulps),
             TOK_F(CheckAttrs, "max_ulps", max_ulps), TOK_F(CheckAttrs, "probe_id", probe_id),
             TOK_F(CheckAttrs, "iteration", iteration));
};

struct RunParallelAttrs {
  // programs[replica][partition]: an index into the instruction's called computations.
  std::vector<Dims> programs;
  std::vector<std::string> infeed;  // functions whose results are fed in, one per infeed
  TOK_FIELDS(RunParallelAttrs, TOK_F(RunParallelAttrs, "programs", programs),
             TOK_F(RunParallelAttrs, "infeed", infeed));
};

struct ProbeAttrs {
  std::string id;
  TOK_FIELDS(ProbeAttrs, TOK_F(ProbeAttrs, "probe_id", id));
};

// ---- the handle -------------------------------------------------------------

// The attributes of one instruction: an immutable handle to the struct named in the op's row of
// ops.def. A value-initialised struct needs no storage.
class Attrs {
 public:
  Attrs() = default;
  template <typename A>
  requires requires { typename A::IsAttrs; }
  Attrs(A attrs) {  // NOLINT(google-explicit-constructor)
    if (!(attrs == A{})) data_ = std::make_shared<const A>(std::move(attrs));
  }
  // A must be the struct named in the op's row of ops.def.
  template <typename A>
  const A& As() const {
    static const A nothing{};
    return data_ == nullptr ? nothing : *static_cast<const A*>(data_.get());
  }
  bool SameObject(const Attrs& other) const { return data_ == other.data_; }

 private:
  std::shared_ptr<const void> data_;
};

}  // namespace tokamak
