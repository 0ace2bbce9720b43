#pragma once

// Layouts of HLO in MLIR text: the attribute "tokamak.layout" of an op or an
// argument. An array's layout is a dictionary of the fields of Layout, a unit
// where it is row-major; a tuple's is a list.

#include <optional>

#include "ir/attr_value.h"

namespace tokamak {

// nullopt when nothing in `shape` has a layout.
std::optional<AttrValue> LayoutToAttr(const Shape& shape);
// nullopt when `layout` does not fit the shape.
std::optional<Shape> WithLayoutAttr(const Shape& shape, const AttrValue& layout);

// A shape as an attribute: its type, or {type = t, layout = ...}.
AttrValue ShapeToAttr(const Shape& shape);
std::optional<Shape> ShapeFromAttr(const AttrValue& value);

}  // namespace tokamak
