#pragma once

#include "ir/ir.h"
#include "rewrite/editor.h"

namespace tokamak {

// Where the windows of a scatter begin, as arrays of numbers, one a window.
class WindowPlaces {
 public:
  // Makes instructions in the place of the scatter.
  WindowPlaces(Instr& scatter, Editor& make);

  int64_t count() const { return count_; }  // of windows
  // The dimensions of the array that windows move along, in order, and how many places there are.
  const Dims& moved() const { return moved_; }
  Dims PlacesAlong() const;
  // Elements of a window along a dimension of the array.
  int64_t Extent(int64_t dimension) const { return extent_[static_cast<size_t>(dimension)]; }

  // The sum of a window's indices, each times the stride of its dimension in `strides` (those of
  // all dimensions of the array); `outside` where the window does not fit. s32, or s64 where the
  // indices need that.
  Instr* Sum(const Dims& strides, int64_t outside);

 private:
  Instr* Number(int64_t value);
  Instr* Component(size_t k);
  Instr* Batch(int64_t of_indices);
  Instr* Compared(Instr* x, Instr* y);
  Shape Line() const { return Shape::Array(type_, {count_}); }

  Instr& scatter_;
  const ScatterAttrs attrs_;
  Editor& make_;
  Instr* indices_;
  int64_t count_ = 1;
  ElementType type_;
  Dims moved_, extent_;
};

// Whether some window may meet a part of another one: windows of several elements begin anywhere
// along their dimension.
bool WindowsShift(const Instr& scatter);
// Elements of a window along each dimension of the array.
Dims WindowExtent(const Instr& scatter);

// The array as one of these dimensions.
Instr* Reshaped(Editor& make, Instr* x, const Dims& dims);

}  // namespace tokamak
