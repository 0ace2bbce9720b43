#pragma once

#include "kernel/kernel.h"

namespace tokamak {

// Asynchronous work (sm_90a): whether a kernel, or statements, have mbarriers, bulk copies or
// asynchronous multiplies. Such a kernel has a launch of its own: its barriers and its register
// limits concern whole thread blocks.
bool UsesAsync(const Kernel& kernel);
bool UsesAsync(const StmtList& block);
// Whether threads that run these statements wait at mbarriers for others that run them.
bool TakesTurns(const StmtList& block);

}  // namespace tokamak
