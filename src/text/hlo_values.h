#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "text/hlo_cursor.h"
#include "text/hlo_shape.h"

// The values of typed attributes in HLO text: one ReadValue and one AppendValue for each field type
// of ir/attrs.h. A struct without a syntax of its own is written {field=value, field=value}.

namespace tokamak {

// State that parsing a value may need besides the text.
struct HloValueContext {
  HloCursor& cursor;
  HloShapeReader& shapes;
  std::vector<Mesh>& meshes;
};

bool ReadValue(HloValueContext& context, int64_t& value);  // 3 or {3}
bool ReadValue(HloValueContext& context, bool& value);
bool ReadValue(HloValueContext& context, double& value);
bool ReadValue(HloValueContext& context, std::string& value);
bool ReadValue(HloValueContext& context, Dims& value);
bool ReadValue(HloValueContext& context, std::vector<bool>& value);  // {true,false} or true
bool ReadValue(HloValueContext& context, Shape& value);
bool ReadValue(HloValueContext& context, Literal& value);  // f32[2] {1, 2}
bool ReadValue(HloValueContext& context, Sharding& value);
bool ReadValue(HloValueContext& context, AttrDict& value);
bool ReadValue(HloValueContext& context, Window& value);        // {size=3x3 pad=0_0x1_1}
bool ReadValue(HloValueContext& context, ConvDims& value);      // b01f_01io->b01f
bool ReadValue(HloValueContext& context, DotAlgorithm& value);  // dot_bf16_bf16_f32_x3
bool ReadValue(HloValueContext& context, ReplicaGroups& value);
bool ReadValue(HloValueContext& context, OutputAlias& value);  // {0}: (1, {})
bool ReadValue(HloValueContext& context, TileDevices& value);
bool ReadValue(HloValueContext& context, AxisRef& value);
bool ReadSliceRanges(HloValueContext& context, SliceAttrs& slice);  // {[0:4:2], [1:3]}
bool ReadPadding(HloValueContext& context, PadAttrs& pad);          // 0_0x1_1_2
bool ReadAccuracy(HloValueContext& context, AccuracyAttrs& accuracy);
bool ReadDomain(HloValueContext& context, DomainAttrs& domain);

bool FailEnum(HloCursor& cursor, std::string_view word, const char* where);

template <typename E>
requires requires {
  EnumText<E>::names;
}
bool ReadValue(HloValueContext& context, E& value) {
  (void)context.cursor.Peek();
  const char* start = context.cursor.at();
  std::string_view word = context.cursor.Word();
  std::optional<E> known = EnumFromText<E>(word);
  // XLA reads the enums that it prints in lower case (precision, accuracy, algorithm) in any case
  if (!known) {
    std::string lower(word);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    known = EnumFromText<E>(lower);
  }
  if (!known) return FailEnum(context.cursor, word, start);
  value = *known;
  return true;
}

template <typename T>
bool ReadValue(HloValueContext& context, std::optional<T>& value) {
  return ReadValue(context, value.emplace());
}

template <typename T>
bool ReadValue(HloValueContext& context, std::vector<T>& list) {
  HloCursor& cursor = context.cursor;
  HloCursor::Depth depth(cursor);
  if (!depth.ok || !cursor.Expect('{')) return false;
  list.clear();
  while (!cursor.Try('}')) {
    if (!ReadValue(context, list.emplace_back())) return false;
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  return true;
}

bool FailField(HloCursor& cursor, std::string_view name, const char* where);

// Reads the value of the field `name`; *known says whether that field exists.
template <typename A>
bool ReadField(HloValueContext& context, A& attrs, std::string_view name, bool& known) {
  bool fine = true;
  known = false;
  auto one = [&](auto field) {
    if (known || field.name != name) return;
    known = true;
    fine = ReadValue(context, attrs.*field.member);
  };
  std::apply([&](auto... field) { (one(field), ...); }, A::Fields());
  return fine;
}

// {field=value, field=value}
template <typename A>
bool ReadStruct(HloValueContext& context, A& attrs) {
  HloCursor& cursor = context.cursor;
  HloCursor::Depth depth(cursor);
  if (!depth.ok || !cursor.Expect('{')) return false;
  while (!cursor.Try('}')) {
    const char* start = cursor.at();
    std::string_view name = cursor.Word();
    bool known = false;
    if (!cursor.Expect('=') || !ReadField(context, attrs, name, known)) return false;
    if (!known) return FailField(cursor, name, start);
    if (cursor.Peek() != '}' && !cursor.Expect(',')) return false;
  }
  return true;
}

// sdy.sharding_rule as a struct of fields.
struct ShardingRuleText : ShardingRule {
  using Lists = std::vector<std::vector<Dims>>;
  static constexpr auto Fields() {
    using Rule = ShardingRuleText;
    return std::tuple(Field<Rule, Dims>{"factor_sizes", &Rule::factor_sizes},
                      Field<Rule, Lists>{"operands", &Rule::operands},
                      Field<Rule, Lists>{"results", &Rule::results},
                      Field<Rule, Dims>{"reduction", &Rule::reduction},
                      Field<Rule, Dims>{"need_replication", &Rule::need_replication},
                      Field<Rule, Dims>{"permutation", &Rule::permutation},
                      Field<Rule, Dims>{"blocked_propagation", &Rule::blocked_propagation},
                      Field<Rule, bool>{"is_custom", &Rule::is_custom});
  }
};

// ---- writing

struct HloTextContext {
  const std::vector<Mesh>& meshes;
};

void AppendInt(std::string& out, int64_t value);
void AppendValue(std::string& out, const HloTextContext& context, int64_t value);
void AppendValue(std::string& out, const HloTextContext& context, bool value);
void AppendValue(std::string& out, const HloTextContext& context, double value);
void AppendValue(std::string& out, const HloTextContext& context, const std::string& value);
void AppendValue(std::string& out, const HloTextContext& context, const Dims& value);
void AppendValue(std::string& out, const HloTextContext& context, const Shape& value);
void AppendValue(std::string& out, const HloTextContext& context, const Literal& value);
void AppendValue(std::string& out, const HloTextContext& context, const Sharding& value);
void AppendValue(std::string& out, const HloTextContext& context, const AttrDict& value);
void AppendValue(std::string& out, const HloTextContext& context, const Window& value);
void AppendValue(std::string& out, const HloTextContext& context, const ConvDims& value);
void AppendValue(std::string& out, const HloTextContext& context, const DotAlgorithm& value);
void AppendValue(std::string& out, const HloTextContext& context, const ReplicaGroups& value);
void AppendValue(std::string& out, const HloTextContext& context, const OutputAlias& value);
void AppendValue(std::string& out, const HloTextContext& context, const TileDevices& value);
void AppendValue(std::string& out, const HloTextContext& context, const AxisRef& value);
void AppendSliceRanges(std::string& out, const SliceAttrs& slice);
void AppendPadding(std::string& out, const PadAttrs& pad);

template <typename E>
requires requires {
  EnumText<E>::names;
}
void AppendValue(std::string& out, const HloTextContext&, E value) {
  out += TextOf(value);
}

template <typename T>
void AppendValue(std::string& out, const HloTextContext& context, const std::optional<T>& value) {
  if (value) AppendValue(out, context, *value);
}

template <typename T>
void AppendValue(std::string& out, const HloTextContext& context, const std::vector<T>& list) {
  out += '{';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    AppendValue(out, context, list[i]);
  }
  out += '}';
}

template <typename A>
void AppendStruct(std::string& out, const HloTextContext& context, const A& attrs) {
  static const A nothing{};
  out += '{';
  bool first = true;
  auto one = [&](auto field) {
    if (attrs.*field.member == nothing.*field.member) return;
    if (!first) out += ", ";
    first = false;
    out.append(field.name) += '=';
    AppendValue(out, context, attrs.*field.member);
  };
  std::apply([&](auto... field) { (one(field), ...); }, A::Fields());
  out += '}';
}

}  // namespace tokamak
