#pragma once

#include <complex>
#include <vector>

#include "formulas/columns.h"
#include "ir/element_type.h"
#include "ir/op.h"

namespace tokamak {

// How near a formula must come.
struct Tolerance {
  bool exact = true;  // the law's bits
  double ulps = 0;
  bool of_one = false;  // ulps of max(|f|, 1)
};
Tolerance ToleranceOf(Op op, ElementType type, ElementType from);
// How many random rows a case gets: few where the interpreter takes long.
size_t CountFor(Op op, ElementType from);

// What a function is, with more bits than a double where it can be.
struct Exact {
  long double part[2] = {0, 0};
  bool is_complex = false;
};
Exact ExactOf(double x);
Exact ExactOf(std::complex<double> z);
// Replaces the value of row i by a more exact one for f64 arguments, where <cmath> has one.
void Refine(Op op, const std::vector<ElementType>& operands, const std::vector<Column>& columns,
            size_t row, Exact& exact);

// Rows whose result is not judged: a power with an angle of more turns than its bits can tell, and
// what the definition says of digamma.
bool IsBeyondSense(Op op, const std::vector<ElementType>& operands,
                   const std::vector<Column>& columns, size_t row, const Exact& exact);

// The error in units of the last place. Infinite where one is NaN, infinite or zero and the other
// is not, or signs of zeros differ.
double UlpsOff(ElementType part, const double* got, const Exact& exact, const Tolerance& tolerance);

}  // namespace tokamak
