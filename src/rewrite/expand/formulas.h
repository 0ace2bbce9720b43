#pragma once

// The formulas of ExpandAsJax by family: one function per op.

#include "rewrite/expand/term.h"

namespace tokamak {

// ---- elementary.cc: real numbers
Term ExpandAcos(Term x);
Term ExpandAcosh(Term x);
Term ExpandAsin(Term x);
Term ExpandAsinh(Term x);
Term ExpandAtan(Term x);
Term ExpandAtanh(Term x);
Term ExpandCosh(Term x);
Term ExpandSinh(Term x);
Term ExpandSquare(Term x);
Term ExpandIsInf(Term x);
Term ExpandIsPosInf(Term x);
Term ExpandIsNegInf(Term x);
Term ExpandNextAfter(Term from, Term to);

// ---- error_function.cc: real numbers, f32 or f64
Term ExpandErfc(Term x);
Term ExpandErfInv(Term x);

// ---- bessel.cc: real numbers, f32 or f64
Term ExpandBesselI1e(Term x);

// ---- gamma.cc: real numbers, f32 or f64
Term ExpandLgamma(Term x);
Term ExpandDigamma(Term x);
Term ExpandZeta(Term x, Term q);
Term ExpandPolygamma(Term n, Term x);

// ---- complex.cc
Term ExpandComplexCosh(Term z);
Term ExpandComplexSinh(Term z);
Term ExpandComplexExp(Term z);
Term ExpandComplexLog(Term z);
Term ExpandComplexLog1p(Term z);
Term ExpandComplexSqrt(Term z);
Term ExpandComplexSquare(Term z);
Term ExpandComplexConj(Term z);
// sqrt(x^2 + y^2) for nonnegative x and y.
Term Hypotenuse(Term x, Term y);

// ---- complex_inverse.cc
Term ExpandComplexAcos(Term z);
Term ExpandComplexAcosh(Term z);
Term ExpandComplexAsin(Term z);
Term ExpandComplexAsinh(Term z);
Term ExpandComplexAtan(Term z);
Term ExpandComplexAtanh(Term z);

}  // namespace tokamak
