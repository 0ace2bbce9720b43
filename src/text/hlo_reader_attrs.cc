// The attributes of an instruction: those that any may have, the computations
// that it calls, and the typed ones of its op. What HLO spells in a way of its
// own is an overload of ReadSpecial; what old text leaves out is filled in by
// an overload of Complete.
#include <algorithm>
#include <array>

#include "text/hlo_attr_value.h"
#include "text/hlo_reader.h"

namespace tokamak {
namespace {

// ---- spellings of HLO that are not a field's own name. Nullopt: not one.

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
std::optional<bool> ReadSpecial(HloValueContext& context, CopyStartAttrs& attrs,
                                std::string_view name) {
  if (name != "is_cross_program_prefetch") return std::nullopt;  // before it had a number
  bool value = false;
  if (!ReadValue(context, value)) return false;
  if (value) attrs.cross_program_prefetch_index = 0;
  return true;
}
std::optional<bool> ReadSpecial(HloValueContext& context, ConvolutionAttrs& attrs,
                                std::string_view name) {
  if (name != "convolution_kind") return std::nullopt;  // now conv_kind
  return ReadValue(context, attrs.kind);
}

// ---- what follows from the operands, or is said in one way only

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
  // Text from before dots had dimensions: the last of lhs with the one before
  // the last of rhs. An outer product says nothing too, but has another rank.
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

// ---- attributes without which an op has no meaning

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

// By op: rows of kRequired, null where there are none.
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

// Where the computation of attribute `name` stands among those of `op`; -1: a
// list of all of them.
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

bool HloReader::ReadAttributes(Draft& draft, bool allow_attributes) {
  // The attributes of "reduce-scatter-start" are those of reduce-scatter.
  bool is_wrapped = draft.wrapped && draft.op == Op::kAsyncStart;
  switch (is_wrapped ? *draft.wrapped : draft.op) {
#define TOK_OP(id, name, mlir, arity, types, shape, traits, flops, attrs, meaning) \
  case Op::k##id:                                                                  \
    return ReadTyped<attrs>(draft, allow_attributes);
#include "ir/ops.def"
  }
  return false;
}

template <typename A>
bool HloReader::ReadTyped(Draft& draft, bool allow_attributes) {
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
    Taken common = ReadCommon(draft, name);
    if (common == Taken::kFailed) return false;
    if (common == Taken::kYes) continue;
    if (std::optional<bool> special = ReadSpecial(values, attrs, name)) {
      if (!*special) return false;
      continue;
    }
    bool known = false;
    if (!ReadField(values, attrs, name, known)) return false;
    if (!known) {
      return cursor_.Fail(ErrorCode::kHloUnknownAttribute,
                          std::string(InfoOf(draft.op).name) + ": unknown attribute '" +
                              std::string(name.substr(0, 80)) + "'",
                          start);
    }
  }
  if (allow_attributes && !CheckRequired(draft)) return false;
  if constexpr (std::is_same_v<A, ConstantAttrs>) attrs.literal = std::move(draft.literal);
  if constexpr (std::is_same_v<A, ParameterAttrs>) attrs.number = draft.parameter;
  if constexpr (std::is_same_v<A, AsyncAttrs>) draft.async = attrs;
  const Shape* shape = draft.shape ? &*draft.shape : nullptr;
  // "dot-start" gives ((operands), result, context).
  bool is_start = draft.wrapped && shape != nullptr && shape->IsTuple();
  if (is_start && shape->elements().size() > 1) shape = &shape->elements()[1];
  Complete(attrs, draft.operands, shape);
  if constexpr (std::is_same_v<A, DimensionsAttrs>) {
    // map runs over all dimensions, and need not say so.
    if (draft.op == Op::kMap && attrs.dimensions.empty() && !draft.operands.empty())
      for (int64_t i = 0; i < draft.operands[0]->shape().rank(); ++i) attrs.dimensions.push_back(i);
  }
  draft.attrs = Attrs(std::move(attrs));
  return true;
}

bool HloReader::Saw(std::string_view attribute) const {
  return std::find(seen_.begin(), seen_.end(), attribute) != seen_.end();
}

bool HloReader::CheckRequired(const Draft& draft) {
  bool is_wrapped = draft.wrapped && draft.op == Op::kAsyncStart;
  Op op = is_wrapped ? *draft.wrapped : draft.op;
  auto fail = [&](std::string_view name) {
    return cursor_.Fail(ErrorCode::kHloMissingAttribute,
                        std::string(InfoOf(op).name) + ": no attribute " + std::string(name),
                        draft.op_start);
  };
  if (const Required* required = RequiredOf(op)) {
    for (std::string_view name : required->names)
      if (!name.empty() && !Saw(name)) return fail(name);
  }
  if (op == Op::kBroadcast && !draft.operands.empty() && draft.operands[0]->shape().rank() > 0 &&
      !Saw("dimensions"))
    return fail("dimensions");
  if (!NeedsCalled(op)) return true;
  std::span<const std::string_view> roles = CalledRoles(op);
  for (size_t i = 0; i < roles.size(); ++i) {
    bool given = i < draft.called.size() && !draft.called[i].first.empty();
    if (!given) return fail(roles[i].substr(0, roles[i].find('*')));
  }
  return true;
}

// ---- attributes that any instruction may have

HloReader::Taken HloReader::ReadCommon(Draft& draft, std::string_view name) {
  if (name == "metadata") return AsTaken(ReadMetadata(draft.origins));
  Taken called = ReadCalled(draft, name);
  if (called != Taken::kNo) return called;
  if (draft.op == Op::kCall && name == "is_composite")
    return AsTaken(cursor_.Bool(draft.is_composite));
  if (draft.op == Op::kReshape && name == "inferred_dimension") {
    int64_t ignored = 0;  // a hint to XLA's dynamic padder
    return AsTaken(cursor_.Int(ignored));
  }
  if (draft.wrapped && draft.op == Op::kAsyncStart) {
    HloValueContext values = Values();
    if (name == "async_execution_thread")
      return AsTaken(ReadValue(values, draft.async.execution_thread));
    bool is_own = *draft.wrapped != Op::kCustomCall && *draft.wrapped != Op::kFusion;
    if (is_own && name == "output_to_operand_aliasing")
      return AsTaken(ReadValue(values, draft.async.output_aliases));
  }
  return ReadExtra(draft, name);
}

HloReader::Taken HloReader::ReadExtra(Draft& draft, std::string_view name) {
  HloValueContext values = Values();
  bool is_own = InfoOf(draft.op).attrs == "ShardingOpAttrs";  // "sharding" is what the op does
  if (name == (is_own ? "value_sharding" : "sharding"))
    return AsTaken(ReadValue(values, draft.Extras().sharding));
  if (name == "frontend_attributes")
    return AsTaken(ReadFrontendAttributes(draft.Extras().frontend_attributes));
  if (name == "backend_config") return AsTaken(ReadBackendConfig(draft.Extras().backend_config));
  if (name == "control-predecessors") {
    if (!cursor_.Expect('{')) return Taken::kFailed;
    while (!cursor_.Try('}')) {
      auto& [before, where] = draft.control.emplace_back();
      (void)cursor_.Peek();
      where = cursor_.at();
      if (!cursor_.Name(before)) return Taken::kFailed;
      if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return Taken::kFailed;
    }
    return Taken::kYes;
  }
  if (name == "statistics" || name == "origin") {
    std::string_view text;
    if (!cursor_.Balanced(text)) return Taken::kFailed;
    InstrExtras& extras = draft.Extras();
    (name == "origin" ? extras.original_value : extras.statistics) = std::string(text);
    return Taken::kYes;
  }
  // Our own.
  if (name == "captures") {
    if (!cursor_.Int(draft.captures)) return Taken::kFailed;
    bool fits = draft.captures >= 0 && draft.captures <= static_cast<int64_t>(std::min<size_t>(
                                                             draft.operands.size(), 65535));
    if (fits) return Taken::kYes;
    return AsTaken(cursor_.Fail(ErrorCode::kHloBadAttribute,
                                "captures: " + std::to_string(draft.captures) + " of " +
                                    std::to_string(draft.operands.size()) + " operands"));
  }
  if (name == "discardable") return AsTaken(ReadValue(values, draft.Extras().discardable));
  if (name == "sharding_rule") {
    ShardingRuleText rule;
    if (!ReadStruct(values, rule)) return Taken::kFailed;
    draft.Extras().sharding_rule = std::move(rule);
    return Taken::kYes;
  }
  if (name == "origins") {  // of an instruction made out of several
    if (!cursor_.Expect('{')) return Taken::kFailed;
    while (!cursor_.Try('}')) {
      if (!ReadMetadata(draft.origins)) return Taken::kFailed;
      if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return Taken::kFailed;
    }
    return Taken::kYes;
  }
  return Taken::kNo;
}

HloReader::Taken HloReader::ReadCalled(Draft& draft, std::string_view name) {
  bool is_wrapped = draft.wrapped && draft.op == Op::kAsyncStart;
  std::optional<int> role = RoleOf(is_wrapped ? *draft.wrapped : draft.op, name);
  if (!role) return Taken::kNo;
  auto one = [&](size_t at) {
    if (draft.called.size() <= at) draft.called.resize(at + 1);
    bool is_body = cursor_.Peek() == '{';
    draft.called[at].second = cursor_.at();
    if (!is_body) return cursor_.Name(draft.called[at].first);
    return ReadInlineComputation(std::string(draft.name) + "." + std::string(name),
                                 draft.called[at].first);
  };
  if (*role >= 0 && (cursor_.Peek() != '{' || OpensBody()))
    return AsTaken(one(static_cast<size_t>(*role)));
  if (!cursor_.Expect('{')) return Taken::kFailed;
  for (size_t i = *role > 0 ? static_cast<size_t>(*role) : 0; !cursor_.Try('}'); ++i) {
    if (!one(i)) return Taken::kFailed;
    if (cursor_.Peek() != '}' && !cursor_.Expect(',')) return Taken::kFailed;
  }
  return Taken::kYes;
}

// "text", or {...} as it stands
bool HloReader::ReadBackendConfig(std::string& text) {
  if (cursor_.Peek() != '{') return cursor_.String(text);
  std::string_view raw;
  if (!cursor_.Braces(raw)) return false;
  text = std::string(raw);
  return true;
}

}  // namespace tokamak
