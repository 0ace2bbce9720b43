#pragma once

// Reference values and accuracy bounds of the scalar functions, for tok_formula_tests.

#include <complex>
#include <vector>

#include "formulas/columns.h"
#include "ir/element_type.h"
#include "ir/op.h"

namespace tokamak {

// The required accuracy of a formula.
struct Tolerance {
  bool exact = true;  // bit-equal to the reference interpreter
  double ulps = 0;
  bool of_one = false;  // ulps of max(|f|, 1)
};
Tolerance ToleranceOf(Op op, ElementType type, ElementType from);
// The number of random rows for a case: few if the interpreter is slow.
size_t CountFor(Op op, ElementType from);

// The exact value of a function, with more bits than a double where possible.
struct Exact {
  long double part[2] = {0, 0};
  bool is_complex = false;
};
Exact ExactOf(double x);
Exact ExactOf(std::complex<double> z);
// Replaces the value of row i by a more accurate one for f64 arguments, if <cmath> has one.
void Refine(Op op, const std::vector<ElementType>& operands, const std::vector<Column>& columns,
            size_t row, Exact& exact);

// Rows that are not checked: a complex power whose angle exceeds its precision, and arguments for
// which the reference definition of digamma is inaccurate.
bool IsBeyondSense(Op op, const std::vector<ElementType>& operands,
                   const std::vector<Column>& columns, size_t row, const Exact& exact);

// The error in units in the last place. Infinite if exactly one value is NaN, infinite or zero, or
// if signs of zeros differ.
double UlpsOff(ElementType part, const double* got, const Exact& exact, const Tolerance& tolerance);

}  // namespace tokamak
