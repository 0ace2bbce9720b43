#include "kernel/formulas/functions.h"

namespace tokamak::formulas {

std::optional<Element> ComplexOp(Op, std::span<const Element>) {
  return std::nullopt;
}

}  // namespace tokamak::formulas
