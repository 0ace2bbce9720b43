#pragma once

// The fields of attribute structs as attribute values: EncodeAttr produces what a writer prints,
// DecodeAttr reads what text and bytecode contain. Two forms are written and both are read:
//   that of the MLIR dialects:  #stablehlo<precision HIGH>, #stablehlo.output_operand_alias<...>
//   the plain form, for what no dialect can express: "high", {operand = 1}. A struct is a
//     dictionary of its fields that differ from those of a value-initialised one.

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ir/attrs.h"
#include "text/mlir_enums.h"
#include "text/mlir_layout.h"
#include "text/mlir_sdy.h"

namespace tokamak {

namespace mlir_table {
// Specialised by TOK_MLIR_RECORD: the name of the dialect's struct, and the rows of its fields.
template <typename T>
struct RecordFields;
}  // namespace mlir_table

// The fields of a struct in the plain form. Structs of ir/sharding.h have no Fields() member.
template <typename T>
struct PlainFields;
template <typename T>
requires requires {
  T::Fields();
}
struct PlainFields<T> {
  static constexpr auto Get() { return T::Fields(); }
};
template <>
struct PlainFields<AxisRef> {
  static constexpr auto Get() {
    return std::tuple(Field{"name", &AxisRef::name}, Field{"pre_size", &AxisRef::pre_size},
                      Field{"size", &AxisRef::size});
  }
};
template <>
struct PlainFields<TileDevices> {
  static constexpr auto Get() {
    return std::tuple(Field{"list", &TileDevices::list}, Field{"reshape", &TileDevices::reshape},
                      Field{"permutation", &TileDevices::permutation});
  }
};
template <>
struct PlainFields<DimSharding> {
  static constexpr auto Get() {
    return std::tuple(Field{"axes", &DimSharding::axes},
                      Field{"is_closed", &DimSharding::is_closed},
                      Field{"priority", &DimSharding::priority});
  }
};
template <>
struct PlainFields<Sharding> {
  static constexpr auto Get() {
    return std::tuple(
        Field{"kind", &Sharding::kind}, Field{"tile", &Sharding::tile},
        Field{"devices", &Sharding::tile_devices}, Field{"subgroups", &Sharding::subgroups},
        Field{"replicate_last", &Sharding::replicate_last_tile_dim}, Field{"mesh", &Sharding::mesh},
        Field{"dims", &Sharding::dims}, Field{"replicated", &Sharding::replicated},
        Field{"unreduced", &Sharding::unreduced}, Field{"reduction", &Sharding::reduction},
        Field{"elements", &Sharding::elements}, Field{"shard_as", &Sharding::shard_as},
        Field{"shard_like", &Sharding::shard_like});
  }
};

template <typename T>
concept MlirRecordStruct = requires {
  mlir_table::RecordFields<T>::kKind;
};
template <typename T>
concept PlainStruct = requires {
  PlainFields<T>::Get();
};
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// ---- encoding

AttrValue EncodeWord(const MlirEnum& kind, std::string_view name);
AttrValue EncodeRows(const std::vector<Dims>& rows, size_t width);  // dense elements
AttrValue EncodeNames(const std::vector<std::string>& names);       // sdy.manual_axes

// `type` is that of a number ("i32", "f32"), or the kind of a keyword instead of a string. "unit"
// is a flag without a value, "pairs" dense elements with two columns, "lists" a list of lists
// instead of dense elements. A list of integers with a type is written as its only number.
template <bool kPlain = false, typename T>
AttrValue EncodeAttr(const T& value, std::string_view type = {}) {
  if constexpr (std::is_same_v<T, bool>) {
    if (type == "unit") return {UnitAttr{}};
    return {value};
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return {IntAttr{value, std::string(type.empty() ? "i64" : type)}};
  } else if constexpr (std::is_same_v<T, double>) {
    return {FloatAttr{value, type == "f32" ? ElementType::kF32 : ElementType::kF64}};
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!type.empty()) return {EnumAttr{std::string(type), value}};
    return {value};
  } else if constexpr (std::is_same_v<T, ShardingKind>) {
    return {IntAttr{.value = static_cast<int64_t>(value)}};
  } else if constexpr (std::is_enum_v<T>) {
    if (!type.empty()) return EncodeAttr(static_cast<int64_t>(value), type);
    if (kPlain) return {std::string(TextOf(value))};
    return EncodeWord(kMlirEnum<T>, TextOf(value));
  } else if constexpr (std::is_same_v<T, Dims>) {
    if (!type.empty()) return EncodeAttr(value.empty() ? int64_t{-1} : value[0], type);
    return {DenseArrayAttr{"i64", value, {}}};
  } else if constexpr (kIsOptional<T>) {
    return EncodeAttr<kPlain>(*value, type);
  } else if constexpr (!kPlain && std::is_same_v<T, Sharding>) {
    return ToAttr(value);
  } else if constexpr (!kPlain && std::is_same_v<T, std::vector<Sharding>>) {
    return ShardingsToAttr(value);
  } else if constexpr (!kPlain && std::is_same_v<T, std::vector<std::string>>) {
    return EncodeNames(value);
  } else if constexpr (std::is_same_v<T, Shape>) {
    return ShapeToAttr(value);
  } else if constexpr (kIsVector<T> && !std::is_same_v<T, AttrDict>) {
    using Item = typename T::value_type;
    if constexpr (!kPlain && std::is_same_v<Item, Dims>)
      if (type != "lists") return EncodeRows(value, type == "pairs" ? 2 : 0);
    AttrList list;
    for (const Item& item : value)
      list.push_back(EncodeAttr<kPlain>(item, std::is_same_v<Item, Dims> ? "" : type));
    return {std::move(list)};
  } else if constexpr (!kPlain && MlirRecordStruct<T>) {
    using Fields = mlir_table::RecordFields<T>;
    RecordAttr record{std::string(Fields::kKind), {}};
    auto write = [&](const auto& row) {
      Set(record.fields, std::string(row.facts.name),
          EncodeAttr(row.value.field(value), row.facts.type));
    };
    std::apply([&](const auto&... row) { (write(row), ...); }, Fields::Rows());
    return {std::move(record)};
  } else if constexpr (PlainStruct<T>) {
    AttrDict dict;
    const T plain{};
    auto write = [&](auto field) {
      const auto& part = value.*field.member;
      if (!(part == plain.*field.member))
        Set(dict, std::string(field.name), EncodeAttr<true>(part));
    };
    std::apply([&](auto... field) { (write(field), ...); }, PlainFields<T>::Get());
    return {std::move(dict)};
  } else {
    return {value};  // Literal, AttrDict
  }
}

// ---- decoding

// Each returns what was expected ("a list of integers"), or "" if the value was read.
std::string DecodeAttr(const AttrValue& value, bool& out);
std::string DecodeAttr(const AttrValue& value, int64_t& out);
std::string DecodeAttr(const AttrValue& value, double& out);
std::string DecodeAttr(const AttrValue& value, std::string& out);
std::string DecodeAttr(const AttrValue& value, Dims& out);
std::string DecodeAttr(const AttrValue& value, std::vector<Dims>& out);
std::string DecodeAttr(const AttrValue& value, Literal& out);  // a list: a tuple
std::string DecodeAttr(const AttrValue& value, Shape& out);
std::string DecodeAttr(const AttrValue& value, AttrDict& out);
std::string DecodeAttr(const AttrValue& value, ShardingKind& out);
// The index in `names` of a keyword or of its VHLO number.
std::string DecodeWord(const AttrValue& value, const MlirEnum& kind,
                       std::span<const std::string_view> names, size_t& index);
// The field of a dictionary that is unknown or of a wrong kind.
template <typename T>
std::string DecodeFields(const AttrDict& dict, T& out);

template <typename T>
std::string DecodeAttr(const AttrValue& value, T& out) {
  if constexpr (std::is_enum_v<T>) {
    size_t index = 0;
    std::string expected = DecodeWord(value, kMlirEnum<T>, EnumText<T>::names, index);
    if (expected.empty()) out = static_cast<T>(index);
    return expected;
  } else if constexpr (kIsOptional<T>) {
    return DecodeAttr(value, out.emplace());
  } else if constexpr (kIsVector<T>) {
    std::optional<T> known;
    if constexpr (std::is_same_v<T, std::vector<Sharding>>) known = ShardingsFromAttr(value);
    if constexpr (std::is_same_v<T, std::vector<std::string>>) known = NamesFromAttr(value);
    if (known) {
      out = std::move(*known);
      return {};
    }
    const auto* list = value.As<AttrList>();
    if (list == nullptr) return "a list";
    for (const AttrValue& item : *list)
      if (std::string expected = DecodeAttr(item, out.emplace_back()); !expected.empty())
        return expected;
    return {};
  } else {
    const auto* record = value.As<RecordAttr>();
    const auto* dict = value.As<AttrDict>();
    if (record == nullptr && dict == nullptr) return "a record";
    if constexpr (std::is_same_v<T, Sharding>) {
      std::optional<Sharding> known = ShardingFromAttr(value);
      if (known) out = std::move(*known);
      if (known || dict == nullptr) return known ? "" : "#sdy.sharding";
    }
    std::string expected;
    if constexpr (MlirRecordStruct<T>) {
      auto read = [&](const auto& row) {
        const AttrValue* field = Find(record->fields, row.facts.name);
        if (field == nullptr || !expected.empty()) return;
        expected = DecodeAttr(*field, row.value.field(out));
        if (!expected.empty()) expected += " as " + std::string(row.facts.name);
      };
      if (record != nullptr)
        std::apply([&](const auto&... row) { (read(row), ...); },
                   mlir_table::RecordFields<T>::Rows());
      if (record != nullptr) return expected;
    }
    if (dict == nullptr) return "a dictionary";
    expected = DecodeFields(*dict, out);
    return expected.empty() ? expected : "another " + expected;
  }
}

template <typename T>
std::string DecodeFields(const AttrDict& dict, T& out) {
  for (const AttrEntry& entry : dict) {
    bool read = false;
    auto try_field = [&](auto field) {
      if (entry.name == field.name) read = DecodeAttr(entry.value, out.*field.member).empty();
    };
    std::apply([&](auto... field) { (try_field(field), ...); }, PlainFields<T>::Get());
    if (!read) return entry.name;
  }
  return {};
}

}  // namespace tokamak
