#pragma once

#include <unordered_map>

#include "gen/element.h"
#include "gen/gpu/chain_tiling.h"

namespace tokamak::gpu {

// exp(x) to a few ulp near 0. The relative error grows with -x, to 5e-6 where the result vanishes:
// weights are rounded to 16 bits.
Scalar ShortExp(Scalar x);

// Tells the emitter where the elements of values in the kernel of a chain come from, as far as it
// is not from their ops: row factors are applied to the product (RunningChain). `shift`: that of
// the exponential, in use for the current row. `reciprocals`: of the divisors of quotients, as far
// as they are known (chain_vectors.h). Both must outlive the emitter.
void SetChainSources(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
                     const ChainRegion& found, const Scalar& shift,
                     const std::unordered_map<const Instr*, Scalar>& reciprocals);

}  // namespace tokamak::gpu
