#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"

namespace tokamak {

// Compares a program on this CPU and on a GPU, with and without the transfer of its arguments and
// results.
struct DeviceComparison {
  Totals host, gpu;
  int64_t transferred = 0;  // bytes, in both directions
  double transfer_us = 0;
  std::string link;  // source of the link's rates
  // Factor by which all arrays would have to grow (or shrink) for the other device to be faster,
  // with the work of all kernels scaled. Unset if not at any size that was tried.
  std::optional<double> break_even_with_transfers, break_even_without;
  // The first dimension shared by more than half of the arguments, used in messages; 0 if none.
  int64_t batch = 0;
};

DeviceComparison CompareDevices(const Module& module, const CompileReport& host,
                                const CompileReport& gpu);
std::string TextOf(const DeviceComparison& comparison);
nlohmann::json JsonOf(const DeviceComparison& comparison);

}  // namespace tokamak
