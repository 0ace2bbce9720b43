// Converts the attributes of each op: one function per attribute struct.

#include <algorithm>

#include "support/limits.h"
#include "text/mlir_ops.h"

namespace tokamak {
namespace {

Dims FieldDims(MlirAttrReader& in, std::string_view record, std::string_view field) {
  const AttrValue* value = in.TakeField(record, field);
  return value == nullptr ? Dims{} : in.DimsOf(field, *value);
}
int64_t FieldInt(MlirAttrReader& in, std::string_view record, std::string_view field,
                 int64_t fallback) {
  const AttrValue* value = in.TakeField(record, field);
  return value == nullptr ? fallback : in.IntOf(field, *value);
}

std::vector<Precision> PrecisionList(MlirAttrReader& in) {
  std::vector<Precision> list;
  const AttrValue* value = in.Take("precision_config");
  if (value == nullptr) return list;
  const auto* words = value->As<AttrList>();
  if (words == nullptr) {
    in.Fail("precision_config", "expected a list");
    return list;
  }
  for (const AttrValue& word : *words)
    list.push_back(in.EnumOf<Precision>("precision_config", word, Precision::kDefault));
  bool plain =
      std::all_of(list.begin(), list.end(), [](Precision p) { return p == Precision::kDefault; });
  if (plain) list.clear();
  return list;
}

std::string TypeName(MlirAttrReader& in, std::string_view name, const AttrValue* value) {
  if (value == nullptr) return {};
  if (const auto* word = value->As<EnumAttr>()) return word->value;
  if (const auto* text = value->As<std::string>()) return *text;
  in.Fail(name, "expected a type");
  return {};
}

std::optional<DotAlgorithm> ReadAlgorithm(MlirAttrReader& in) {
  auto field = [&](std::string_view name) { return in.TakeField("algorithm", name); };
  auto number = [&](std::string_view name) {
    const AttrValue* value = field(name);
    return value == nullptr ? 1 : in.IntOf(name, *value);
  };
  DotAlgorithm algorithm;
  algorithm.lhs_type = TypeName(in, "lhs_precision_type", field("lhs_precision_type"));
  algorithm.rhs_type = TypeName(in, "rhs_precision_type", field("rhs_precision_type"));
  algorithm.accumulation_type = TypeName(in, "accumulation_type", field("accumulation_type"));
  const AttrValue* lhs_count = field("lhs_component_count");
  const AttrValue* rhs_count = field("rhs_component_count");
  const AttrValue* primitives = field("num_primitive_operations");
  const AttrValue* imprecise = field("allow_imprecise_accumulation");
  if (algorithm.lhs_type.empty() || algorithm.lhs_type == "none") return std::nullopt;
  if (algorithm.rhs_type.empty()) in.Fail("algorithm", "expected a rhs_precision_type");
  if (algorithm.accumulation_type.empty()) in.Fail("algorithm", "expected an accumulation_type");
  if (lhs_count != nullptr) algorithm.lhs_components = number("lhs_component_count");
  if (rhs_count != nullptr) algorithm.rhs_components = number("rhs_component_count");
  if (primitives != nullptr) algorithm.primitive_operations = number("num_primitive_operations");
  if (imprecise != nullptr)
    algorithm.allow_imprecise_accumulation = in.IntOf("allow_imprecise_accumulation", *imprecise);
  return algorithm;
}

// Fills a window's fields from parallel lists, each empty or of the same size.
class WindowAttrReader {
 public:
  // A convolution with more strides than spatial dimensions is read as written; shape inference
  // rejects it.
  WindowAttrReader(MlirAttrReader& in, size_t rank, bool grows = false)
      : in_(in), window_(rank), grows_(grows) {}

  void Fill(std::string_view name, int64_t WindowDim::*field) {
    const AttrValue* value = in_.Take(name);
    if (value == nullptr) return;
    Dims list = in_.DimsOf(name, *value);
    if (!Fits(name, list.size())) return;
    for (size_t i = 0; i < list.size(); ++i) window_[i].*field = list[i];
  }
  void FillReversal(std::string_view name) {
    const AttrValue* value = in_.Take(name);
    if (value == nullptr) return;
    Dims list = in_.DimsOf(name, *value);
    if (!Fits(name, list.size())) return;
    for (size_t i = 0; i < list.size(); ++i) window_[i].reversed = list[i] != 0;
  }
  void FillPadding(std::string_view name) {
    const AttrValue* value = in_.Take(name);
    if (value == nullptr) return;
    std::vector<Dims> rows = in_.DimListsOf(name, *value);
    if (!Fits(name, rows.size())) return;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].size() != 2) return in_.Fail(name, "expected pairs of integers");
      window_[i].pad_low = rows[i][0];
      window_[i].pad_high = rows[i][1];
    }
  }
  Window Take() { return std::move(window_); }

 private:
  bool Fits(std::string_view name, size_t size) {
    if (size == 0) return false;
    if (grows_ && size > window_.size() && size <= static_cast<size_t>(kMaxRank))
      window_.resize(size);
    if (size == window_.size()) return true;
    in_.Fail(name, "has " + std::to_string(size) + " entries for a window of " +
                       std::to_string(window_.size()) + " dimensions");
    return false;
  }
  MlirAttrReader& in_;
  Window window_;
  bool grows_;
};

ConvDims ReadConvDims(MlirAttrReader& in) {
  constexpr std::string_view kRecord = "dimension_numbers";
  auto number = [&](std::string_view name) { return FieldInt(in, kRecord, name, 0); };
  auto list = [&](std::string_view name) { return FieldDims(in, kRecord, name); };
  ConvDims dims;
  dims.input_batch = number("input_batch_dimension");
  dims.input_feature = number("input_feature_dimension");
  dims.input_spatial = list("input_spatial_dimensions");
  dims.kernel_input = number("kernel_input_feature_dimension");
  dims.kernel_output = number("kernel_output_feature_dimension");
  dims.kernel_spatial = list("kernel_spatial_dimensions");
  dims.output_batch = number("output_batch_dimension");
  dims.output_feature = number("output_feature_dimension");
  dims.output_spatial = list("output_spatial_dimensions");
  return dims;
}

// Dense elements, or a list of them (our form of a tuple constant). Nests as deep as attributes
// may.
std::optional<Literal> LiteralOf(const AttrValue& value) {
  if (const auto* literal = value.As<Literal>()) return *literal;
  const auto* list = value.As<AttrList>();
  if (list == nullptr) return std::nullopt;
  std::vector<Literal> elements;
  for (const AttrValue& entry : *list) {
    std::optional<Literal> element = LiteralOf(entry);
    if (!element) return std::nullopt;
    elements.push_back(std::move(*element));
  }
  return Literal::Tuple(std::move(elements));
}

}  // namespace

template <>
Attrs ReadMlirAttrs<NoAttrs>(MlirAttrReader&) {
  return {};
}
template <>
Attrs ReadMlirAttrs<ConstantAttrs>(MlirAttrReader& in) {
  const AttrValue* value = in.Take("value");
  std::optional<Literal> literal = value == nullptr ? std::nullopt : LiteralOf(*value);
  if (!literal) {
    in.Fail("value", "expected dense elements");
    return {};
  }
  return ConstantAttrs{std::move(*literal)};
}
template <>
Attrs ReadMlirAttrs<IotaAttrs>(MlirAttrReader& in) {
  return IotaAttrs{in.RequiredInt("iota_dimension")};
}
template <>
Attrs ReadMlirAttrs<TupleIndexAttrs>(MlirAttrReader& in) {
  return TupleIndexAttrs{in.RequiredInt("index")};
}
template <>
Attrs ReadMlirAttrs<DimensionAttrs>(MlirAttrReader& in) {
  return DimensionAttrs{in.RequiredInt("dimension")};
}
template <>
Attrs ReadMlirAttrs<DimensionsAttrs>(MlirAttrReader& in) {
  std::string_view name = "dimensions";
  if (in.op() == Op::kBroadcast) name = "broadcast_dimensions";
  if (in.op() == Op::kTranspose) name = "permutation";
  return DimensionsAttrs{in.RequiredDims(name)};
}
template <>
Attrs ReadMlirAttrs<DynamicBroadcastAttrs>(MlirAttrReader& in) {
  DynamicBroadcastAttrs attrs;
  attrs.dimensions = in.RequiredDims("broadcast_dimensions");
  attrs.known_expanding = in.DimList("known_expanding_dimensions");
  attrs.known_nonexpanding = in.DimList("known_nonexpanding_dimensions");
  return attrs;
}
template <>
Attrs ReadMlirAttrs<SliceAttrs>(MlirAttrReader& in) {
  SliceAttrs attrs;
  attrs.starts = in.RequiredDims("start_indices");
  attrs.limits = in.RequiredDims("limit_indices");
  attrs.strides = in.DimList("strides");
  if (attrs.strides.empty()) attrs.strides.assign(attrs.starts.size(), 1);
  return attrs;
}
template <>
Attrs ReadMlirAttrs<DynamicSliceAttrs>(MlirAttrReader& in) {
  return DynamicSliceAttrs{in.RequiredDims("slice_sizes")};
}
template <>
Attrs ReadMlirAttrs<PadAttrs>(MlirAttrReader& in) {
  PadAttrs attrs;
  attrs.low = in.RequiredDims("edge_padding_low");
  attrs.high = in.RequiredDims("edge_padding_high");
  attrs.interior = in.DimList("interior_padding");
  if (attrs.interior.empty()) attrs.interior.assign(attrs.low.size(), 0);
  return attrs;
}

template <>
Attrs ReadMlirAttrs<AccuracyAttrs>(MlirAttrReader& in) {
  AccuracyAttrs attrs;
  const AttrValue* value = in.Take("result_accuracy");
  if (value == nullptr) return attrs;
  const auto* record = value->As<RecordAttr>();
  if (record == nullptr) {
    in.Fail("result_accuracy", "expected #stablehlo.result_accuracy");
    return attrs;
  }
  auto real = [&](std::string_view name) {
    const AttrValue* field = Find(record->fields, name);
    if (field == nullptr) return 0.0;
    if (const auto* number = field->As<FloatAttr>()) return number->value;
    return static_cast<double>(in.IntOf(name, *field));
  };
  attrs.atol = real("atol");
  attrs.rtol = real("rtol");
  if (const AttrValue* ulps = Find(record->fields, "ulps")) attrs.ulps = in.IntOf("ulps", *ulps);
  if (const AttrValue* mode = Find(record->fields, "mode"))
    attrs.mode = in.EnumOf<AccuracyMode>("mode", *mode, AccuracyMode::kDefault);
  return attrs;
}

template <>
Attrs ReadMlirAttrs<CompareAttrs>(MlirAttrReader& in) {
  CompareAttrs attrs;
  if (in.Take("comparison_direction") == nullptr) in.Missing("comparison_direction");
  attrs.direction = in.Enum("comparison_direction", CompareDirection::kEq);
  attrs.type = in.Enum("compare_type", CompareType::kNone);
  if (attrs.type == CompareType::kNone || attrs.type == CompareType::kTotalOrder) return attrs;
  ElementType type = in.OperandShape(0).type();
  CompareType usual = CompareType::kFloat;
  if (IsSigned(type)) usual = CompareType::kSigned;
  if (IsUnsigned(type) || type == ElementType::kPred) usual = CompareType::kUnsigned;
  if (attrs.type == usual) attrs.type = CompareType::kNone;
  return attrs;
}

template <>
Attrs ReadMlirAttrs<ReducePrecisionAttrs>(MlirAttrReader& in) {
  return ReducePrecisionAttrs{in.RequiredInt("exponent_bits"), in.RequiredInt("mantissa_bits")};
}

template <>
Attrs ReadMlirAttrs<GatherAttrs>(MlirAttrReader& in) {
  constexpr std::string_view kRecord = "dimension_numbers";
  auto list = [&](std::string_view name) { return FieldDims(in, kRecord, name); };
  GatherAttrs attrs;
  attrs.offset_dims = list("offset_dims");
  attrs.collapsed_slice_dims = list("collapsed_slice_dims");
  attrs.operand_batching_dims = list("operand_batching_dims");
  attrs.start_indices_batching_dims = list("start_indices_batching_dims");
  attrs.start_index_map = list("start_index_map");
  attrs.index_vector_dim = FieldInt(in, kRecord, "index_vector_dim", 0);
  if (in.op() == Op::kGather) attrs.slice_sizes = in.RequiredDims("slice_sizes");
  attrs.indices_are_sorted = in.Bool("indices_are_sorted");
  return attrs;
}

template <>
Attrs ReadMlirAttrs<ScatterAttrs>(MlirAttrReader& in) {
  constexpr std::string_view kRecord = "scatter_dimension_numbers";
  auto list = [&](std::string_view name) { return FieldDims(in, kRecord, name); };
  ScatterAttrs attrs;
  attrs.update_window_dims = list("update_window_dims");
  attrs.inserted_window_dims = list("inserted_window_dims");
  attrs.input_batching_dims = list("input_batching_dims");
  attrs.scatter_indices_batching_dims = list("scatter_indices_batching_dims");
  attrs.scatter_dims_to_operand_dims = list("scatter_dims_to_operand_dims");
  attrs.index_vector_dim = FieldInt(in, kRecord, "index_vector_dim", 0);
  attrs.indices_are_sorted = in.Bool("indices_are_sorted");
  attrs.unique_indices = in.Bool("unique_indices");
  return attrs;
}

template <>
Attrs ReadMlirAttrs<TorchIndexSelectAttrs>(MlirAttrReader& in) {
  return TorchIndexSelectAttrs{in.RequiredInt("dim"), in.RequiredInt("batch_dims")};
}

template <>
Attrs ReadMlirAttrs<DotAttrs>(MlirAttrReader& in) {
  std::string_view record =
      in.op() == Op::kRaggedDot ? "ragged_dot_dimension_numbers" : "dot_dimension_numbers";
  auto list = [&](std::string_view name) { return FieldDims(in, record, name); };
  DotAttrs attrs;
  attrs.lhs_batch = list("lhs_batching_dimensions");
  attrs.rhs_batch = list("rhs_batching_dimensions");
  attrs.lhs_contracting = list("lhs_contracting_dimensions");
  attrs.rhs_contracting = list("rhs_contracting_dimensions");
  attrs.precision = PrecisionList(in);
  if (in.op() == Op::kRaggedDot) {
    attrs.lhs_ragged = list("lhs_ragged_dimensions");
    attrs.rhs_group = list("rhs_group_dimensions");
  } else {
    attrs.algorithm = ReadAlgorithm(in);
  }
  return attrs;
}

template <>
Attrs ReadMlirAttrs<EinsumAttrs>(MlirAttrReader& in) {
  return EinsumAttrs{in.String("einsum_config")};
}

template <>
Attrs ReadMlirAttrs<WindowAttrs>(MlirAttrReader& in) {
  const AttrValue* sizes = in.Take("window_dimensions");
  size_t rank = 0;
  if (sizes != nullptr) {
    rank = in.DimsOf("window_dimensions", *sizes).size();
  } else if (in.op() == Op::kSelectAndScatter) {
    rank = static_cast<size_t>(in.OperandShape(0).rank());
  } else {
    in.Missing("window_dimensions");
  }
  WindowAttrReader reader(in, rank);
  reader.Fill("window_dimensions", &WindowDim::size);
  reader.Fill("window_strides", &WindowDim::stride);
  reader.Fill("base_dilations", &WindowDim::base_dilation);
  reader.Fill("window_dilations", &WindowDim::window_dilation);
  reader.FillPadding("padding");
  return WindowAttrs{reader.Take()};
}

template <>
Attrs ReadMlirAttrs<ConvolutionAttrs>(MlirAttrReader& in) {
  ConvolutionAttrs attrs;
  attrs.dims = ReadConvDims(in);
  WindowAttrReader reader(in, attrs.dims.kernel_spatial.size(), true);
  reader.Fill("window_strides", &WindowDim::stride);
  reader.Fill("lhs_dilation", &WindowDim::base_dilation);
  reader.Fill("rhs_dilation", &WindowDim::window_dilation);
  reader.FillPadding("padding");
  reader.FillReversal("window_reversal");
  attrs.window = reader.Take();
  // The window's sizes are those of the kernel.
  const Shape& kernel = in.OperandShape(1);
  for (size_t i = 0; i < attrs.dims.kernel_spatial.size(); ++i) {
    int64_t dimension = attrs.dims.kernel_spatial[i];
    if (dimension >= 0 && dimension < kernel.rank())
      attrs.window[i].size = kernel.dim(static_cast<size_t>(dimension));
  }
  attrs.feature_group_count = in.Int("feature_group_count", 1);
  attrs.batch_group_count = in.Int("batch_group_count", 1);
  attrs.precision = PrecisionList(in);
  return attrs;
}

template <>
Attrs ReadMlirAttrs<SortAttrs>(MlirAttrReader& in) {
  SortAttrs attrs{in.Int("dimension", -1), in.Bool("is_stable")};
  if (attrs.dimension < 0) attrs.dimension += in.OperandShape(0).rank();
  return attrs;
}
template <>
Attrs ReadMlirAttrs<TopKAttrs>(MlirAttrReader& in) {
  TopKAttrs attrs;
  attrs.k = in.RequiredInt("k");
  attrs.largest = in.Bool("largest", true);
  attrs.is_stable = in.Bool("is_stable", true);
  return attrs;
}
template <>
Attrs ReadMlirAttrs<ScanAttrs>(MlirAttrReader& in) {
  ScanAttrs attrs;
  attrs.dimension = in.RequiredInt("dimension");
  attrs.num_carries = in.Int("num_carries", 0);
  // chlo.scan: inputs, then initial carries.
  Dims segments = in.DimList("operandSegmentSizes");
  if (segments.size() == 2) attrs.num_carries = segments[1];
  in.Take("resultSegmentSizes");
  attrs.is_reverse = in.Bool("is_reverse");
  if (in.Take("is_associative") != nullptr) attrs.is_associative = in.Bool("is_associative");
  return attrs;
}
template <>
Attrs ReadMlirAttrs<RngAttrs>(MlirAttrReader& in) {
  RngAttrs attrs;
  std::string word = in.Word("rng_distribution");
  if (SameWord(word, "NORMAL")) {
    attrs.distribution = RngDistribution::kNormal;
  } else if (!SameWord(word, "UNIFORM")) {
    in.Fail("rng_distribution", "unknown word \"" + word + "\"");
  }
  return attrs;
}
template <>
Attrs ReadMlirAttrs<RngBitGeneratorAttrs>(MlirAttrReader& in) {
  RngBitGeneratorAttrs attrs;
  std::string word = in.Word("rng_algorithm");
  if (SameWord(word, "THREE_FRY")) {
    attrs.algorithm = RngAlgorithm::kThreeFry;
  } else if (SameWord(word, "PHILOX")) {
    attrs.algorithm = RngAlgorithm::kPhilox;
  } else if (!SameWord(word, "DEFAULT")) {
    in.Fail("rng_algorithm", "unknown word \"" + word + "\"");
  }
  return attrs;
}
template <>
Attrs ReadMlirAttrs<FftAttrs>(MlirAttrReader& in) {
  if (in.Take("fft_type") == nullptr) in.Missing("fft_type");
  return FftAttrs{in.Enum("fft_type", FftType::kFft), in.RequiredDims("fft_length")};
}
template <>
Attrs ReadMlirAttrs<CholeskyAttrs>(MlirAttrReader& in) {
  return CholeskyAttrs{in.Bool("lower")};
}
template <>
Attrs ReadMlirAttrs<TriangularSolveAttrs>(MlirAttrReader& in) {
  TriangularSolveAttrs attrs;
  attrs.left_side = in.Bool("left_side");
  attrs.lower = in.Bool("lower");
  attrs.unit_diagonal = in.Bool("unit_diagonal");
  attrs.transpose_a = in.Enum("transpose_a", Transpose::kNone, 1);
  return attrs;
}
template <>
Attrs ReadMlirAttrs<BatchNormAttrs>(MlirAttrReader& in) {
  return BatchNormAttrs{in.Double("epsilon", 0), in.RequiredInt("feature_index")};
}

}  // namespace tokamak
