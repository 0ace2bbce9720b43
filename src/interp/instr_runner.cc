#include "interp/instr_runner.h"

#include <new>
#include <stdexcept>

#include "interp/host.h"
#include "interp/module_interpreter.h"

namespace tokamak {

struct InstrRunner::State {
  explicit State(const RunOptions& options)
      : host(options.probe_dir), interpreter(options.mode, &tally) {
    host.calls = options.host_calls;
    for (const Value& value : options.infeed) host.Feed(value);
    interpreter.options = &options;
    interpreter.host = &host;
  }

  RunTally tally;
  Host host;
  ModuleInterpreter interpreter;
};

InstrRunner::InstrRunner(const RunOptions& options) : state_(std::make_unique<State>(options)) {}
InstrRunner::~InstrRunner() = default;

Result<Value> InstrRunner::Evaluate(const Instr& instr, std::vector<Value>&& operands) {
  try {
    return tokamak::Evaluate(instr, operands, state_->interpreter);
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: out of memory", SpanOf(instr));
  } catch (const std::length_error&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: an array does not fit into memory",
                     SpanOf(instr));
  }
}

int64_t InstrRunner::checks_passed() const {
  return state_->tally.checks_passed;
}

std::vector<Error> InstrRunner::TakeFailures() {
  return std::move(state_->tally.failures);
}

}  // namespace tokamak
