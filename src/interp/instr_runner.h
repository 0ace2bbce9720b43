#pragma once

#include <memory>
#include <vector>

#include "interp/interp.h"

namespace tokamak {

// Evaluates single instructions within one run of a program, sharing its host, checks and limits.
// Used by executables that interpret the instructions they have no code for. Not thread-safe.
class InstrRunner {
 public:
  // The options must outlive this.
  explicit InstrRunner(const RunOptions& options);
  ~InstrRunner();
  InstrRunner(const InstrRunner&) = delete;
  InstrRunner& operator=(const InstrRunner&) = delete;

  // Consumes the operands. Errors are located at the instruction.
  Result<Value> Evaluate(const Instr& instr, std::vector<Value>&& operands);

  int64_t checks_passed() const;
  std::vector<Error> TakeFailures();  // of checks

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
