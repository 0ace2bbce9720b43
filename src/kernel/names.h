#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/placement.h"

namespace tokamak {

// Names of the arrays, loops, extents and values of a kernel in text. All names are unique and
// valid identifiers of kernel text and of C++; a name that already is one is kept. Values are
// numbered in the order in which placement computes them.
struct KernelNames {
  KernelNames(const Kernel& kernel, const Placement& placement);

  // The text of an operand: a constant, a name, or v7.
  std::string Operand(ValueId id) const;
  const std::string& Of(ArrayId id) const { return arrays[static_cast<size_t>(id)]; }
  const std::string& Of(LoopId id) const { return loops[static_cast<size_t>(id)]; }
  const std::string& Of(LaunchExtentId id) const { return extents[static_cast<size_t>(id)]; }

  std::string kernel;
  std::vector<std::string> arrays, loops, extents;
  std::vector<int> values;  // -1 if it is not computed anywhere

 private:
  const Kernel* of_;
};

// Makes an identifier [A-Za-z_][A-Za-z0-9_]* that is neither a C++ keyword nor v followed by
// digits.
std::string IdentifierFrom(std::string_view name);

// A constant in kernel text: 4 for an index, true, f32(2.5), u8(7), f32(0x7fc00001).
std::string ConstantText(ScalarType type, Bits bits);

}  // namespace tokamak
