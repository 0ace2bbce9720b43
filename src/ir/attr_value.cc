#include "ir/attr_value.h"

#include <algorithm>
#include <bit>

namespace tokamak {

AttrValue::AttrValue() = default;
AttrValue::AttrValue(const AttrValue&) = default;
AttrValue::AttrValue(AttrValue&&) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue&) = default;
AttrValue& AttrValue::operator=(AttrValue&&) noexcept = default;
AttrValue::~AttrValue() = default;

bool FloatAttr::operator==(const FloatAttr& other) const {
  return type == other.type &&
         std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(other.value);
}

bool RecordAttr::operator==(const RecordAttr& other) const {
  return kind == other.kind && fields == other.fields;
}
bool AttrValue::operator==(const AttrValue& other) const {
  return value == other.value;
}

namespace {

auto LowerBound(auto& dict, std::string_view name) {
  return std::lower_bound(
      dict.begin(), dict.end(), name,
      [](const AttrEntry& entry, std::string_view n) { return entry.name.compare(n) < 0; });
}

struct HashVisitor {
  Hasher& hasher;
  void operator()(const UnitAttr&) {}
  void operator()(bool value) { hasher.Add(value ? 1 : 0); }
  void operator()(const IntAttr& a) {
    hasher.Add(a.value);
    hasher.Add(std::string_view(a.type));
  }
  void operator()(const FloatAttr& a) {
    hasher.Add(a.value);
    hasher.Add(a.type);
  }
  void operator()(const std::string& text) { hasher.Add(std::string_view(text)); }
  void operator()(const SymbolAttr& a) { hasher.Add(std::string_view(a.name)); }
  void operator()(const Shape& shape) { hasher.Add(shape.Hash()); }
  void operator()(const Literal& literal) { hasher.Add(literal.Hash()); }
  void operator()(const AttrList& list) {
    hasher.Add(list.size());
    for (const AttrValue& v : list) hasher.Add(HashOf(v));
  }
  void operator()(const AttrDict& dict) { hasher.Add(HashOf(dict)); }
  void operator()(const DenseArrayAttr& a) {
    hasher.Add(std::string_view(a.type));
    for (int64_t v : a.ints) hasher.Add(v);
    for (double v : a.floats) hasher.Add(v);
  }
  void operator()(const EnumAttr& a) {
    hasher.Add(std::string_view(a.kind));
    hasher.Add(std::string_view(a.value));
  }
  void operator()(const RecordAttr& a) {
    hasher.Add(std::string_view(a.kind));
    hasher.Add(HashOf(a.fields));
  }
};

}  // namespace

const AttrValue* Find(const AttrDict& dict, std::string_view name) {
  auto it = LowerBound(dict, name);
  return it != dict.end() && it->name == name ? &it->value : nullptr;
}

void Set(AttrDict& dict, std::string name, AttrValue value) {
  auto it = LowerBound(dict, name);
  if (it != dict.end() && it->name == name) {
    it->value = std::move(value);
  } else {
    dict.insert(it, AttrEntry{std::move(name), std::move(value)});
  }
}

uint64_t HashOf(const AttrValue& value) {
  Hasher hasher;
  hasher.Add(value.value.index());
  std::visit(HashVisitor{hasher}, value.value);
  return hasher.digest();
}

uint64_t HashOf(const AttrDict& dict) {
  Hasher hasher;
  for (const AttrEntry& entry : dict) {
    hasher.Add(std::string_view(entry.name));
    hasher.Add(HashOf(entry.value));
  }
  return hasher.digest();
}

}  // namespace tokamak
