#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/literal.h"
#include "ir/shape.h"

namespace tokamak {

struct AttrValue;
struct AttrEntry;

// Untyped attributes, which belong to the program rather than to an op: frontend attributes, a
// custom call's backend_config, a composite's attributes, attributes of arguments. Attributes that
// define an op's semantics are typed fields in attrs.h, never AttrValues.
using AttrDict = std::vector<AttrEntry>;  // sorted by name, names unique
using AttrList = std::vector<AttrValue>;

struct UnitAttr {
  bool operator==(const UnitAttr&) const = default;
};
struct IntAttr {
  int64_t value = 0;
  // "i32", "ui8", "index"; i1 values are bool instead.
  std::string type = "i64";
  bool operator==(const IntAttr&) const = default;
};
struct FloatAttr {
  double value = 0;
  ElementType type = ElementType::kF64;
  bool operator==(const FloatAttr& other) const;  // compares bits: NaN equals NaN, 0 differs from
                                                  // -0
};
struct SymbolAttr {
  std::string name;  // without '@'
  bool operator==(const SymbolAttr&) const = default;
};
// array<i64: 1, 2>; bools are 0 and 1.
struct DenseArrayAttr {
  std::string type;  // "i1", "i32", "i64", "f32", "f64" ...
  std::vector<int64_t> ints;
  std::vector<double> floats;  // used instead of ints if `type` is a float
  bool operator==(const DenseArrayAttr&) const = default;
};
// A dialect enum: #stablehlo<precision HIGH> is {"stablehlo.precision", "HIGH"}.
struct EnumAttr {
  std::string kind, value;
  bool operator==(const EnumAttr&) const = default;
};
// A dialect struct: #stablehlo.dot<lhs_batching_dimensions = [0]> is {"stablehlo.dot",
// {{"lhs_batching_dimensions", [0]}}}.
struct RecordAttr {
  std::string kind;
  AttrDict fields;
  bool operator==(const RecordAttr&) const;
};

struct AttrValue {
  using Value = std::variant<UnitAttr, bool, IntAttr, FloatAttr, std::string, SymbolAttr, Shape,
                             Literal, AttrList, AttrDict, DenseArrayAttr, EnumAttr, RecordAttr>;
  // Copying and destruction are compiled once, in attr_value.cc.
  AttrValue();
  template <typename T>
  requires std::is_constructible_v<Value, T&&> AttrValue(T&& v)
      : value(std::forward<T>(v)) {}  // NOLINT(google-explicit-constructor)
  AttrValue(const AttrValue&);
  AttrValue(AttrValue&&) noexcept;
  AttrValue& operator=(const AttrValue&);
  AttrValue& operator=(AttrValue&&) noexcept;
  ~AttrValue();

  Value value;
  bool operator==(const AttrValue&) const;

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&value);
  }
};

struct AttrEntry {
  std::string name;
  AttrValue value;
  bool operator==(const AttrEntry&) const = default;
};

// Null if absent.
const AttrValue* Find(const AttrDict& dict, std::string_view name);
// Adds or replaces.
void Set(AttrDict& dict, std::string name, AttrValue value);
uint64_t HashOf(const AttrValue& value);
uint64_t HashOf(const AttrDict& dict);

}  // namespace tokamak
