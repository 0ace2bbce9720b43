#pragma once

#include <memory>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// The normal form of a program removes everything that StableHLO, VHLO and HLO spell differently.
// Calls are inlined; tuples inside are eliminated; equal values are merged and dead ones removed.
// Constants are folded; functions that JAX expands are expanded (expand). Loops carry only the
// values they need, in a canonical order. Layouts, names, shardings and origins are dropped. It
// serves to compare programs and as a cache key. It is not the program that is compiled.
//
// Two modules whose normal forms have equal structural hashes compute the same values, with two
// exceptions: the sign of a zero (x + 0 becomes x, as in XLA's importer) and the rounding of a
// function that one module names and the other expands. Checks, probes and prints are kept in
// order.
//
// Time and memory are linear in the size after inlining all calls, times at most four for each loop
// around an instruction. Returns an error if inlining would grow the module by a factor of several
// hundred.
Result<std::unique_ptr<Module>> NormalForm(const Module& module);

}  // namespace tokamak
