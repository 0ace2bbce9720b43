#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/simulate.h"
#include "support/result.h"

// The arguments of a simulated kernel, from the words of a RUN line.

namespace tokamak {

class TestArrays {
 public:
  // `given`: by the name of an argument, `1,2,3`, `iota`, `random:7`, or `@x` for the memory of x.
  // What is not given is zero, and a pattern that nobody expects where the kernel only writes.
  Status Fill(const Kernel& kernel, const std::map<std::string, std::string>& given);
  std::vector<SimArgument> Arguments();
  // "y: 1 2.5 3"
  std::string Text(const Kernel& kernel, size_t argument) const;

 private:
  std::vector<std::vector<uint64_t>> bytes_;  // words, so that all types are aligned
  std::vector<size_t> memory_;                // which of them each argument is in
  std::vector<int64_t> elements_;
};

}  // namespace tokamak
