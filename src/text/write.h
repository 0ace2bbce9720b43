#pragma once

#include <string>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Both writers print everything that equality (ir/compare.h) compares, so parsing the text gives an
// equal module. Names are made unique.

// HLO text, as XLA reads it wherever HLO has the op; a syntax of our own for ops that HLO lacks
// (checks, dynamic ops, quantized types).
std::string WriteHloText(const Module& module);

// StableHLO in MLIR's pretty form. HLO-only ops that no dialect has are printed in generic form
// under the dialect "tokamak" ("tokamak.fusion"), which our reader accepts.
std::string WriteStablehloText(const Module& module);

}  // namespace tokamak
