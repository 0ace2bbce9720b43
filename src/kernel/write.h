#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "support/error.h"

namespace tokamak {

// Where a kernel stands in a text: the lines of its values (by number of the node) and of its
// statements (counted in the order of the text), from 1; 0: nowhere.
struct KernelPlaces {
  std::string file;
  std::vector<int> values, stmts;
  std::vector<int> columns_of_values, columns_of_stmts;

  TextSpan OfValue(ValueId id) const;
  TextSpan OfStmt(int number) const;
};

// A verified kernel as text that ParseKernel reads back. Values stand where placement.h computes
// them, numbered from v0; what nothing uses is left out.
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
std::string WriteKernel(const Kernel& kernel, KernelPlaces* places = nullptr);

std::string_view TextOf(LoopRole role);
std::string_view TextOf(Space space);
std::string_view TextOf(Access access);
std::string_view TextOf(Scope scope);
// "+" for add and the like; empty for primitives that are written as calls.
std::string_view InfixOf(Prim prim);

}  // namespace tokamak
