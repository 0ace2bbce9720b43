#pragma once

#include <string>

#include "cost/calibrate.h"
#include "cost/rates.h"
#include "runtime/device.h"
#include "support/result.h"

// Selection of the machine file (cost model rates) for this host and its GPUs.

namespace tokamak {

// The processor as the system identifies it: "GenuineIntel 6/143 Intel(R) Xeon(R) Processor".
const CpuFacts& HostFacts();

// The machine file of this machine, read once. In order of preference: the user's own file in the
// cache folder (written by `tokamak calibrate`), the shipped file of this processor with the
// nearest core count, the shipped file of a compatible CPU (rates.h), the default.
const Rates& HostRates();
// Makes the cost model use the default machine file, with two cores, for reproducible plans in
// tests. Call before anything is compiled.
void UseDefaultRates();
bool UsesDefaultRates();
// The shipped machine file for GPUs.
const Rates& GpuRates();
// The rates of a present GPU: its machine file if one exists, otherwise the shipped file scaled by
// the GPU's device properties. Read once per GPU model.
const Rates& RatesOfGpu(const DeviceInfo& gpu);
// The scaled rates, ignoring machine files. For tests.
Rates ScaledRates(const Rates& measured, const DeviceInfo& gpu);

// Saves a machine file in the cache folder for later processes. Returns false if there is no cache
// folder.
bool KeepHostRates(const Rates& rates);

}  // namespace tokamak
