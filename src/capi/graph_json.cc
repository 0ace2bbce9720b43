#include "capi/graph_json.h"

#include <cmath>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "driver/report/xla_dump.h"
#include "ir/visit_attrs.h"
#include "text/hlo_attr_value.h"
#include "text/hlo_literal.h"
#include "text/hlo_values.h"

namespace tokamak {
namespace {

using nlohmann::json;

// Elements of the largest constant whose value is listed (chosen: a line of text).
constexpr int64_t kShownElements = 64;

json GraphShapeJson(const Shape& shape) {
  json out = {{"text", ToString(shape)}};
  if (shape.IsArray()) {
    out["type"] = InfoOf(shape.type()).hlo;
    out["dims"] = json::array();
    for (int64_t size : shape.dims())
      out["dims"].push_back(size == kDynamic ? json(nullptr) : json(size));
  } else {
    out["elements"] = json::array();
    for (const Shape& element : shape.elements())
      out["elements"].push_back(GraphShapeJson(element));
  }
  return out;
}

// Texts or shapes, each listed once.
class InternedTable {
 public:
  template <typename Make>
  size_t Index(const std::string& text, Make&& make) {
    auto [at, is_new] = indices_.try_emplace(text, list_.size());
    if (is_new) list_.push_back(make());
    return at->second;
  }
  size_t Index(const std::string& text) {
    return Index(text, [&] { return json(text); });
  }
  json Take() { return std::move(list_); }

 private:
  std::unordered_map<std::string, size_t> indices_;
  json list_ = json::array();
};

class AttributeLister {
 public:
  explicit AttributeLister(const Instr& instr) : context_{instr.parent()->module()->meshes} {}

  template <typename A>
  void Typed(const A& attrs) {
    std::apply([&](auto... field) { (Add(field.name, attrs.*field.member), ...); }, A::Fields());
  }
  void Typed(const NoAttrs&) {}
  void Typed(const ConstantAttrs& attrs) {
    if (attrs.literal.shape().IsArray() && attrs.literal.shape().ElementCount() > kShownElements)
      return;
    std::string text;
    AppendHloLiteral(text, attrs.literal);
    out["literal"] = text;
  }
  template <typename T>
  void Add(std::string_view name, const T& value) {
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, bool> ||
                  std::is_same_v<T, Dims> || std::is_same_v<T, std::string>) {
      out[std::string(name)] = value;
    } else {
      std::string text;
      AppendValue(text, context_, value);
      out[std::string(name)] = text;
    }
  }

  json out = json::object();

 private:
  HloTextContext context_;
};

}  // namespace

std::string ScopeOf(const Instr& instr) {
  for (const Origin* origin : instr.parent()->module()->origins().Of(instr.origins()))
    if (!origin->op_name.empty()) return origin->op_name;
  return {};
}

json AttributesOf(const Instr& instr) {
  AttributeLister lister(instr);
  VisitAttrs(instr.op(), instr.attrs(), [&](const auto& attrs) { lister.Typed(attrs); });
  const InstrExtras& extras = instr.extras();
  for (const AttrDict* dict : {&extras.frontend_attributes, &extras.discardable})
    for (const AttrEntry& entry : *dict) {
      const std::string* text = entry.value.As<std::string>();
      std::string printed;
      if (text == nullptr) AppendAttrValue(printed, entry.value);
      lister.out[entry.name] = text != nullptr ? *text : printed;
    }
  if (extras.sharding) lister.Add("sharding", *extras.sharding);
  if (!extras.backend_config.empty()) lister.out["backend_config"] = extras.backend_config;
  return std::move(lister.out);
}

json JsonOf(const GraphProgram& program) {
  const Module& module = program.module();
  InternedTable lines, scopes, shapes;
  std::unordered_map<const Computation*, size_t> numbers;
  for (const auto& computation : module.computations())
    numbers.emplace(computation.get(), numbers.size());
  json computations = json::array(), instrs = json::array();
  for (const auto& computation : module.computations()) {
    json parameters = json::array();
    for (const Instr* parameter : computation->parameters())
      parameters.push_back(program.IdOf(*parameter));
    computations.push_back({{"name", computation->name()},
                            {"root", program.IdOf(*computation->root())},
                            {"parameters", std::move(parameters)}});
    for (const Instr* instr : computation->Instrs()) {
      json operands = json::array(), called = json::array(), at = json::array();
      for (const Instr* operand : instr->operands()) operands.push_back(program.IdOf(*operand));
      for (const Computation* callee : instr->called()) called.push_back(numbers.at(callee));
      for (const std::string& line : SourceLines(*instr)) at.push_back(lines.Index(line));
      std::string scope = ScopeOf(*instr), shape = ToString(instr->shape());
      instrs.push_back({program.IdOf(*instr), instr->name(), instr->info().name,
                        shapes.Index(shape, [&] { return GraphShapeJson(instr->shape()); }),
                        numbers.at(computation.get()), std::move(operands), std::move(called),
                        std::move(at), scope.empty() ? json(-1) : json(scopes.Index(scope))});
    }
  }
  return {{"name", module.name()},
          {"entry", module.entry() == nullptr ? json(nullptr) : json(numbers.at(module.entry()))},
          {"computations", std::move(computations)},
          {"instrs", std::move(instrs)},
          {"lines", lines.Take()},
          {"scopes", scopes.Take()},
          {"shapes", shapes.Take()}};
}

}  // namespace tokamak
