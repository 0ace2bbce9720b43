#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/account/account.h"

// Other ways to look at an account than as a table.

namespace tokamak {

// A kernel in the forms that it goes through.
struct KernelView {
  std::string name, form;
  std::string code, language;  // "llvm" or "cuda"
};
// All kernels of this name: a pack is asked for by the name of one of its kernels, or by "N", the
// Nth step from 1. TK6107 with names that are like it when there is none.
Result<std::vector<KernelView>> KernelsNamed(const ProgramAccount& account, std::string_view name);

// For Graphviz: a cluster for each kernel, edges between them labelled with bytes.
std::string DotOf(const ProgramAccount& account, const std::string& title);

// Steps of two accounts, those of equal structure matched.
struct StepDiff {
  const StepAccount* step = nullptr;  // one of them
  int64_t count = 0;                  // of equal structure
  double us = 0;                      // of all
};
struct AccountDiff {
  int64_t in_both = 0;
  std::vector<StepDiff> only_a, only_b;
};
AccountDiff DiffOf(const ProgramAccount& a, const ProgramAccount& b);

}  // namespace tokamak
