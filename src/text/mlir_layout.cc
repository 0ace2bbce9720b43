#include "text/mlir_layout.h"

namespace tokamak {
namespace {

AttrValue LayoutInts(const Dims& values) {
  return {DenseArrayAttr{.type = "i64", .ints = values, .floats = {}}};
}

bool HasLayout(const Shape& shape) {
  if (shape.layout() != nullptr) return true;
  for (const Shape& element : shape.elements())
    if (HasLayout(element)) return true;
  return false;
}

void SetInt(AttrDict& dict, const char* name, int64_t value, int64_t absent) {
  if (value != absent) Set(dict, name, {IntAttr{.value = value}});
}

void SetType(AttrDict& dict, const char* name, const std::optional<ElementType>& type) {
  if (type) Set(dict, name, {std::string(HloName(*type))});
}

AttrDict ToDict(const Layout& layout) {
  AttrDict dict;
  Set(dict, "minor_to_major", LayoutInts(layout.minor_to_major));
  AttrList tiles, splits;
  for (const Dims& tile : layout.tiles) tiles.push_back(LayoutInts(tile));
  if (!tiles.empty()) Set(dict, "tiles", {std::move(tiles)});
  if (!layout.dim_level_types.empty())
    Set(dict, "level_types",
        {std::string(layout.dim_level_types.begin(), layout.dim_level_types.end())});
  SetInt(dict, "tail_padding", layout.tail_padding_alignment, 1);
  SetType(dict, "index_type", layout.index_type);
  SetType(dict, "pointer_type", layout.pointer_type);
  SetInt(dict, "element_bits", layout.element_size_in_bits, 0);
  SetInt(dict, "memory_space", layout.memory_space, 0);
  for (const auto& [dimension, indices] : layout.split_configs) {
    Dims row{dimension};
    row.insert(row.end(), indices.begin(), indices.end());
    splits.push_back(LayoutInts(row));
  }
  if (!splits.empty()) Set(dict, "splits", {std::move(splits)});
  SetInt(dict, "dynamic_prefix", layout.dynamic_prefix_bytes, 0);
  return dict;
}

bool ReadInts(const AttrValue& value, Dims& out) {
  const auto* array = value.As<DenseArrayAttr>();
  if (array != nullptr) out = array->ints;
  return array != nullptr;
}

bool ReadLists(const AttrValue& value, std::vector<Dims>& out) {
  const auto* list = value.As<AttrList>();
  if (list == nullptr) return false;
  for (const AttrValue& item : *list)
    if (!ReadInts(item, out.emplace_back())) return false;
  return true;
}

bool ReadInt(const AttrValue& value, int64_t& out) {
  const auto* number = value.As<IntAttr>();
  if (number != nullptr) out = number->value;
  return number != nullptr;
}

bool ReadType(const AttrValue& value, std::optional<ElementType>& out) {
  const auto* text = value.As<std::string>();
  if (text != nullptr) out = ElementTypeFromHlo(*text);
  return out.has_value();
}

bool ReadSplits(const AttrValue& value, Layout& layout) {
  std::vector<Dims> rows;
  if (!ReadLists(value, rows)) return false;
  for (const Dims& row : rows) {
    if (row.empty()) return false;
    layout.split_configs.emplace_back(row[0], Dims(row.begin() + 1, row.end()));
  }
  return true;
}

bool ReadField(const AttrEntry& field, Layout& layout) {
  const AttrValue& value = field.value;
  if (field.name == "minor_to_major") return ReadInts(value, layout.minor_to_major);
  if (field.name == "tiles") return ReadLists(value, layout.tiles);
  if (field.name == "tail_padding") return ReadInt(value, layout.tail_padding_alignment);
  if (field.name == "index_type") return ReadType(value, layout.index_type);
  if (field.name == "pointer_type") return ReadType(value, layout.pointer_type);
  if (field.name == "element_bits") return ReadInt(value, layout.element_size_in_bits);
  if (field.name == "memory_space") return ReadInt(value, layout.memory_space);
  if (field.name == "dynamic_prefix") return ReadInt(value, layout.dynamic_prefix_bytes);
  if (field.name == "splits") return ReadSplits(value, layout);
  const auto* text = value.As<std::string>();
  if (field.name != "level_types" || text == nullptr) return false;
  layout.dim_level_types.assign(text->begin(), text->end());
  return true;
}

}  // namespace

std::optional<AttrValue> LayoutToAttr(const Shape& shape) {
  if (!HasLayout(shape)) return std::nullopt;
  if (shape.layout() != nullptr) return AttrValue{ToDict(*shape.layout())};
  AttrList list;
  for (const Shape& element : shape.elements()) {
    std::optional<AttrValue> inner = LayoutToAttr(element);
    list.push_back(inner ? std::move(*inner) : AttrValue{UnitAttr{}});
  }
  return AttrValue{std::move(list)};
}

std::optional<Shape> WithLayoutAttr(const Shape& shape, const AttrValue& layout) {
  if (layout.As<UnitAttr>() != nullptr) return shape;
  if (const auto* dict = layout.As<AttrDict>()) {
    if (!shape.IsArray()) return std::nullopt;
    Layout read;
    for (const AttrEntry& field : *dict)
      if (!ReadField(field, read)) return std::nullopt;
    return shape.WithLayout(std::move(read));
  }
  const auto* list = layout.As<AttrList>();
  if (list == nullptr || list->size() != shape.elements().size()) return std::nullopt;
  std::vector<Shape> elements;
  for (size_t i = 0; i < list->size(); ++i) {
    std::optional<Shape> element = WithLayoutAttr(shape.elements()[i], (*list)[i]);
    if (!element) return std::nullopt;
    elements.push_back(std::move(*element));
  }
  if (shape.IsTuple()) return Shape::Tuple(std::move(elements));
  if (shape.kind() == ShapeKind::kFuture) return Shape::Future(std::move(elements));
  if (shape.kind() == ShapeKind::kBuffer) return Shape::Buffer(elements[0]);
  return std::nullopt;
}

AttrValue ShapeToAttr(const Shape& shape) {
  std::optional<AttrValue> layout = LayoutToAttr(shape);
  if (!layout) return {shape};
  AttrDict dict;
  Set(dict, "type", {shape.WithoutLayout()});
  Set(dict, "layout", std::move(*layout));
  return {std::move(dict)};
}

std::optional<Shape> ShapeFromAttr(const AttrValue& value) {
  if (const auto* shape = value.As<Shape>()) return *shape;
  const auto* dict = value.As<AttrDict>();
  const AttrValue* type = dict == nullptr ? nullptr : Find(*dict, "type");
  const AttrValue* layout = dict == nullptr ? nullptr : Find(*dict, "layout");
  const auto* shape = type == nullptr ? nullptr : type->As<Shape>();
  if (shape == nullptr || layout == nullptr) return std::nullopt;
  return WithLayoutAttr(*shape, *layout);
}

}  // namespace tokamak
