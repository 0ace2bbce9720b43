#pragma once

#include "explain/decision.h"
#include "fusion/draft.h"
#include "fusion/pins.h"
#include "fusion/pricer.h"

namespace tokamak {

// Changes a draft so that pins hold: what is to be apart is stored on the way in and out, what is
// to be together is one kernel where a generator takes it. The draft keeps them from here on. What
// cannot be had is a record of fusion.pin.
void HoldPins(Draft& draft, Pricer& pricer, const Pins* pins, DecisionLog& log);

// Why a change would break a pin of the draft that holds; "" when it breaks none. `regions`: those
// that the change leads to.
std::string WhyPinned(const Draft& draft, const Change& change, const std::vector<Region>& regions);

}  // namespace tokamak
