#pragma once

#include <memory>

#include "ir/ir.h"

namespace tokamak {

// A program as its user wrote it, in forms that are easy to look at: no optimization has run.
// Instructions keep their origins.
struct WrittenProgram {
  // With calls inlined, tuples flattened and threefry as one op. Null if that failed.
  std::unique_ptr<Module> inlined;
  // The same with constants folded and equal values merged.
  std::unique_ptr<Module> folded;
};
WrittenProgram ReadWrittenProgram(const Module& module);

}  // namespace tokamak
