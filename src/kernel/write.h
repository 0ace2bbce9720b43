#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "support/error.h"

namespace tokamak {

// Line and column of each value (by node number) and of each statement (in text order) of a
// kernel's text, 1-based; 0 if it does not occur.
struct KernelLocations {
  std::string file;
  std::vector<int> values, stmts;
  std::vector<int> columns_of_values, columns_of_stmts;

  TextSpan OfValue(ValueId id) const;
  TextSpan OfStmt(int number) const;
};

// The text of a verified kernel, which ParseKernel reads. Values appear where placement.h computes
// them, numbered from v0. Dead values are omitted.
//
//   kernel scale {
//     index 64
//     extent n: 0..4096, multiple of 8
//     argument x: f32[4096] read align 64
//     argument y: f32[4096] write align 64
//     grid i < n {
//       v0: f32 = load x[i]
//       v1: f32 = v0 * f32(2.5)
//       store y[i] = v1
//     }
//   }
std::string WriteKernel(const Kernel& kernel, KernelLocations* locations = nullptr);

std::string_view TextOf(LoopRole role);
std::string_view TextOf(Space space);
std::string_view TextOf(Access access);
std::string_view TextOf(BarrierScope scope);
// The infix operator of a primitive ("+" for add). Empty for primitives that are written as calls.
std::string_view InfixOf(Prim prim);

}  // namespace tokamak
