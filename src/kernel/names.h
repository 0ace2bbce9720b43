#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/placement.h"

namespace tokamak {

// What things of a kernel are called in text. Names are identifiers of kernel form and of C++, each
// there once; those that already are so stay as they are. Values are numbered in the order in which
// placement computes them.
struct KernelNames {
  KernelNames(const Kernel& kernel, const Placement& placement);

  // An operand: a number, a name, or v7.
  std::string Operand(ValueId id) const;
  const std::string& Of(ArrayId id) const { return arrays[static_cast<size_t>(id)]; }
  const std::string& Of(LoopId id) const { return loops[static_cast<size_t>(id)]; }
  const std::string& Of(ExtentId id) const { return extents[static_cast<size_t>(id)]; }

  std::string kernel;
  std::vector<std::string> arrays, loops, extents;
  std::vector<int> values;  // -1: not computed anywhere

 private:
  const Kernel* of_;
};

// [A-Za-z_][A-Za-z0-9_]*, no word of C++, and not v with digits.
std::string IdentifierFrom(std::string_view name);

// A constant as kernel text has it: 4 for an index, true, f32(2.5), u8(7), f32(0x7fc00001).
std::string ConstantText(ScalarType type, Bits bits);

}  // namespace tokamak
