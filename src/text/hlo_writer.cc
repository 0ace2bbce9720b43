// Writes HLO text as XLA reads it, wherever HLO can express the module. Tokamak extensions are
// placed only where XLA reports an unknown attribute, so XLA never misinterprets the text.
//
// Callees are printed before callers, as XLA's parser requires. If that differs from the module's
// order, the frontend attribute tokamak.order stores the index of each computation.
#include <algorithm>
#include <unordered_map>

#include "ir/visit_attrs.h"
#include "text/hlo_attr_value.h"
#include "text/hlo_literal.h"
#include "text/hlo_names_out.h"
#include "text/hlo_origins_out.h"
#include "text/hlo_reader.h"
#include "text/hlo_sharding.h"
#include "text/write.h"

namespace tokamak {
namespace {

// ---- typed attributes

// Fields that are printed only if they differ from the default. All other numbers, number lists and
// words are always printed, because XLA requires them.
bool IsOptionalField(std::string_view name) {
  static constexpr std::string_view kNames[] = {"channel_id",
                                                "channel_type",
                                                "feature_group_count",
                                                "batch_group_count",
                                                "concat_dimension",
                                                "split_count",
                                                "operand_batching_dims",
                                                "start_indices_batching_dims",
                                                "input_batching_dims",
                                                "scatter_indices_batching_dims",
                                                "lhs_batch_dims",
                                                "rhs_batch_dims",
                                                "lhs_ragged_dims",
                                                "rhs_group_dims",
                                                "api_version",
                                                "schedule",
                                                "type",
                                                "iteration",
                                                "group",
                                                "conv_kind",
                                                "padding_type",
                                                "known_expanding_dimensions",
                                                "known_nonexpanding_dimensions",
                                                "batch_dims"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

template <typename T>
constexpr bool kIsPlain =
    std::is_same_v<T, int64_t> || std::is_same_v<T, Dims> || std::is_enum_v<T>;

class ModuleWriter {
 public:
  explicit ModuleWriter(const Module& module)
      : module_(module), origins_(module.origins()), context_{module.meshes} {}

  std::string Write() {
    std::vector<Computation*> order = PrintOrder();
    for (const Computation* computation : order)
      names_.emplace(computation, namer_.Unique(computation->name(), "computation"));
    origins_.Collect(order);
    Header(order);
    origins_.AppendTables(out_);
    for (const Computation* computation : order) Print(*computation);
    return std::move(out_);
  }

 private:
  // ---- order

  std::vector<Computation*> PrintOrder() {
    std::vector<Computation*> order = module_.CalleesFirst();
    if (order.size() == module_.computations().size()) return order;
    order.clear();
    for (const auto& computation : module_.computations()) order.push_back(computation.get());
    return order;
  }

  // ---- header

  void Header(const std::vector<Computation*>& order) {
    std::string name = HloNamer().Unique(module_.name(), "module");
    out_ += "HloModule ";
    if (name == module_.name() || module_.name().empty()) {
      out_ += name;
    } else {
      AppendQuoted(out_, module_.name());
    }
    if (module_.num_replicas != 1) Attribute("replica_count", module_.num_replicas);
    if (module_.num_partitions != 1) Attribute("num_partitions", module_.num_partitions);
    Aliases();
    EntryLayout();
    HeaderAttributes();
    FrontendAttributes(OrderAttribute(order));
    if (module_.entry() == nullptr) out_ += ", no_entry=true";
    Meshes();
    out_ += "\n";
  }

  void Aliases() {
    if (!module_.aliases.empty()) {
      out_ += ", input_output_alias={ ";
      for (size_t i = 0; i < module_.aliases.size(); ++i) {
        const InputOutputAlias& alias = module_.aliases[i];
        if (i > 0) out_ += ", ";
        Value(alias.output);
        out_ += ": (";
        AppendInt(out_, alias.parameter);
        out_ += ", ";
        Value(alias.parameter_index);
        out_ += alias.must ? ", must-alias)" : ", may-alias)";
      }
      out_ += " }";
    }
    if (module_.donors.empty()) return;
    out_ += ", buffer_donor={ ";
    for (size_t i = 0; i < module_.donors.size(); ++i) {
      out_ += i > 0 ? ", (" : "(";
      AppendInt(out_, module_.donors[i].parameter);
      out_ += ", ";
      Value(module_.donors[i].parameter_index);
      out_ += ')';
    }
    out_ += " }";
  }

  void EntryLayout() {
    const Computation* entry = module_.entry();
    bool has_layout = !module_.entry_parameter_layouts.empty() || module_.entry_result_layout;
    if (entry == nullptr || entry->root() == nullptr || !has_layout) return;
    std::vector<Shape> parameters = module_.entry_parameter_layouts;
    if (parameters.empty())
      for (const Instr* parameter : entry->parameters()) parameters.push_back(parameter->shape());
    out_ += ", entry_computation_layout={";
    AppendShape(out_, Shape::Tuple(std::move(parameters)));
    out_ += "->";
    AppendShape(out_, module_.entry_result_layout.value_or(entry->root()->shape()));
    out_ += '}';
  }

  // XLA's own flags are stored among the module's attributes as "hlo.name".
  void HeaderAttributes() {
    AttrDict rest;
    for (const AttrEntry& entry : module_.attributes) {
      bool is_flag = entry.name == "hlo.alias_passthrough_params" ||
                     entry.name == "hlo.use_auto_spmd_partitioning";
      const bool* value = entry.value.As<bool>();
      if (is_flag && value != nullptr && *value) {
        Attribute(std::string_view(entry.name).substr(4), true);
      } else {
        rest.push_back(entry);
      }
    }
    if (!rest.empty()) Attribute("attributes", rest);
  }

  AttrDict OrderAttribute(const std::vector<Computation*>& order) {
    AttrDict dict = module_.frontend_attributes;
    std::unordered_map<const Computation*, size_t> positions;
    for (const auto& computation : module_.computations())
      positions.emplace(computation.get(), positions.size());
    bool is_same = true;
    std::string text;
    for (size_t i = 0; i < order.size(); ++i) {
      size_t position = positions[order[i]];
      is_same = is_same && position == i;
      if (i > 0) text += ',';
      AppendInt(text, static_cast<int64_t>(position));
    }
    if (!is_same) Set(dict, std::string(kHloOrderAttribute), {std::move(text)});
    return dict;
  }

  // Prints the mesh table if the reader would build a different one from the shardings alone.
  void Meshes() {
    if (module_.meshes.empty()) return;
    out_ += ", meshes={";
    for (size_t i = 0; i < module_.meshes.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += '@';
      AppendQuoted(out_, module_.meshes[i].name);
      out_ += ' ';
      AppendMeshText(out_, module_.meshes[i]);
    }
    out_ += '}';
  }

  void FrontendAttributes(const AttrDict& dict) {
    if (dict.empty()) return;
    out_ += ", frontend_attributes={";
    for (size_t i = 0; i < dict.size(); ++i) {
      if (i > 0) out_ += ',';
      bool is_word = !dict[i].name.empty();
      for (char c : dict[i].name) is_word = is_word && HloCursor::IsWordChar(c);
      if (is_word) {
        out_ += dict[i].name;
      } else {
        AppendQuoted(out_, dict[i].name);
      }
      out_ += '=';
      if (const std::string* text = dict[i].value.As<std::string>()) {
        AppendQuoted(out_, *text);
      } else {
        out_ += '!';
        AppendAttrDict(out_, {{"value", dict[i].value}});
      }
    }
    out_ += '}';
  }

  // ---- computations

  void Print(const Computation& computation) {
    out_ += '\n';
    bool is_entry = module_.entry() == &computation;
    if (is_entry) out_ += "ENTRY ";
    Reference(names_.at(&computation));
    out_ += " {\n";
    NameInstrs(computation);
    for (const Instr* instr : computation.Instrs()) Print(*instr);
    out_ += '}';
    if (!computation.execution_thread.empty())
      Attribute("execution_thread", computation.execution_thread);
    if (computation.is_public != is_entry)
      out_ += computation.is_public ? ", visibility=public" : ", visibility=private";
    if (!computation.attributes.empty()) Attribute("attributes", computation.attributes);
    if (!computation.results.empty()) Results(computation.results);
    if (computation.origins != OriginId::kNone) origins_.Append(out_, computation.origins);
    out_ += '\n';
  }

  void Results(const std::vector<ResultInfo>& results) {
    out_ += ", results={";
    for (size_t i = 0; i < results.size(); ++i) {
      out_ += i > 0 ? ", {" : "{";
      if (results[i].sharding) {
        out_ += "sharding=";
        Value(*results[i].sharding);
      }
      if (!results[i].attributes.empty()) {
        out_ += results[i].sharding ? ", attributes=" : "attributes=";
        Value(results[i].attributes);
      }
      out_ += '}';
    }
    out_ += '}';
  }

  void NameInstrs(const Computation& computation) {
    HloNamer namer;
    instr_names_.assign(computation.id_limit(), {});
    for (const Instr* instr : computation.Instrs())
      instr_names_[static_cast<size_t>(instr->id())] =
          namer.Unique(instr->name(), instr->info().name);
  }

  void Reference(const std::string& name) {
    if (IsHloKeyword(name)) out_ += '%';
    out_ += name;
  }
  void Reference(const Instr* instr) { Reference(instr_names_[static_cast<size_t>(instr->id())]); }

  // ---- instructions

  void Print(const Instr& instr) {
    out_ += instr.parent()->root() == &instr ? "  ROOT " : "  ";
    Reference(&instr);
    out_ += " = ";
    AppendShape(out_, instr.shape());
    out_ += ' ';
    // XLA sees a composite as a call.
    out_ += IsPlainComposite(instr) ? "call" : instr.info().name;
    out_ += '(';
    Operands(instr);
    out_ += ')';
    Called(instr);
    VisitAttrs(instr.op(), instr.attrs(), [&](const auto& attrs) { Typed(instr, attrs); });
    Extras(instr);
    origins_.Append(out_, instr.origins());
    out_ += '\n';
  }

  static bool IsPlainComposite(const Instr& instr) {
    if (instr.op() != Op::kComposite || instr.called().size() != 1) return false;
    const CompositeAttrs& attrs = instr.attrs<CompositeAttrs>();
    std::string text;
    AppendAttrDict(text, attrs.attributes);
    std::optional<AttrDict> again = ParseHloAttrDict(text);
    return !attrs.name.empty() && again && *again == attrs.attributes;
  }

  void Operands(const Instr& instr) {
    if (instr.op() == Op::kParameter) {
      AppendInt(out_, instr.attrs<ParameterAttrs>().number);
      return;
    }
    if (instr.op() == Op::kConstant) {
      const Literal& literal = instr.attrs<ConstantAttrs>().literal;
      bool is_expected = literal.shape() == instr.shape().WithoutLayout();
      if (!is_expected) {
        AppendShape(out_, literal.shape());
        out_ += ' ';
      }
      AppendHloLiteral(out_, literal);
      return;
    }
    for (size_t i = 0; i < instr.operand_count(); ++i) {
      if (i > 0) out_ += ", ";
      Reference(instr.operand(i));
    }
  }

  void Called(const Instr& instr) {
    std::span<Computation* const> called = instr.called();
    if (called.empty()) return;
    auto role = [&](std::string_view name, const Computation* computation) {
      out_.append(", ").append(name) += '=';
      Reference(names_.at(computation));
    };
    if (IsPlainComposite(instr)) return role("to_apply", called[0]);
    bool is_choice = instr.op() == Op::kConditional && called.size() == 2 &&
                     instr.operand_count() > 0 &&
                     instr.operand(0)->shape().type() == ElementType::kPred;
    if (is_choice) {
      role("true_computation", called[0]);
      role("false_computation", called[1]);
      return;
    }
    std::span<const std::string_view> roles = CalledRoles(instr.op());
    bool is_list = !roles.empty() && roles[0].ends_with('*');
    if (!is_list) {
      for (size_t i = 0; i < called.size() && i < roles.size(); ++i) role(roles[i], called[i]);
      return;
    }
    out_.append(", ").append(roles[0].substr(0, roles[0].size() - 1)) += "={";
    for (size_t i = 0; i < called.size(); ++i) {
      if (i > 0) out_ += ", ";
      Reference(names_.at(called[i]));
    }
    out_ += '}';
  }

  // ---- typed attributes

  template <typename A>
  void Typed(const Instr& instr, const A& attrs) {
    static const A nothing{};
    auto one = [&](auto field) {
      using T = std::remove_cvref_t<decltype(attrs.*field.member)>;
      bool is_said = !(attrs.*field.member == nothing.*field.member);
      bool is_number = kIsPlain<T> || std::is_same_v<T, double> || std::is_same_v<T, ConvDims>;
      bool is_asked = is_number && !IsOptionalField(field.name);
      if (!is_said && !is_asked) return;
      if constexpr (std::is_same_v<T, int64_t>) {
        if (field.name == "dimensions") return BracedInt(field.name, attrs.*field.member);
      }
      Attribute(field.name, attrs.*field.member);
    };
    (void)instr;
    (void)nothing;
    std::apply([&](auto... field) { (one(field), ...); }, A::Fields());
  }
  void BracedInt(std::string_view name, int64_t value) {
    out_.append(", ").append(name) += "={";
    AppendInt(out_, value);
    out_ += '}';
  }
  void Typed(const Instr&, const NoAttrs&) {}
  void Typed(const Instr&, const ConstantAttrs&) {}
  void Typed(const Instr&, const ParameterAttrs&) {}
  void Typed(const Instr&, const SliceAttrs& attrs) {
    bool is_regular =
        attrs.limits.size() == attrs.starts.size() && attrs.strides.size() == attrs.starts.size();
    if (!is_regular) {
      Attribute("starts", attrs.starts);
      Attribute("limits", attrs.limits);
      Attribute("strides", attrs.strides);
      return;
    }
    out_ += ", slice=";
    AppendSliceRanges(out_, attrs);
  }
  void Typed(const Instr&, const PadAttrs& attrs) {
    out_ += ", padding=";
    AppendPadding(out_, attrs);
  }
  void Typed(const Instr&, const AccuracyAttrs& attrs) {
    if (attrs == AccuracyAttrs{}) return;
    bool is_tolerance = attrs.mode == AccuracyMode::kTolerance;
    out_ += ", result_accuracy={";
    if (!is_tolerance) out_.append("mode=").append(TextOf(attrs.mode)).append(",");
    out_ += "tolerance={atol=";
    Value(attrs.atol);
    out_ += ",rtol=";
    Value(attrs.rtol);
    out_ += ",ulps=";
    Value(attrs.ulps);
    out_ += "}}";
    if (!is_tolerance) RewriteMode(attrs);
  }
  void RewriteMode(const AccuracyAttrs& attrs) {
    // Modes other than tolerance have no numbers.
    if (attrs.atol != 0 || attrs.rtol != 0 || attrs.ulps != 0) return;
    out_.erase(out_.rfind(",tolerance="));
    out_ += '}';
  }
  void Typed(const Instr&, const DomainAttrs& attrs) {
    out_ += ", domain={kind=";
    AppendQuoted(out_, attrs.kind);
    out_ += ", entry=";
    Value(attrs.entry);
    out_ += ", exit=";
    Value(attrs.exit);
    out_ += '}';
  }
  void Typed(const Instr& instr, const FeedAttrs& attrs) {
    if (!attrs.config.empty())
      Attribute(instr.op() == Op::kInfeed ? "infeed_config" : "outfeed_config", attrs.config);
    if (attrs.outfeed_shape) Attribute("outfeed_shape", *attrs.outfeed_shape);
    if (attrs.layout) Attribute("layout", *attrs.layout);
  }
  void Typed(const Instr& instr, const CollectiveAttrs& attrs) {
    // XLA requires it on all of them, even for "all devices".
    out_ += ", replica_groups=";
    Value(attrs.groups);
    CollectiveAttrs rest = attrs;
    rest.groups = {};
    if (rest.dimensions.empty()) return TypedUnlessDefault(rest);
    Typed<CollectiveAttrs>(instr, rest);
  }
  void Typed(const Instr& instr, const PermuteAttrs& attrs) {
    bool is_permute =
        instr.op() == Op::kCollectivePermute || instr.op() == Op::kCollectivePermuteStart;
    if (is_permute && attrs.source_target_pairs.empty()) out_ += ", source_target_pairs={}";
    TypedUnlessDefault(attrs);
  }
  void Typed(const Instr& instr, const CompositeAttrs& attrs) {
    if (IsPlainComposite(instr)) return;  // printed in its frontend attributes
    TypedUnlessDefault(attrs);
  }
  void Typed(const Instr&, const CheckAttrs& attrs) { TypedUnlessDefault(attrs); }
  void Typed(const Instr&, const RunParallelAttrs& attrs) { TypedUnlessDefault(attrs); }
  void Typed(const Instr&, const ShardingOpAttrs& attrs) { TypedUnlessDefault(attrs); }
  void Typed(const Instr& instr, const CustomCallAttrs& attrs) {
    (void)instr;
    Attribute("custom_call_target", attrs.target);
    CustomCallAttrs rest = attrs;
    rest.target.clear();
    rest.backend_config.clear();
    rest.backend_dict.clear();
    TypedUnlessDefault(rest);
    if (!attrs.backend_dict.empty()) {
      bool is_typed = attrs.api_version == CustomCallApi::kTypedFfi && attrs.backend_config.empty();
      Attribute(is_typed ? "backend_config" : "backend_dict", attrs.backend_dict);
    }
    BackendConfig(attrs.backend_config);
  }
  template <typename A>
  void TypedUnlessDefault(const A& attrs) {
    static const A nothing{};
    auto one = [&](auto field) {
      if (!(attrs.*field.member == nothing.*field.member))
        Attribute(field.name, attrs.*field.member);
    };
    std::apply([&](auto... field) { (one(field), ...); }, A::Fields());
  }

  // ---- attributes of any instruction

  void BackendConfig(const std::string& text) {
    if (text.empty()) return;
    out_ += ", backend_config=";
    HloCursor cursor(text);
    std::string_view braces;
    bool is_raw = text[0] == '{' && cursor.Braces(braces) && braces.size() == text.size();
    if (is_raw) {
      out_ += text;
    } else {
      AppendQuoted(out_, text);
    }
  }

  void Extras(const Instr& instr) {
    if (instr.captures() > 0) Attribute("captures", static_cast<int64_t>(instr.captures()));
    const InstrExtras& extras = instr.extras();
    bool is_call = instr.op() == Op::kCall && Find(extras.frontend_attributes, "composite.name");
    if (IsPlainComposite(instr) || is_call) out_ += ", is_composite=true";
    if (IsPlainComposite(instr)) {
      const CompositeAttrs& composite = instr.attrs<CompositeAttrs>();
      AttrDict dict = extras.frontend_attributes;
      std::string text;
      AppendAttrDict(text, composite.attributes);
      Set(dict, "composite.attributes", {std::move(text)});
      Set(dict, "composite.name", {composite.name});
      Set(dict, "composite.version", {std::to_string(composite.version)});
      FrontendAttributes(dict);
    } else {
      FrontendAttributes(extras.frontend_attributes);
    }
    if (!instr.has_extras()) return;
    if (extras.sharding) {
      bool is_own = instr.info().attrs == "ShardingOpAttrs";
      Attribute(is_own ? "value_sharding" : "sharding", *extras.sharding);
    }
    if (extras.sharding_rule) {
      ShardingRuleText rule{*extras.sharding_rule};
      out_ += ", sharding_rule=";
      AppendStruct(out_, context_, rule);
    }
    if (!extras.control_predecessors.empty()) {
      out_ += ", control-predecessors={";
      for (size_t i = 0; i < extras.control_predecessors.size(); ++i) {
        if (i > 0) out_ += ", ";
        Reference(extras.control_predecessors[i]);
      }
      out_ += '}';
    }
    if (!extras.discardable.empty()) Attribute("discardable", extras.discardable);
    if (instr.op() != Op::kCustomCall) BackendConfig(extras.backend_config);
  }

  template <typename T>
  void Value(const T& value) {
    AppendValue(out_, context_, value);
  }
  template <typename T>
  void Attribute(std::string_view name, const T& value) {
    out_.append(", ").append(name) += '=';
    AppendValue(out_, context_, value);
  }

  const Module& module_;
  HloOriginWriter origins_;
  HloTextContext context_;
  std::string out_;
  HloNamer namer_;
  std::unordered_map<const Computation*, std::string> names_;
  std::vector<std::string> instr_names_;  // by id, of the computation being printed
};

}  // namespace

std::string WriteHloText(const Module& module) {
  return ModuleWriter(module).Write();
}

}  // namespace tokamak
