#pragma once

#include "ir/ir.h"
#include "rewrite/editor.h"

namespace tokamak {

// The start indices of the windows of a scatter, as arrays with one number per window.
class WindowStarts {
 public:
  // Creates instructions at the position of the scatter.
  WindowStarts(Instr& scatter, Editor& make);

  int64_t count() const { return count_; }  // number of windows
  // The dimensions of the array that windows move along, in order, and the number of start
  // positions along each.
  const Dims& moved() const { return moved_; }
  Dims StartsAlong() const;
  // Size of a window along a dimension of the array.
  int64_t Extent(int64_t dimension) const { return extent_[static_cast<size_t>(dimension)]; }

  // The sum over dimensions of a window's start index times `strides` (one per dimension of the
  // array); `outside` if the window is out of bounds. s32, or s64 if the indices require it.
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

// Whether windows may overlap partially: windows of several elements start at arbitrary positions
// along their dimension.
bool WindowsMayPartlyOverlap(const Instr& scatter);
// The size of a window along each dimension of the array.
Dims WindowExtent(const Instr& scatter);

}  // namespace tokamak
