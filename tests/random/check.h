#pragma once

// The properties that random_programs checks: transformations that must preserve a program's
// values.

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

// Transforms a program into another one with the same values.
class Transformation {
 public:
  virtual ~Transformation() = default;
  virtual std::string name() const = 0;  // as on the command line
  // Whether the transformation preserves the values of this program.
  virtual bool Keeps(const Module&) const { return true; }
  // Whether the result must run even if its values are not promised.
  virtual bool RunsAlways() const { return false; }
  // What the runs so far covered, for --statistics; may be empty.
  virtual std::string Summary() const { return {}; }
  virtual Result<std::unique_ptr<Module>> Apply(const Module& module) const = 0;
  // Runs the transformed program.
  virtual Result<RunOutcome> Run(const Module& module, std::span<const Value> inputs,
                                 const RunOptions& options) const {
    return Interpret(module, inputs, options);
  }
};

// The known transformations: "clone", "hlo", "mlir", every pass (after its prerequisites),
// "pipeline", and pipelines as text: "inline,(simplify,cse)*". The prefix "twice:" also requires
// that a second run changes nothing. Returns null for an unknown name.
std::unique_ptr<Transformation> TransformationNamed(std::string_view name);
std::vector<std::string> TransformationNames();
std::unique_ptr<Transformation> PassNamed(std::string_view name);
// "on:cpu", "on:sim": compiled and run there; "on:h200": for all SMs of that GPU, simulated. Values
// are promised for programs whose every bit is fixed by the reference semantics: no functions, no
// sums of reals.
std::unique_ptr<Transformation> BackendNamed(std::string_view name);
std::vector<std::string> PassNames();
// Whether every backend computes the instruction with the bits of the reference interpreter.
bool PromisesBits(const Instr& instr);

struct Finding {
  enum class Kind : uint8_t {
    kNone,
    kUnpromised,      // the transformed program is valid; its values were not promised
    kNotInterpreted,  // the interpreter does not run the original program
    kDrawn,           // the original program does not verify
    kError,           // the transformation returns an error
    kUnsound,         // the transformed program does not verify
    kRun,             // the transformed program does not run
    kValues,          // the transformed program computes other values
  };
  Kind kind = Kind::kNone;
  std::string what;
  bool IsFailure() const { return kind >= Kind::kDrawn; }
};

// Runs the program before and after each transformation on inputs generated from `input_seed`:
// ordinary ones, and ones rich in NaN, infinities, signed zeros and extremes. Returns one finding
// per transformation.
std::vector<Finding> CheckProgram(const Module& module, uint64_t input_seed,
                                  std::span<const Transformation* const> transformations);

// The smallest program found that `transformation` breaks in the same way.
std::unique_ptr<Module> SmallestBroken(const Module& module, uint64_t input_seed,
                                       const Transformation& transformation, Finding::Kind kind);

}  // namespace tokamak::fuzz
