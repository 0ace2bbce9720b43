#pragma once

#include "explain/decision.h"
#include "fusion/draft.h"
#include "fusion/pricer.h"

namespace tokamak {

// Bytes of temporary arrays that a draft takes at most, in the order in which lowering puts its
// kernels.
int64_t PeakOf(const Draft& draft);
// Whether that is at most so many bytes.
bool FitsMemory(const Draft& draft, int64_t limit);

// Makes moves until the temporary arrays of a draft fit into so many bytes, whatever they cost: of
// what is alive where there is most of all, less is stored, or later. Each is a record; and so it
// is when no move is left and they still do not fit.
void FitMemory(Draft& draft, Pricer& pricer, int64_t limit, DecisionLog& log);

}  // namespace tokamak
