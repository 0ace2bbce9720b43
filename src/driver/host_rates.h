#pragma once

#include <string>

#include "cost/calibrate.h"
#include "cost/rates.h"
#include "runtime/device.h"
#include "support/result.h"

namespace tokamak {

// The processor, as the system names it: "GenuineIntel 6/143 Intel(R) Xeon(R) Processor".
const CpuFacts& HostFacts();

// The machine file for this process's machine: the user's own in the cache folder (`tokamak
// calibrate` writes it there), else the one that was shipped for this processor and as many cores
// (the nearest number), else that of its kin (rates.h), else the default. Read once.
const Rates& HostRates();
// From here on this machine is priced as one that no file names, with two cores: for tests, whose
// plans are to be the same everywhere. Before anything is compiled.
void PriceAsUnknown();
bool IsPricedAsUnknown();
// The shipped one for GPUs.
const Rates& GpuRates();
// Of a GPU that is there: its own machine file, else the shipped one scaled by what the GPU says of
// itself. Read once for each kind of GPU.
const Rates& RatesOfGpu(const DeviceInfo& gpu);
// The same without the file, for tests.
Rates ScaledRates(const Rates& measured, const DeviceInfo& gpu);

// Keeps a machine file as this user's own, for processes to come; false when there is no folder for
// it.
bool KeepHostRates(const Rates& rates);

}  // namespace tokamak
