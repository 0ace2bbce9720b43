#pragma once

#include <memory>
#include <string>

#include "ir/ir.h"

namespace tokamak {

// The caller of ReduceModule: decides what failing means.
class ReduceClient {
 public:
  virtual ~ReduceClient() = default;
  // Whether the bug still occurs. May be slow; most of the time goes here.
  virtual bool Fails(const Module& module) = 0;
  // Polled between attempts.
  virtual bool OutOfTime() = 0;
  // Called after each success with the step and the remaining number of instructions.
  virtual void Progress(const std::string& step, size_t instrs) = 0;
};

// Test case reduction by delta debugging. Returns the smallest module found that still fails:
// results are dropped, instructions are replaced by an operand or by zeros, and dead code,
// metadata, shardings and other extras are removed. Parameters of the entry stay, so that in_0,
// in_1 ... keep their meaning. Every candidate verifies.
std::unique_ptr<Module> ReduceModule(const Module& module, ReduceClient& client);

}  // namespace tokamak
