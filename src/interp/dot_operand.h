#pragma once

#include "interp/context.h"
#include "interp/results.h"
#include "interp/value.h"
#include "ir/attrs.h"

namespace tokamak {

// What a dot algorithm keeps of a number: the sum of `components` parts, each
// rounded to `type` (an MLIR name; "tf32" has ten mantissa bits).
double KeepComponents(double value, const std::string& type, int64_t components);

// The elements of an operand as the dot sees them.
template <typename T>
std::vector<T> DotOperand(const Value& operand, const DotAttrs& attrs, bool is_lhs) {
  std::vector<T> elements = ElementsAs<T>(operand);
  if constexpr (std::is_same_v<T, double>) {
    if (attrs.algorithm) {
      const DotAlgorithm& a = *attrs.algorithm;
      for (double& e : elements) {
        e = KeepComponents(e, is_lhs ? a.lhs_type : a.rhs_type,
                           is_lhs ? a.lhs_components : a.rhs_components);
      }
    }
  }
  return elements;
}

// A dot algorithm may accumulate in a type that is narrower than the result.
template <typename T>
void RoundToAccumulator(std::vector<T>& sums, const DotAttrs& attrs, const Context& context) {
  if constexpr (std::is_same_v<T, double>) {
    if (!attrs.algorithm) return;
    std::optional<ElementType> type = ElementTypeFromMlir(attrs.algorithm->accumulation_type);
    if (!type || !IsReal(*type)) return;
    for (double& sum : sums) sum = context.Round(*type, sum);
  }
}

}  // namespace tokamak
