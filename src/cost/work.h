#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cost/machine.h"

namespace tokamak {

// Machine operations that go at one rate.
enum class Pipe : uint8_t {
  kSimple,   // add, multiply, compare, select, logic, shift, convert of equal widths
  kDivide,   // divisions and square roots
  kConvert,  // between widths, between integers and reals
  kScalar,   // what no vector does: integer division, functions that are called
  kLoad,     // of neighbours
  kStore,
  kGather,    // elements that lie anywhere, one by one
  kMultiply,  // products and sums of a `multiply`, counted in multiply-adds
};
inline constexpr size_t kPipes = 8;

// What a kernel does, counted from its kernel form, or from the instructions of a region before
// there is a kernel.
struct Work {
  double tasks = 1;                  // iterations of the grid
  double reads = 0, writes = 0;      // bytes of arrays, each element once
  double rereads = 0;                // bytes that are read again, from a cache mostly
  std::array<double, kPipes> ops{};  // a vector counts once; of all tasks
  double registers = 0;              // vectors that live at a time, at most
};

// Microseconds, by term.
struct Price {
  double launch = 0, memory = 0, compute = 0;
  std::string_view binding;  // "launch", "memory", "compute": what decides

  double total() const;
};

Price PriceOf(const Work& work, const Machine& machine);

}  // namespace tokamak
