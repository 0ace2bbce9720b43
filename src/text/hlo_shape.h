#pragma once

#include <string>
#include <string_view>

#include "ir/shape.h"
#include "text/hlo_names.h"

namespace tokamak {

class HloCursor;

// Parses shapes: f32[2,<=3,?]{1,0,2:T(8,128)S(1)}, (f32[2], token[]), b(s32[4]). Extends HLO by
// future(...), f32[*] (unranked) and
//   s8[2]!quant(f32, -128, 127, axis=0, {0.5:3, 0.25:-1})
// Equal texts give one shared Shape: most shapes occur many times in a program, and parsing a
// repeated one costs a hash lookup.
class HloShapeReader {
 public:
  // Whether a shape comes next rather than the name of an op.
  static bool IsNext(HloCursor& cursor);
  bool Read(HloCursor& cursor, Shape& shape);

 private:
  bool ReadNew(HloCursor& cursor, Shape& shape);

  // The keys are views into the text being parsed.
  NameTable<Shape> cache_;
};

// Appends text that HloShapeReader parses to an equal shape.
void AppendShape(std::string& out, const Shape& shape);

}  // namespace tokamak
