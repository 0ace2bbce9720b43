#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"
#include "driver/account/account.h"
#include "explain/decision.h"

namespace tokamak {

// For each record of the account, what would have to be otherwise for a refusal to be a yes: the
// nearest such thing that follows from its numbers ("would fuse if it had one user, not 3"). "" for
// what was taken, and where nothing is known.
std::vector<std::string> CounterFacts(const ProgramAccount& account);

// Of a move that its price speaks against: microseconds before and after, and what a launch costs.
// It makes one kernel less than there were.
std::string WouldPayIf(double before, double after, double launch);

}  // namespace tokamak
