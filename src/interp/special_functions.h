#pragma once

// Functions that <cmath> lacks, from series and recurrences in long double: slow, and accurate to a
// few units in the last place of a double.

namespace tokamak {

double ErfInv(double x);
double Digamma(double x);  // NaN at its poles
double Lgamma(double x);   // std::lgamma writes a global variable; this does not
// Hurwitz zeta: the sum of (q + k)^-s over k >= 0. NaN for s < 1; infinite at its poles. For q < 0
// it is defined for integer s.
double Zeta(double s, double q);
// The n-th derivative of digamma; NaN unless n is a natural number or 0.
double Polygamma(double n, double x);
double BesselI1e(double x);

}  // namespace tokamak
