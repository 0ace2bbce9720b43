#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "support/result.h"

// Tiles and boxes of bulk copies in the simulator (TileCopy). Errors are texts that continue
// "thread 3 ...".

namespace tokamak {

// The tile at element `index` of `array`: inside of it, and aligned.
Status CheckTile(const Kernel& kernel, const TileCopy& copy, ArrayId array, int64_t index);
// The first coordinate of a box along dimension 0 of a tensor.
Status CheckBoxStart(const Array& tensor, int64_t at);

// The element of shared memory that holds element `element` of the tile at `index`.
inline int64_t TileElement(const TileCopy& copy, int64_t bytes, int64_t index, int64_t element) {
  int64_t at = index + element;
  return copy.swizzled ? SwizzledByte(at * bytes) / bytes : at;
}

// Calls body(element of the tile, whether it is inside of the tensor, element of the tensor) for
// the elements of the box at these coordinates, until it returns false; returns whether it did not.
template <typename Body>
bool ForBox(const TileCopy& copy, const std::vector<int64_t>& at, Body&& body) {
  std::vector<int64_t> in_box(copy.dimensions.size());
  for (int64_t element = 0; element < copy.Elements(); ++element) {
    int64_t of_tensor = 0;
    bool inside = true;
    for (size_t d = 0; d < in_box.size(); ++d) {
      int64_t index = at[d] + in_box[d] * copy.dimensions[d].step;
      inside = inside && index >= 0 && index < copy.dimensions[d].size;
      of_tensor += index * copy.dimensions[d].stride;
    }
    if (!body(element, inside, of_tensor)) return false;
    for (size_t d = 0; d < in_box.size(); ++d) {
      if (++in_box[d] < copy.dimensions[d].box) break;
      in_box[d] = 0;
    }
  }
  return true;
}

}  // namespace tokamak
