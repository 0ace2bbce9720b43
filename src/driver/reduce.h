#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ir/ir.h"

namespace tokamak {

struct ReduceOptions {
  // Whether the fault is still there. May be costly: it is what the time goes to.
  std::function<bool(const Module& module)> fails;
  // Asked between attempts.
  std::function<bool()> out_of_time;
  // Told after each success: what was done, and how many instructions are left.
  std::function<void(const std::string& step, size_t instrs)> progress;
};

// The smallest module found that still fails, by delta debugging: results are
// dropped, instructions are replaced by an operand or by zeros, dead code,
// metadata, shardings and other extras go. Parameters of the entry stay, so
// that in_0, in_1 ... keep their meaning. Every candidate verifies.
std::unique_ptr<Module> ReduceModule(const Module& module, const ReduceOptions& options);

}  // namespace tokamak
