#pragma once

#include <string>

#include "ir/ir.h"

namespace tokamak {

// The dump directory requested by TOKAMAK_EXPLAIN, or by --xla_dump_to in XLA_FLAGS. Empty: none.
std::string DumpDirOfEnvironment();

// Writes programs into a directory with XLA's file names:
// module_0001.jit_f.before_optimizations.txt and .after_optimizations.txt. Failures to write are
// ignored, because they must not fail the compilation. Files that other processes have written
// there are kept: the number of a program is the next one that is free for its name.
class Dump {
 public:
  Dump(std::string dir, const std::string& name);
  bool IsOn() const { return !prefix_.empty(); }
  // Of the files of this program, with the directory. Empty: no dump.
  const std::string& prefix() const { return prefix_; }
  void Before(const Module& module) const;
  void After(const Module& module) const;

 private:
  std::string prefix_;
};

}  // namespace tokamak
