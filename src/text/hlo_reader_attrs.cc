// The attributes of an instruction: those common to all, the computations that it calls, and the
// typed ones of its op. A special HLO syntax is an overload of ReadSpecial; attributes that old
// text omits are filled in by an overload of Complete.
#include <algorithm>
#include <array>

#include "support/near_names.h"
#include "text/hlo_attr_value.h"
#include "text/hlo_reader.h"

namespace tokamak {
namespace {

// ---- HLO spellings that differ from the field name. Nullopt: not one of them.

template <typename A>
std::optional<bool> ReadSpecial(HloValueContext&, A&, std::string_view) {
  return std::nullopt;
}
std::optional<bool> ReadSpecial(HloValueContext& context, SliceAttrs& attrs,
                                std::string_view name) {
  if (name != "slice") return std::nullopt;
  return ReadSliceRanges(context, attrs);
}
std::optional<bool> ReadSpecial(HloValueContext& context, PadAttrs& attrs, std::string_view name) {
  if (name != "padding") return std::nullopt;
  return ReadPadding(context, attrs);
}
std::optional<bool> ReadSpecial(HloValueContext& context, AccuracyAttrs& attrs,
                                std::string_view name) {
  if (name != "result_accuracy") return std::nullopt;
  return ReadAccuracy(context, attrs);
}
std::optional<bool> ReadSpecial(HloValueContext& context, DomainAttrs& attrs,
                                std::string_view name) {
  if (name != "domain") return std::nullopt;
  return ReadDomain(context, attrs);
}
std::optional<bool> ReadSpecial(HloValueContext& context, FeedAttrs& attrs, std::string_view name) {
  if (name != "infeed_config" && name != "outfeed_config") return std::nullopt;
  return ReadValue(context, attrs.config);
}
std::optional<bool> ReadSpecial(HloValueContext& context, ConvolutionAttrs& attrs,
                                std::string_view name) {
  if (name != "convolution_kind") return std::nullopt;  // older name of conv_kind
  return ReadValue(context, attrs.kind);
}

// ---- attributes implied by the operands, or with one valid value only

template <typename A>
void Complete(A&, std::span<Instr* const>, const Shape*) {}

void DropDefaults(std::vector<Precision>& precision) {
  for (Precision p : precision)
    if (p != Precision::kDefault) return;
  precision.clear();
}

void Complete(CompareAttrs& attrs, std::span<Instr* const> operands, const Shape*) {
  if (operands.empty() || !operands[0]->shape().IsArray()) return;
  TypeKind kind = KindOf(operands[0]->shape().type());
  bool repeats = (attrs.type == CompareType::kFloat &&
                  (kind == TypeKind::kReal || kind == TypeKind::kComplex)) ||
                 (attrs.type == CompareType::kSigned && kind == TypeKind::kSigned) ||
                 (attrs.type == CompareType::kUnsigned &&
                  (kind == TypeKind::kUnsigned || kind == TypeKind::kBool));
  if (repeats) attrs.type = CompareType::kNone;
}

void Complete(DotAttrs& attrs, std::span<Instr* const> operands, const Shape* shape) {
  DropDefaults(attrs.precision);
  bool says_nothing = attrs.lhs_contracting.empty() && attrs.rhs_contracting.empty() &&
                      attrs.lhs_batch.empty() && attrs.rhs_batch.empty();
  if (!says_nothing || operands.size() != 2 || shape == nullptr) return;
  // Old text omits the dimensions of a dot: it contracts the last dimension of lhs with the last
  // but one of rhs. An outer product omits them too, but has another rank.
  int64_t lhs = operands[0]->shape().rank(), rhs = operands[1]->shape().rank();
  if (lhs < 1 || rhs < 1 || shape->rank() != lhs + rhs - 2) return;
  attrs.lhs_contracting = {lhs - 1};
  attrs.rhs_contracting = {rhs > 1 ? rhs - 2 : 0};
}

void Complete(ConvolutionAttrs& attrs, std::span<Instr* const>, const Shape*) {
  DropDefaults(attrs.precision);
  // window={} of a convolution over 1x1 windows.
  if (attrs.window.empty()) attrs.window.resize(attrs.dims.input_spatial.size());
}

void Complete(BatchNormAttrs& attrs, std::span<Instr* const>, const Shape*) {
  attrs.epsilon = static_cast<double>(static_cast<float>(attrs.epsilon));
}

void Complete(CustomCallAttrs& attrs, std::span<Instr* const>, const Shape*) {
  DropDefaults(attrs.precision);
  if (attrs.api_version != CustomCallApi::kTypedFfi || !attrs.backend_config.starts_with('{'))
    return;
  std::optional<AttrDict> dict = ParseHloAttrDict(attrs.backend_config);
  if (!dict) return;
  attrs.backend_dict = std::move(*dict);
  attrs.backend_config.clear();
}

// ---- required attributes

struct Required {
  Op op;
  std::string_view names[5];
};
constexpr Required kRequired[] = {
    {Op::kIota, {"iota_dimension"}},
    {Op::kGetTupleElement, {"index"}},
    {Op::kTranspose, {"dimensions"}},
    {Op::kReverse, {"dimensions"}},
    {Op::kReduce, {"dimensions"}},
    {Op::kConcatenate, {"dimensions"}},
    {Op::kSort, {"dimensions"}},
    {Op::kGetDimensionSize, {"dimensions"}},
    {Op::kSetDimensionSize, {"dimensions"}},
    {Op::kAllGather, {"dimensions"}},
    {Op::kAllGatherStart, {"dimensions"}},
    {Op::kReduceScatter, {"dimensions"}},
    {Op::kScan, {"dimensions", "num_carries"}},
    {Op::kCompare, {"direction"}},
    {Op::kSlice, {"slice"}},
    {Op::kPad, {"padding"}},
    {Op::kDynamicSlice, {"dynamic_slice_sizes"}},
    {Op::kGather,
     {"offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes"}},
    {Op::kScatter,
     {"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
      "index_vector_dim"}},
    {Op::kConvolution, {"dim_labels"}},
    {Op::kReducePrecision, {"exponent_bits", "mantissa_bits"}},
    {Op::kBatchNormTraining, {"epsilon", "feature_index"}},
    {Op::kBatchNormInference, {"epsilon", "feature_index"}},
    {Op::kBatchNormGrad, {"epsilon", "feature_index"}},
    {Op::kFft, {"fft_type", "fft_length"}},
    {Op::kRng, {"distribution"}},
    {Op::kRngBitGenerator, {"algorithm"}},
    {Op::kRngGetAndUpdateState, {"delta"}},
    {Op::kTopK, {"k"}},
    {Op::kFusion, {"kind"}},
    {Op::kCustomCall, {"custom_call_target"}},
    {Op::kCollectivePermute, {"source_target_pairs"}},
    {Op::kCollectivePermuteStart, {"source_target_pairs"}},
    {Op::kDomain, {"domain"}},
};

// Rows of kRequired by op; null if the op has none.
const Required* RequiredOf(Op op) {
  static const auto table = [] {
    std::array<const Required*, kOpCount> rows{};
    for (const Required& row : kRequired) rows[static_cast<size_t>(row.op)] = &row;
    return rows;
  }();
  return table[static_cast<size_t>(op)];
}

bool NeedsCalled(Op op) {
  bool may_have_none = op == Op::kCustomCall || op == Op::kAsyncUpdate || op == Op::kAsyncDone ||
                       op == Op::kAsyncStart || op == Op::kRunParallel || op == Op::kComposite;
  return !may_have_none && !CalledRoles(op).empty();
}

// The index of the computation of attribute `name` among those of `op`; -1 if the attribute lists
// all of them.
std::optional<int> RoleOf(Op op, std::string_view name) {
  std::span<const std::string_view> roles = CalledRoles(op);
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == name) return static_cast<int>(i);
    if (roles[i].ends_with('*') && roles[i].substr(0, roles[i].size() - 1) == name) return -1;
  }
  if (roles.empty()) return std::nullopt;
  if (op == Op::kConditional && name == "true_computation") return 0;
  if (op == Op::kConditional && name == "false_computation") return 1;
  bool takes_any = op == Op::kCustomCall || op == Op::kComposite || op == Op::kRunParallel;
  if (takes_any && (name == "to_apply" || name == "calls")) return 0;
  return std::nullopt;
}

}  // namespace

bool HloReader::ReadAttributes(ParsedInstr& parsed_instr, bool allow_attributes) {
  // The attributes of "reduce-scatter-start" are those of reduce-scatter.
  bool is_wrapped = parsed_instr.wrapped && parsed_instr.op == Op::kAsyncStart;
  switch (is_wrapped ? *parsed_instr.wrapped : parsed_instr.op) {
#define TOK_OP(id, name, mlir, arity, types, shape, traits, flops, attrs, meaning) \
  case Op::k##id:                                                                  \
    return ReadTyped<attrs>(parsed_instr, allow_attributes);
#include "ir/ops.def"
  }
  return false;
}

template <typename A>
bool HloReader::ReadTyped(ParsedInstr& parsed_instr, bool allow_attributes) {
  A attrs{};
  HloValueContext values = Values();
  seen_.clear();
  while (allow_attributes && cursor_.Try(',')) {
    (void)cursor_.Peek();
    const char* start = cursor_.at();
    std::string_view name = cursor_.Word();
    if (name.empty()) return cursor_.FailExpected("the name of an attribute");
    if (!cursor_.Expect('=')) return false;
    if (Saw(name)) {
      return cursor_.Fail(ErrorCode::kHloDuplicateAttribute,
                          std::string(name.substr(0, 80)) + " is written twice", start);
    }
    seen_.push_back(name);
    if constexpr (std::is_same_v<A, CustomCallAttrs>) {
      if (name == "backend_config") {
        if (!ReadBackendConfig(attrs.backend_config)) return false;
        continue;
      }
    }
    AttrMatch common = ReadCommon(parsed_instr, name);
    if (common == AttrMatch::kFailed) return false;
    if (common == AttrMatch::kYes) continue;
    if (std::optional<bool> special = ReadSpecial(values, attrs, name)) {
      if (!*special) return false;
      continue;
    }
    bool known = false;
    if (!ReadField(values, attrs, name, known)) return false;
    if (!known) {
      std::vector<std::string_view> names;
      std::apply([&](auto... field) { (names.push_back(field.name), ...); }, A::Fields());
      return cursor_.Fail(ErrorCode::kHloUnknownAttribute,
                          std::string(InfoOf(parsed_instr.op).name) + ": unknown attribute '" +
                              ShownWord(name) + "'" + DidYouMean(name, names),
                          start);
    }
  }
  if (allow_attributes && !CheckRequired(parsed_instr)) return false;
  if constexpr (std::is_same_v<A, ConstantAttrs>) attrs.literal = std::move(parsed_instr.literal);
  if constexpr (std::is_same_v<A, ParameterAttrs>) attrs.number = parsed_instr.parameter;
  if constexpr (std::is_same_v<A, AsyncAttrs>) parsed_instr.async = attrs;
  const Shape* shape = parsed_instr.shape ? &*parsed_instr.shape : nullptr;
  // "dot-start" gives ((operands), result, context).
  bool is_start = parsed_instr.wrapped && shape != nullptr && shape->IsTuple();
  if (is_start && shape->elements().size() > 1) shape = &shape->elements()[1];
  Complete(attrs, parsed_instr.operands, shape);
  if constexpr (std::is_same_v<A, DimensionsAttrs>) {
    // map covers all dimensions and may omit the attribute.
    if (parsed_instr.op == Op::kMap && attrs.dimensions.empty() && !parsed_instr.operands.empty())
      for (int64_t i = 0; i < parsed_instr.operands[0]->shape().rank(); ++i)
        attrs.dimensions.push_back(i);
  }
  parsed_instr.attrs = Attrs(std::move(attrs));
  return true;
}

bool HloReader::Saw(std::string_view attribute) const {
  return std::find(seen_.begin(), seen_.end(), attribute) != seen_.end();
}

bool HloReader::CheckRequired(const ParsedInstr& parsed_instr) {
  bool is_wrapped = parsed_instr.wrapped && parsed_instr.op == Op::kAsyncStart;
  Op op = is_wrapped ? *parsed_instr.wrapped : parsed_instr.op;
  auto fail = [&](std::string_view name) {
    return cursor_.Fail(ErrorCode::kHloMissingAttribute,
                        std::string(InfoOf(op).name) + ": no attribute " + std::string(name),
                        parsed_instr.op_start);
  };
  if (const Required* required = RequiredOf(op)) {
    for (std::string_view name : required->names)
      if (!name.empty() && !Saw(name)) return fail(name);
  }
  if (op == Op::kBroadcast && !parsed_instr.operands.empty() &&
      parsed_instr.operands[0]->shape().rank() > 0 && !Saw("dimensions"))
    return fail("dimensions");
  if (!NeedsCalled(op)) return true;
  std::span<const std::string_view> roles = CalledRoles(op);
  for (size_t i = 0; i < roles.size(); ++i) {
    bool given = i < parsed_instr.called.size() && !parsed_instr.called[i].first.empty();
    if (!given) return fail(roles[i].substr(0, roles[i].find('*')));
  }
  return true;
}

// ---- attributes that any instruction may have

HloReader::AttrMatch HloReader::ReadCommon(ParsedInstr& parsed_instr, std::string_view name) {
  if (name == "metadata") return AsAttrMatch(ReadMetadata(parsed_instr.origins));
  AttrMatch called = ReadCalled(parsed_instr, name);
  if (called != AttrMatch::kNo) return called;
  if (parsed_instr.op == Op::kCall && name == "is_composite")
    return AsAttrMatch(cursor_.Bool(parsed_instr.is_composite));
  if (parsed_instr.op == Op::kReshape && name == "inferred_dimension") {
    int64_t ignored = 0;  // a hint to XLA's dynamic padder
    return AsAttrMatch(cursor_.Int(ignored));
  }
  if (parsed_instr.wrapped && parsed_instr.op == Op::kAsyncStart) {
    HloValueContext values = Values();
    if (name == "async_execution_thread")
      return AsAttrMatch(ReadValue(values, parsed_instr.async.execution_thread));
    bool is_own = *parsed_instr.wrapped != Op::kCustomCall && *parsed_instr.wrapped != Op::kFusion;
    if (is_own && name == "output_to_operand_aliasing")
      return AsAttrMatch(ReadValue(values, parsed_instr.async.output_aliases));
  }
  return ReadExtra(parsed_instr, name);
}

HloReader::AttrMatch HloReader::ReadExtra(ParsedInstr& parsed_instr, std::string_view name) {
  HloValueContext values = Values();
  bool is_own =
      // here "sharding" is an operand of the op itself
      InfoOf(parsed_instr.op).attrs == "ShardingOpAttrs";
  if (name == (is_own ? "value_sharding" : "sharding"))
    return AsAttrMatch(ReadValue(values, parsed_instr.Extras().sharding));
  if (name == "frontend_attributes")
    return AsAttrMatch(ReadFrontendAttributes(parsed_instr.Extras().frontend_attributes));
  if (name == "backend_config")
    return AsAttrMatch(ReadBackendConfig(parsed_instr.Extras().backend_config));
  if (name == "control-predecessors") {
    if (!cursor_.Expect('{')) return AttrMatch::kFailed;
    while (!cursor_.Try('}')) {
      auto& [before, where] = parsed_instr.control.emplace_back();
      (void)cursor_.Peek();
      where = cursor_.at();
      if (!cursor_.Name(before)) return AttrMatch::kFailed;
      if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return AttrMatch::kFailed;
    }
    return AttrMatch::kYes;
  }
  if (name == "statistics" || name == "origin") {
    std::string_view skipped;  // for profilers and debuggers
    return AsAttrMatch(cursor_.Balanced(skipped));
  }
  if (parsed_instr.op == Op::kParameter && name == "parameter_replication") {
    std::vector<bool> skipped;  // for XLA's partitioner: the leaves that all replicas share
    return AsAttrMatch(ReadValue(values, skipped));
  }
  if (parsed_instr.op == Op::kCopyStart && name == "cross_program_prefetch_index") {
    int64_t skipped = 0;  // for TPUs
    return AsAttrMatch(cursor_.Int(skipped));
  }
  if (parsed_instr.op == Op::kCopyStart && name == "is_cross_program_prefetch") {
    bool skipped = false;
    return AsAttrMatch(cursor_.Bool(skipped));
  }
  // Tokamak extensions.
  if (name == "captures") {
    if (!cursor_.Int(parsed_instr.captures)) return AttrMatch::kFailed;
    bool fits = parsed_instr.captures >= 0 &&
                parsed_instr.captures <=
                    static_cast<int64_t>(std::min<size_t>(parsed_instr.operands.size(), 65535));
    if (fits) return AttrMatch::kYes;
    return AsAttrMatch(cursor_.Fail(ErrorCode::kHloBadAttribute,
                                    "captures: " + std::to_string(parsed_instr.captures) + " of " +
                                        std::to_string(parsed_instr.operands.size()) +
                                        " operands"));
  }
  if (name == "discardable")
    return AsAttrMatch(ReadValue(values, parsed_instr.Extras().discardable));
  if (name == "sharding_rule") {
    ShardingRuleText rule;
    if (!ReadStruct(values, rule)) return AttrMatch::kFailed;
    parsed_instr.Extras().sharding_rule = std::move(rule);
    return AttrMatch::kYes;
  }
  if (name == "origins") {  // of an instruction built from several
    if (!cursor_.Expect('{')) return AttrMatch::kFailed;
    while (!cursor_.Try('}')) {
      if (!ReadMetadata(parsed_instr.origins)) return AttrMatch::kFailed;
      if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return AttrMatch::kFailed;
    }
    return AttrMatch::kYes;
  }
  return AttrMatch::kNo;
}

HloReader::AttrMatch HloReader::ReadCalled(ParsedInstr& parsed_instr, std::string_view name) {
  bool is_wrapped = parsed_instr.wrapped && parsed_instr.op == Op::kAsyncStart;
  std::optional<int> role = RoleOf(is_wrapped ? *parsed_instr.wrapped : parsed_instr.op, name);
  if (!role) return AttrMatch::kNo;
  auto one = [&](size_t at) {
    if (parsed_instr.called.size() <= at) parsed_instr.called.resize(at + 1);
    bool is_body = cursor_.Peek() == '{';
    parsed_instr.called[at].second = cursor_.at();
    if (!is_body) return cursor_.Name(parsed_instr.called[at].first);
    return ReadInlineComputation(std::string(parsed_instr.name) + "." + std::string(name),
                                 parsed_instr.called[at].first);
  };
  if (*role >= 0 && (cursor_.Peek() != '{' || OpensBody()))
    return AsAttrMatch(one(static_cast<size_t>(*role)));
  if (!cursor_.Expect('{')) return AttrMatch::kFailed;
  for (size_t i = *role > 0 ? static_cast<size_t>(*role) : 0; !cursor_.Try('}'); ++i) {
    if (!one(i)) return AttrMatch::kFailed;
    if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return AttrMatch::kFailed;
  }
  return AttrMatch::kYes;
}

// "text", or {...} verbatim
bool HloReader::ReadBackendConfig(std::string& text) {
  if (cursor_.Peek() != '{') return cursor_.String(text);
  std::string_view raw;
  if (!cursor_.Braces(raw)) return false;
  text = std::string(raw);
  return true;
}

}  // namespace tokamak
