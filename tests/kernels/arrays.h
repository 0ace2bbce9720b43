#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/simulate.h"
#include "support/result.h"

// The arguments of a simulated kernel, built from the words of a RUN line.

namespace tokamak {

class TestArrays {
 public:
  // `given`: by argument name, `1,2,3`, `iota`, `random:7`, or `@x` for the memory of x. Other
  // arguments are zero, or an unlikely bit pattern if the kernel only writes them.
  Status Fill(const Kernel& kernel, const std::map<std::string, std::string>& given);
  std::vector<SimArgument> Arguments();
  // "y: 1 2.5 3"
  std::string Text(const Kernel& kernel, size_t argument) const;

 private:
  std::vector<std::vector<uint64_t>> bytes_;  // 64-bit words, so that all types are aligned
  std::vector<size_t> memory_;                // the index of the memory of each argument
  std::vector<int64_t> elements_;
};

}  // namespace tokamak
