#pragma once

#include <optional>
#include <string>

#include "gen/generator.h"

namespace tokamak {

// A scan: arrays seen as [outer, length, inner], of which it goes along the length.
struct Scan {
  const Instr* instr = nullptr;
  const Computation* body = nullptr;
  size_t inputs = 0, outputs = 0, carries = 0;
  size_t along = 0;
  bool is_reverse = false;
  Dims dims, part;  // of inputs and outputs; of carries
  int64_t outer = 1, length = 1, inner = 1;

  // Rows side by side are worth a vector; else elements are computed one by one, on CPUs.
  bool InVectors(const Machine& machine) const { return inner >= 4 || machine.is_gpu(); }
};

// Why a scan has no kernel, in words; nothing when it has one.
std::optional<std::string> WhyNoScan(const Instr& instr);
// Only of those that have one.
Scan ScanOf(const Instr& instr);

// The op of a scan that gives x0 op ... op xi for each i (`with_own`) or what comes before xi, and
// that may be taken apart: whatever the order of its operands, the op is the same.
struct Cumulation {
  Op op{};
  bool with_own = true;
};
std::optional<Cumulation> CumulationOf(const Instr& scan);

}  // namespace tokamak
