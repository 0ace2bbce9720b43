#pragma once

// HLO layouts in MLIR text: the attribute "tokamak.layout" of an op or argument. An array's layout
// is a dictionary of the fields of Layout, or a unit attribute if row-major; a tuple's is a list.

#include <optional>

#include "ir/attr_value.h"

namespace tokamak {

// Returns nullopt if nothing in `shape` has a layout.
std::optional<AttrValue> LayoutToAttr(const Shape& shape);
// Returns nullopt if `layout` does not fit the shape.
std::optional<Shape> WithLayoutAttr(const Shape& shape, const AttrValue& layout);

// A shape as an attribute: its type, or {type = t, layout = ...}.
AttrValue ShapeToAttr(const Shape& shape);
std::optional<Shape> ShapeFromAttr(const AttrValue& value);

}  // namespace tokamak
