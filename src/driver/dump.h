#pragma once

#include <string>

#include "driver/executable.h"
#include "ir/ir.h"

namespace tokamak {

// Where programs are to be written: TOKAMAK_EXPLAIN, or --xla_dump_to of XLA_FLAGS. "": nowhere.
std::string DumpDirOfEnvironment();

// Writes programs into a folder as XLA does: module_0001.jit_f.before_optimizations.txt and
// .after_optimizations.txt. What cannot be written is left out: it is not the program's fault.
class Dump {
 public:
  Dump(std::string dir, const std::string& name);
  bool IsOn() const { return !prefix_.empty(); }
  void Before(const Module& module) const;
  void After(const Executable& executable) const;

 private:
  std::string prefix_;
};

}  // namespace tokamak
