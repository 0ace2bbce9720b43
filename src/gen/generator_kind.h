#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tokamak {

// The loop nest that a region is lowered to. BuildRegion (generator.h) chooses the generator by
// kind and machine type; for some kinds it or the generator tries more special generators first.
enum class GeneratorKind : uint8_t {
  kLoop,  // elementwise: each element of the roots independently
  // Reductions over the minor dimensions, on CPUs also some strided ones, plus elementwise code:
  // row by row.
  kRows,
  // Reductions over any dimensions, usually those that kRows does not take, and dots that kContract
  // rejects: one vector lane per result.
  kColumns,
  kScatter,   // updates combined into an array in place
  kScan,      // a scan (carried values along one dimension) plus elementwise code
  kSort,      // lines (1-d slices along one dimension) sorted with any comparator
  kContract,  // a dot (contraction) with elementwise prologue and epilogue: tiled
};
std::string_view NameOf(GeneratorKind kind);
// nullopt if there is no generator of this name.
std::optional<GeneratorKind> GeneratorKindFromName(std::string_view name);

}  // namespace tokamak
