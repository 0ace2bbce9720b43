#pragma once

#include <string>
#include <string_view>

#include "ir/shape.h"
#include "text/hlo_names.h"

namespace tokamak {

class HloCursor;

// Reads shapes: f32[2,<=3,?]{1,0,2:T(8,128)S(1)}, (f32[2], token[]), b(s32[4]).
// For what HLO lacks: future(...), f32[*] (not even the rank is known), and
//   s8[2]!quant(f32, -128, 127, axis=0, {0.5:3, 0.25:-1})
// Equal texts give one shared Shape: most shapes of a program stand in it many
// times, and then reading one costs a hash.
class HloShapeReader {
 public:
  // Whether a shape stands next, as opposed to the name of an op.
  static bool IsNext(HloCursor& cursor);
  bool Read(HloCursor& cursor, Shape& shape);

 private:
  bool ReadNew(HloCursor& cursor, Shape& shape);

  // The keys are windows into the text that is read.
  NameTable<Shape> cache_;
};

// The text that HloShapeReader reads back to an equal shape.
void AppendShape(std::string& out, const Shape& shape);

}  // namespace tokamak
