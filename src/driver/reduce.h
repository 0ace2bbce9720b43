#pragma once

#include <memory>
#include <string>

#include "ir/ir.h"

namespace tokamak {

// Who wants a smaller module, and knows what failing means.
class ReduceClient {
 public:
  virtual ~ReduceClient() = default;
  // Whether the fault is still there. May be costly: it is what the time goes to.
  virtual bool Fails(const Module& module) = 0;
  // Asked between attempts.
  virtual bool OutOfTime() = 0;
  // Told after each success: what was done, and how many instructions are left.
  virtual void Progress(const std::string& step, size_t instrs) = 0;
};

// The smallest module found that still fails, by delta debugging: results are
// dropped, instructions are replaced by an operand or by zeros, dead code,
// metadata, shardings and other extras go. Parameters of the entry stay, so
// that in_0, in_1 ... keep their meaning. Every candidate verifies.
std::unique_ptr<Module> ReduceModule(const Module& module, ReduceClient& client);

}  // namespace tokamak
