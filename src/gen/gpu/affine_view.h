#pragma once

#include <vector>

#include "gen/region.h"

// Where the elements of a dot's operand are in memory, if each coordinate in an array is an affine
// function of the operand's coordinates: windows of a convolution, strided slices, padding with
// zeros, reversed dimensions. The bulk copy engine reads such operands without a copy.

namespace tokamak::gpu {

struct AffineView {
  struct Term {
    size_t dim = 0;  // of the operand
    int64_t factor = 1;
  };
  // The coordinate is start + sum(factor * coordinate of the operand). Outside of [0, size) the
  // operand is zero.
  struct Dimension {
    int64_t size = 1, stride = 1;  // elements
    int64_t start = 0;
    std::vector<Term> terms;
  };
  const Instr* array = nullptr;  // null: not in memory in this form
  std::vector<Dimension> dimensions;

  // Whether lines of the operand are adjacent in the array, as the bulk copy engine reads them.
  bool HasLines() const;
};

// The operand as a view of an input of the region.
AffineView AffineViewOf(const FusedRegion& region, const Instr& operand);
// The operand as a view of the first instruction that does not only move elements this way.
AffineView AffineViewOf(const Instr& operand);
// Whether that view takes windows, strides or padding, so that a library would need a copy of the
// operand.
bool IsWindowed(const Instr& operand);

}  // namespace tokamak::gpu
