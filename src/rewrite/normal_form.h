#pragma once

#include <memory>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// The normal form of a program: what is left when everything that StableHLO,
// VHLO and HLO spell differently is spelled one way. Calls are inlined, tuples
// inside are gone, equal values are one, dead ones none, constants folded,
// functions that JAX writes out are written out (expand), loops carry only what they need in
// an order that does not depend on how they were written, and layouts, names, shardings and origins
// are dropped. It is for asking whether two programs are the same, and for cache keys; it is not
// what is compiled.
//
// Two modules whose normal forms have equal structural hashes compute the same,
// up to the sign of a zero (x + 0 is taken for x, as XLA's importer does) and
// to the rounding of a function that one names and the other writes out.
// Checks, probes and prints are kept, in order.
//
// Time and memory are linear in what calls unfold to, times at most four for
// each loop around an instruction. The error is for calls that unfold to
// hundreds of times the size of the module.
Result<std::unique_ptr<Module>> NormalForm(const Module& module);

}  // namespace tokamak
