#include "interp/dot_operand.h"

#include <cmath>

namespace tokamak {

double KeepComponents(double value, const std::string& type, int64_t components) {
  std::optional<ElementType> element = ElementTypeFromMlir(type);
  bool tf32 = type == "tf32";
  if (!tf32 && (!element || !IsReal(*element))) return value;
  if (!std::isfinite(value)) return value;
  double kept = 0, rest = value;
  for (int64_t i = 0; i < components; ++i) {
    double part = 0;
    if (tf32) {
      int exponent = 0;
      double fraction = std::frexp(rest, &exponent);
      part = std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
    } else {
      part = RoundToType(*element, rest);
    }
    kept += part;
    rest -= part;
    if (!std::isfinite(kept)) break;
  }
  return kept;
}

}  // namespace tokamak
