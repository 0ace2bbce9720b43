#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interp/interp.h"
#include "ir/ir.h"
#include "random/compare.h"
#include "support/result.h"

namespace tokamak::fuzz {

// Something that makes another program of a program, with the same values.
class Transformation {
 public:
  virtual ~Transformation() = default;
  virtual std::string name() const = 0;  // as the command line names it
  virtual Closeness closeness() const { return {}; }
  // Whether it promises anything for a program.
  virtual bool Keeps(const Module&) const { return true; }
  // Whether what comes of it has to run also where of values nothing is promised.
  virtual bool RunsAlways() const { return false; }
  virtual Result<std::unique_ptr<Module>> Apply(const Module& module) const = 0;
  // How what comes of it is run.
  virtual Result<RunOutcome> Run(const Module& module, std::span<const Value> inputs,
                                 const RunOptions& options) const {
    return Interpret(module, inputs, options);
  }
};

// Those that are there: "clone", "hlo", "mlir", "normal-form", every pass (behind those that give
// what it needs), "pipeline", and pipelines as text: "inline,(simplify,cse)*". "twice:" before one
// of these also asks that a second run changes nothing. Null for a name that is not known.
std::unique_ptr<Transformation> TransformationNamed(std::string_view name);
std::vector<std::string> TransformationNames();
std::unique_ptr<Transformation> PassNamed(std::string_view name);
// "on:cpu", "on:sim": compiled and run there. Promised are programs whose every bit follows from
// the law: no functions, no sums of reals.
std::unique_ptr<Transformation> BackendNamed(std::string_view name);
std::vector<std::string> PassNames();
// Whether the instruction has the bits of the law on every backend.
bool PromisesBits(const Instr& instr);

struct Finding {
  enum class Kind : uint8_t {
    kNone,
    kUnpromised,  // what comes of it is sound; of values nothing was promised
    kRefused,     // the interpreter does not run the program as it was drawn
    kDrawn,       // the program does not verify as it was drawn
    kError,       // the transformation gives an error
    kUnsound,     // what comes of it does not verify
    kRun,         // ... does not run
    kValues,      // ... computes something else
  };
  Kind kind = Kind::kNone;
  std::string what;
  bool IsFault() const { return kind >= Kind::kDrawn; }
};

// Runs the program before and after each transformation on inputs that
// `input_seed` draws: ordinary ones, and such as are rich in NaN, infinities,
// signed zeros and extremes. One finding each.
std::vector<Finding> CheckProgram(const Module& module, uint64_t input_seed,
                                  std::span<const Transformation* const> transformations);

// The smallest program found that `transformation` breaks in the same way.
std::unique_ptr<Module> SmallestBroken(const Module& module, uint64_t input_seed,
                                       const Transformation& transformation, Finding::Kind kind);

}  // namespace tokamak::fuzz
