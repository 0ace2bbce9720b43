#include "text/mlir_write_attrs.h"

#include <initializer_list>
#include <utility>

#include "ir/visit_attrs.h"
#include "text/mlir_sdy.h"

namespace tokamak {
namespace {

AttrValue IntAttrOf(int64_t value, const char* type = "i64") {
  return {IntAttr{value, type}};
}
AttrValue Ints(const Dims& values) {
  return {DenseArrayAttr{"i64", values, {}}};
}
AttrValue Word(const char* kind, std::string_view value) {
  std::string upper(value);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return {EnumAttr{kind, std::move(upper)}};
}
AttrValue TableOf(const std::vector<Dims>& rows, size_t width) {
  std::vector<std::byte> bytes(rows.size() * width * 8);
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t k = 0; k < width; ++k) {
      int64_t value = k < rows[i].size() ? rows[i][k] : -1;
      std::memcpy(bytes.data() + (i * width + k) * 8, &value, 8);
    }
  Shape shape = Shape::Array(ElementType::kS64,
                             {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)});
  return {Literal::Array(std::move(shape), Bytes::FromVector(std::move(bytes)))};
}

// A record of lists; empty lists are omitted.
RecordAttr Lists(const char* kind,
                 std::initializer_list<std::pair<const char*, const Dims*>> lists) {
  RecordAttr record{kind, {}};
  for (const auto& [name, dims] : lists)
    if (!dims->empty()) Set(record.fields, name, Ints(*dims));
  return record;
}

struct Out {
  const Instr& instr;
  AttrDict dict;
  bool known = true;

  void Put(const char* name, AttrValue value) { Set(dict, name, std::move(value)); }
  void PutPrecision(const std::vector<Precision>& precision) {
    if (precision.empty()) return;
    AttrList list;
    for (Precision p : precision) list.push_back(Word("stablehlo.precision", TextOf(p)));
    Put("precision_config", {std::move(list)});
  }
  void PutChannel(int64_t id, int64_t type) {
    if (id == 0 && type == 0) return;
    RecordAttr record{"stablehlo.channel_handle", {}};
    Set(record.fields, "handle", IntAttrOf(id));
    Set(record.fields, "type", IntAttrOf(type));
    Put("channel_handle", {std::move(record)});
  }
  void PutLayouts(const char* name, const std::optional<std::vector<Dims>>& layouts) {
    if (!layouts) return;
    AttrList list;
    for (const Dims& layout : *layouts) list.push_back(Ints(layout));
    Put(name, {std::move(list)});
  }

  void operator()(const NoAttrs&) {}
  void operator()(const ConstantAttrs& a) { Put("value", {a.literal}); }
  void operator()(const IotaAttrs& a) { Put("iota_dimension", IntAttrOf(a.dimension)); }
  void operator()(const TupleIndexAttrs& a) { Put("index", IntAttrOf(a.index, "i32")); }
  void operator()(const DimensionAttrs& a) { Put("dimension", IntAttrOf(a.dimension)); }
  void operator()(const DimensionsAttrs& a) {
    Op op = instr.op();
    Put(op == Op::kBroadcast   ? "broadcast_dimensions"
        : op == Op::kTranspose ? "permutation"
                               : "dimensions",
        Ints(a.dimensions));
  }
  void operator()(const DynamicBroadcastAttrs& a) {
    Put("broadcast_dimensions", Ints(a.dimensions));
    if (!a.known_expanding.empty()) Put("known_expanding_dimensions", Ints(a.known_expanding));
    if (!a.known_nonexpanding.empty())
      Put("known_nonexpanding_dimensions", Ints(a.known_nonexpanding));
  }
  void operator()(const SliceAttrs& a) {
    Put("start_indices", Ints(a.starts));
    Put("limit_indices", Ints(a.limits));
    Put("strides", Ints(a.strides));
  }
  void operator()(const DynamicSliceAttrs& a) { Put("slice_sizes", Ints(a.sizes)); }
  void operator()(const PadAttrs& a) {
    Put("edge_padding_low", Ints(a.low));
    Put("edge_padding_high", Ints(a.high));
    Put("interior_padding", Ints(a.interior));
  }
  void operator()(const AccuracyAttrs& a) {
    if (a == AccuracyAttrs{}) return;
    RecordAttr record{"stablehlo.result_accuracy", {}};
    Set(record.fields, "atol", {FloatAttr{a.atol, ElementType::kF64}});
    Set(record.fields, "rtol", {FloatAttr{a.rtol, ElementType::kF64}});
    Set(record.fields, "ulps", IntAttrOf(a.ulps));
    Set(record.fields, "mode", Word("stablehlo.result_accuracy_mode", TextOf(a.mode)));
    Put("result_accuracy", {std::move(record)});
  }
  void operator()(const CompareAttrs& a) {
    Put("comparison_direction", Word("stablehlo.comparison_direction", TextOf(a.direction)));
    if (a.type != CompareType::kNone)
      Put("compare_type", Word("stablehlo.comparison_type", TextOf(a.type)));
  }
  void operator()(const ReducePrecisionAttrs& a) {
    Put("exponent_bits", IntAttrOf(a.exponent_bits, "i32"));
    Put("mantissa_bits", IntAttrOf(a.mantissa_bits, "i32"));
  }
  void operator()(const GatherAttrs& a) {
    RecordAttr record =
        Lists("stablehlo.gather", {{"offset_dims", &a.offset_dims},
                                   {"collapsed_slice_dims", &a.collapsed_slice_dims},
                                   {"operand_batching_dims", &a.operand_batching_dims},
                                   {"start_indices_batching_dims", &a.start_indices_batching_dims},
                                   {"start_index_map", &a.start_index_map}});
    Set(record.fields, "index_vector_dim", IntAttrOf(a.index_vector_dim));
    Put("dimension_numbers", {std::move(record)});
    if (instr.op() == Op::kGather) Put("slice_sizes", Ints(a.slice_sizes));
    if (a.indices_are_sorted) Put("indices_are_sorted", {true});
  }
  void operator()(const ScatterAttrs& a) {
    RecordAttr record = Lists("stablehlo.scatter",
                              {{"update_window_dims", &a.update_window_dims},
                               {"inserted_window_dims", &a.inserted_window_dims},
                               {"input_batching_dims", &a.input_batching_dims},
                               {"scatter_indices_batching_dims", &a.scatter_indices_batching_dims},
                               {"scatter_dims_to_operand_dims", &a.scatter_dims_to_operand_dims}});
    Set(record.fields, "index_vector_dim", IntAttrOf(a.index_vector_dim));
    Put("scatter_dimension_numbers", {std::move(record)});
    if (a.indices_are_sorted) Put("indices_are_sorted", {true});
    if (a.unique_indices) Put("unique_indices", {true});
  }
  void operator()(const TorchIndexSelectAttrs& a) {
    Put("dim", IntAttrOf(a.dim));
    Put("batch_dims", IntAttrOf(a.batch_dims));
  }
  void operator()(const DotAttrs& a) {
    bool ragged = instr.op() == Op::kRaggedDot;
    RecordAttr record = Lists(ragged ? "chlo.ragged_dot" : "stablehlo.dot",
                              {{"lhs_batching_dimensions", &a.lhs_batch},
                               {"rhs_batching_dimensions", &a.rhs_batch},
                               {"lhs_contracting_dimensions", &a.lhs_contracting},
                               {"rhs_contracting_dimensions", &a.rhs_contracting},
                               {"lhs_ragged_dimensions", &a.lhs_ragged},
                               {"rhs_group_dimensions", &a.rhs_group}});
    Put(ragged ? "ragged_dot_dimension_numbers" : "dot_dimension_numbers", {std::move(record)});
    PutPrecision(a.precision);
    if (!a.algorithm) return;
    RecordAttr algorithm{"stablehlo.dot_algorithm", {}};
    Set(algorithm.fields, "lhs_precision_type", {EnumAttr{"type", a.algorithm->lhs_type}});
    Set(algorithm.fields, "rhs_precision_type", {EnumAttr{"type", a.algorithm->rhs_type}});
    Set(algorithm.fields, "accumulation_type", {EnumAttr{"type", a.algorithm->accumulation_type}});
    Set(algorithm.fields, "lhs_component_count", IntAttrOf(a.algorithm->lhs_components));
    Set(algorithm.fields, "rhs_component_count", IntAttrOf(a.algorithm->rhs_components));
    Set(algorithm.fields, "num_primitive_operations", IntAttrOf(a.algorithm->primitive_operations));
    Set(algorithm.fields, "allow_imprecise_accumulation",
        {a.algorithm->allow_imprecise_accumulation});
    Put("algorithm", {std::move(algorithm)});
  }
  void operator()(const EinsumAttrs& a) { Put("einsum_config", {a.config}); }

  void PutWindow(const Window& window, const char* base, const char* inner) {
    Dims strides, base_dilations, dilations;
    std::vector<Dims> padding;
    for (const WindowDim& dim : window) {
      strides.push_back(dim.stride);
      base_dilations.push_back(dim.base_dilation);
      dilations.push_back(dim.window_dilation);
      padding.push_back({dim.pad_low, dim.pad_high});
    }
    Put("window_strides", Ints(strides));
    if (base != nullptr) Put(base, Ints(base_dilations));
    if (inner != nullptr) Put(inner, Ints(dilations));
    if (!window.empty() && instr.op() != Op::kDynamicConv) Put("padding", TableOf(padding, 2));
  }
  void operator()(const WindowAttrs& a) {
    Dims sizes;
    for (const WindowDim& dim : a.window) sizes.push_back(dim.size);
    Put("window_dimensions", Ints(sizes));
    bool scatter = instr.op() == Op::kSelectAndScatter;
    PutWindow(a.window, scatter ? nullptr : "base_dilations",
              scatter ? nullptr : "window_dilations");
  }
  void operator()(const ConvolutionAttrs& a) {
    PutWindow(a.window, "lhs_dilation", "rhs_dilation");
    DenseArrayAttr reversal{"i1", {}, {}};
    for (const WindowDim& dim : a.window) reversal.ints.push_back(dim.reversed ? 1 : 0);
    Put("window_reversal", {std::move(reversal)});
    RecordAttr record{"stablehlo.conv", {}};
    auto number = [&](const char* name, int64_t value) {
      Set(record.fields, name, IntAttrOf(value));
    };
    number("input_batch_dimension", a.dims.input_batch);
    number("input_feature_dimension", a.dims.input_feature);
    number("kernel_input_feature_dimension", a.dims.kernel_input);
    number("kernel_output_feature_dimension", a.dims.kernel_output);
    number("output_batch_dimension", a.dims.output_batch);
    number("output_feature_dimension", a.dims.output_feature);
    Set(record.fields, "input_spatial_dimensions", Ints(a.dims.input_spatial));
    Set(record.fields, "kernel_spatial_dimensions", Ints(a.dims.kernel_spatial));
    Set(record.fields, "output_spatial_dimensions", Ints(a.dims.output_spatial));
    Put("dimension_numbers", {std::move(record)});
    Put("feature_group_count", IntAttrOf(a.feature_group_count));
    Put("batch_group_count", IntAttrOf(a.batch_group_count));
    PutPrecision(a.precision);
  }
  void operator()(const SortAttrs& a) {
    Put("dimension", IntAttrOf(a.dimension));
    Put("is_stable", {a.is_stable});
  }
  void operator()(const TopKAttrs& a) {
    Put("k", IntAttrOf(a.k));
    if (!a.largest) Put("largest", {false});
    if (!a.is_stable) Put("is_stable", {false});
  }
  void operator()(const ScanAttrs& a) {
    Put("dimension", IntAttrOf(a.dimension));
    Put("num_carries", IntAttrOf(a.num_carries));
    if (a.is_reverse) Put("is_reverse", {true});
    if (a.is_associative) Put("is_associative", {*a.is_associative});
  }
  void operator()(const RngAttrs& a) {
    bool normal = a.distribution == RngDistribution::kNormal;
    Put("rng_distribution", Word("stablehlo.rng_distribution", normal ? "NORMAL" : "UNIFORM"));
  }
  void operator()(const RngBitGeneratorAttrs& a) {
    Put("rng_algorithm", Word("stablehlo.rng_algorithm", TextOf(a.algorithm).substr(4)));
  }
  void operator()(const FftAttrs& a) {
    Put("fft_type", Word("stablehlo.fft_type", TextOf(a.type)));
    Put("fft_length", Ints(a.length));
  }
  void operator()(const CholeskyAttrs& a) { Put("lower", {a.lower}); }
  void operator()(const TriangularSolveAttrs& a) {
    Put("left_side", {a.left_side});
    Put("lower", {a.lower});
    Put("unit_diagonal", {a.unit_diagonal});
    Put("transpose_a", Word("stablehlo.transpose", TextOf(a.transpose_a)));
  }
  void operator()(const BatchNormAttrs& a) {
    Put("epsilon", {FloatAttr{a.epsilon, ElementType::kF32}});
    Put("feature_index", IntAttrOf(a.feature_index));
  }
  void operator()(const CustomCallAttrs& a) {
    Put("call_target_name", {a.target});
    if (a.has_side_effect) Put("has_side_effect", {true});
    if (!a.backend_config.empty()) Put("backend_config", {a.backend_config});
    if (a.api_version == CustomCallApi::kTypedFfi || !a.backend_dict.empty())
      Put("backend_config", {a.backend_dict});
    if (a.api_version != CustomCallApi::kOriginal)
      Put("api_version", IntAttrOf(static_cast<int64_t>(a.api_version), "i32"));
    if (a.schedule != CustomCallSchedule::kNone)
      Put("custom_call_schedule", Word("mhlo.custom_call_schedule", TextOf(a.schedule)));
    PutLayouts("operand_layouts", a.operand_layouts);
    PutLayouts("result_layouts", a.result_layouts);
    if (a.output_aliases.empty()) return;
    AttrList list;
    for (const OutputAlias& alias : a.output_aliases) {
      RecordAttr record{"stablehlo.output_operand_alias", {}};
      Set(record.fields, "output_tuple_indices", Ints(alias.output));
      Set(record.fields, "operand_index", IntAttrOf(alias.operand));
      Set(record.fields, "operand_tuple_indices", Ints(alias.operand_index));
      list.push_back({std::move(record)});
    }
    Put("output_operand_aliases", {std::move(list)});
  }
  void operator()(const CompositeAttrs& a) {
    Put("name", {a.name});
    if (a.version != 0) Put("version", IntAttrOf(a.version, "i32"));
    if (!a.attributes.empty()) Put("composite_attributes", {a.attributes});
  }
  void operator()(const AsyncAttrs& a) {
    if (!a.execution_thread.empty()) Put("execution_thread", {a.execution_thread});
  }
  void operator()(const FeedAttrs& a) {
    bool out = instr.op() == Op::kOutfeed;
    if (!a.config.empty()) Put(out ? "outfeed_config" : "infeed_config", {a.config});
    if (!out) PutLayouts("layout", a.layout);
  }
  void operator()(const CollectiveAttrs& a) {
    if (!a.groups.axes.empty() || !a.groups.mesh.empty()) {
      known = false;
      return;
    }
    size_t width = 0;
    for (const Dims& group : a.groups.lists) width = std::max(width, group.size());
    Put("replica_groups", TableOf(a.groups.lists, width));
    PutChannel(a.channel_id, a.channel_id == 0 ? 0 : 1);
    if (a.use_global_device_ids) Put("use_global_device_ids", {UnitAttr{}});
    if (a.has_dynamic_root) Put("has_dynamic_root", {true});
    int64_t dimension = a.dimensions.empty() ? -1 : a.dimensions[0];
    if (instr.op() == Op::kAllGather) Put("all_gather_dim", IntAttrOf(dimension));
    if (instr.op() == Op::kReduceScatter) Put("scatter_dimension", IntAttrOf(dimension));
    if (instr.op() != Op::kAllToAll) return;
    Put("split_dimension", IntAttrOf(dimension));
    Put("concat_dimension", IntAttrOf(a.concat_dimension));
    Put("split_count", IntAttrOf(a.split_count));
  }
  void operator()(const PermuteAttrs& a) {
    bool permute = instr.op() == Op::kCollectivePermute;
    if (permute || !a.source_target_pairs.empty())
      Put("source_target_pairs", TableOf(a.source_target_pairs, 2));
    PutChannel(a.channel_id, permute ? (a.channel_id == 0 ? 0 : 1) : a.channel_type);
    if (a.is_host_transfer) Put("is_host_transfer", {true});
  }
  void operator()(const ManualComputationAttrs& a) {
    Put("in_shardings", ShardingsToAttr(a.in_shardings));
    Put("out_shardings", ShardingsToAttr(a.out_shardings));
    RecordAttr axes{"sdy.manual_axes", {}};
    AttrList names;
    for (const std::string& name : a.manual_axes) names.push_back({name});
    Set(axes.fields, "names", {std::move(names)});
    Put("manual_axes", {std::move(axes)});
  }
  void operator()(const ShardingOpAttrs& a) {
    Op op = instr.op();
    if (op == Op::kShardingConstraint || op == Op::kReshard) Put("sharding", ToAttr(a.sharding));
    if (op == Op::kShardingGroup) Put("group_id", IntAttrOf(a.group));
    if (op == Op::kPropagationBarrier)
      Put("allowed_direction", {EnumAttr{"sdy.propagation_direction", a.direction}});
  }
  void operator()(const CheckAttrs& a) {
    if (a.expected) Put("value", {*a.expected});
    if (a.tolerance != -1) Put("tolerance", {FloatAttr{a.tolerance, ElementType::kF64}});
    if (a.min_ulps) Put("min_ulp_difference", IntAttrOf(*a.min_ulps));
    if (a.max_ulps) Put("max_ulp_difference", IntAttrOf(*a.max_ulps));
    if (!a.probe_id.empty()) Put("probe_id", {a.probe_id});
    if (a.iteration != 0) Put("iteration", IntAttrOf(a.iteration, "ui32"));
  }
  void operator()(const ProbeAttrs& a) { Put("probe_id", {a.id}); }
  void operator()(const RunParallelAttrs&) {}
  void operator()(const ParameterAttrs&) { known = false; }
  void operator()(const RngStateAttrs&) { known = false; }
  void operator()(const FusionAttrs&) { known = false; }
  void operator()(const DomainAttrs&) { known = false; }
};

}  // namespace

std::optional<AttrDict> MlirAttrsOf(const Instr& instr) {
  Out out{instr, {}, true};
  VisitAttrs(instr.op(), instr.attrs(), [&](const auto& attrs) { out(attrs); });
  if (!out.known) return std::nullopt;
  return std::move(out.dict);
}

}  // namespace tokamak
