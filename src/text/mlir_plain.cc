#include "text/mlir_plain.h"

#include "ir/visit_attrs.h"
#include "text/mlir_layout.h"

namespace tokamak {
namespace {

// Structs of ir/sharding.h have no Fields() member.
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
concept IsRecord = requires {
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

template <typename T>
AttrDict DictOf(const T& record);

template <typename T>
AttrValue ToValue(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return {value};
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return {IntAttr{.value = value}};
  } else if constexpr (std::is_same_v<T, double>) {
    return {FloatAttr{value, ElementType::kF64}};
  } else if constexpr (std::is_same_v<T, ShardingKind>) {
    return {IntAttr{.value = static_cast<int64_t>(value)}};
  } else if constexpr (std::is_enum_v<T>) {
    return {std::string(TextOf(value))};
  } else if constexpr (std::is_same_v<T, Dims>) {
    return {DenseArrayAttr{.type = "i64", .ints = value, .floats = {}}};
  } else if constexpr (kIsOptional<T>) {
    return ToValue(*value);
  } else if constexpr (std::is_same_v<T, AttrDict>) {
    return {value};
  } else if constexpr (kIsVector<T>) {
    AttrList list;
    for (const auto& item : value) list.push_back(ToValue(item));
    return {std::move(list)};
  } else if constexpr (IsRecord<T>) {
    return {DictOf(value)};
  } else if constexpr (std::is_same_v<T, Shape>) {
    return ShapeToAttr(value);
  } else {
    return {value};  // string, Literal
  }
}

template <typename T>
AttrDict DictOf(const T& record) {
  AttrDict dict;
  const T plain{};
  auto add = [&](auto field) {
    const auto& value = record.*field.member;
    if (!(value == plain.*field.member)) Set(dict, std::string(field.name), ToValue(value));
  };
  std::apply([&](auto... field) { (add(field), ...); }, PlainFields<T>::Get());
  return dict;
}

template <typename T>
std::string FillFrom(const AttrDict& dict, T& record);

// A tuple constant is a list of the constants of its elements.
bool LiteralFrom(const AttrValue& value, Literal& out) {
  if (const auto* literal = value.As<Literal>()) {
    out = *literal;
    return true;
  }
  const auto* list = value.As<AttrList>();
  if (list == nullptr) return false;
  std::vector<Literal> elements;
  for (const AttrValue& item : *list)
    if (!LiteralFrom(item, elements.emplace_back())) return false;
  out = Literal::Tuple(std::move(elements));
  return true;
}

template <typename T>
bool FromValue(const AttrValue& value, T& out) {
  if constexpr (std::is_same_v<T, int64_t>) {
    const auto* number = value.As<IntAttr>();
    if (number != nullptr) out = number->value;
    return number != nullptr;
  } else if constexpr (std::is_same_v<T, double>) {
    const auto* number = value.As<FloatAttr>();
    if (number != nullptr) out = number->value;
    return number != nullptr;
  } else if constexpr (std::is_same_v<T, ShardingKind>) {
    const auto* number = value.As<IntAttr>();
    if (number == nullptr || number->value < 0 ||
        number->value > static_cast<int64_t>(ShardingKind::kTuple))
      return false;
    out = static_cast<ShardingKind>(number->value);
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    const auto* text = value.As<std::string>();
    std::optional<T> known;
    if (text != nullptr) known = EnumFromText<T>(*text);
    if (known) out = *known;
    return known.has_value();
  } else if constexpr (std::is_same_v<T, Dims>) {
    const auto* array = value.As<DenseArrayAttr>();
    if (array != nullptr) out = array->ints;
    return array != nullptr;
  } else if constexpr (kIsOptional<T>) {
    return FromValue(value, out.emplace());
  } else if constexpr (kIsVector<T> && !std::is_same_v<T, AttrDict>) {
    const auto* list = value.As<AttrList>();
    if (list == nullptr) return false;
    for (const AttrValue& item : *list)
      if (!FromValue(item, out.emplace_back())) return false;
    return true;
  } else if constexpr (std::is_same_v<T, Shape>) {
    std::optional<Shape> shape = ShapeFromAttr(value);
    if (shape) out = std::move(*shape);
    return shape.has_value();
  } else if constexpr (std::is_same_v<T, Literal>) {
    return LiteralFrom(value, out);
  } else if constexpr (IsRecord<T>) {
    const auto* dict = value.As<AttrDict>();
    return dict != nullptr && FillFrom(*dict, out).empty();
  } else {
    const auto* same = value.As<T>();  // bool, string, AttrDict
    if (same != nullptr) out = *same;
    return same != nullptr;
  }
}

template <typename T>
std::string FillFrom(const AttrDict& dict, T& record) {
  for (const AttrEntry& entry : dict) {
    bool read = false;
    auto try_field = [&](auto field) {
      if (entry.name == field.name) read = FromValue(entry.value, record.*field.member);
    };
    std::apply([&](auto... field) { (try_field(field), ...); }, PlainFields<T>::Get());
    if (!read) return entry.name;
  }
  return {};
}

}  // namespace

AttrDict ToPlainDict(Op op, const Attrs& attrs) {
  return VisitAttrs(op, attrs, [](const auto& record) { return DictOf(record); });
}

std::string FromPlainDict(Op op, const AttrDict& dict, Attrs& attrs) {
  return VisitAttrs(op, Attrs{}, [&]<typename A>(const A&) {
    A record;
    std::string problem = FillFrom(dict, record);
    attrs = Attrs(std::move(record));
    return problem;
  });
}

AttrValue ToPlainAttr(const Sharding& sharding) {
  return {DictOf(sharding)};
}

std::optional<Sharding> PlainSharding(const AttrValue& value) {
  Sharding sharding;
  if (!FromValue(value, sharding)) return std::nullopt;
  return sharding;
}

}  // namespace tokamak
