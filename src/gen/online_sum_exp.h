#pragma once

#include <optional>

#include "gen/reducer.h"

// Online softmax: row maximum and sum of exponentials in one pass over the row.

namespace tokamak {

// A sum of exp(x - broadcast(shift)) along rows, where `shift` derives from the maximum of the same
// rows and prevents overflow. For any m the sum equals
//
//   exp(m - shift) * sum of exp(x - m)
//
// so chunks of a row can be summed before the row's maximum is known, each with its own m.
struct OnlineSumExp {
  const Instr *exponential = nullptr, *x = nullptr, *shift = nullptr;
};

// Returns nullopt if `sum` does not have this form. `max_reducer`: the reduction that computes the
// row maximum. The logarithm of a log-sum-exp is ordinary elementwise code.
std::optional<OnlineSumExp> OnlineSumExpOf(const Reducer& sum, const Reducer& max_reducer);

}  // namespace tokamak
