#pragma once

#include <optional>

#include "gen/reducer.h"

namespace tokamak {

// A sum of exp(x - broadcast(shift)) along rows, where a maximum of the same rows leads to the
// shift: what keeps it from overflowing. For any m of a row the sum is
//
//   exp(m - shift) times the sum of exp(x - m)
//
// so that parts of a row may be summed up before the row's maximum is known, each with its own.
struct ShiftedSum {
  const Instr *exponential = nullptr, *x = nullptr, *shift = nullptr;
};

// Nothing, where a reduction is no such sum. `greatest`: the reduction that finds the maximum.
std::optional<ShiftedSum> ShiftedSumOf(const Reducer& sum, const Reducer& greatest);

}  // namespace tokamak
