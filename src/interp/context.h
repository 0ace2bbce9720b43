#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "interp/rounding.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

class Devices;  // the devices of a multi-device run: collectives and channels (devices.h)
class Host;     // host services of a program: feeds, probes, prints (host.h)

// The services that an evaluator may use besides its operands. One per device.
class Context {
 public:
  virtual ~Context() = default;

  NumericMode mode() const { return mode_; }
  // `value` as stored in an array of `type`: rounded in reference mode, and with a canonical NaN
  // (rounding.h).
  double Round(ElementType type, double value) const {
    if (value != value) value = kOneNan;
    return mode_ == NumericMode::kReference ? RoundToType(type, value) : value;
  }
  Complex Round(ElementType type, Complex value) const {
    ElementType part = RealPartOf(type);
    return {Round(part, value.real()), Round(part, value.imag())};
  }
  int64_t Round(ElementType type, int64_t value) const { return WrapSigned(type, value); }
  uint64_t Round(ElementType type, uint64_t value) const { return WrapUnsigned(type, value); }
  uint8_t Round(ElementType, uint8_t value) const { return value != 0 ? 1 : 0; }

  // Runs a computation; rejects call stacks that are too deep. Consumes the arguments: those that
  // are not referenced elsewhere may be written in place.
  virtual Result<Value> Call(const Computation& computation, std::vector<Value>&& arguments) = 0;
  Result<Value> Call(const Computation& computation, std::span<const Value> arguments) {
    return Call(computation, std::vector<Value>(arguments.begin(), arguments.end()));
  }

  // Rejects (TK5002) an array that is too large, or that would exceed the limit on all live arrays
  // together. Evaluators call this before they allocate a data-dependent shape; ModuleInterpreter
  // calls it for the static shapes of the program.
  Status CheckFits(const Instr& instr, const Shape& shape) const;

  // Records the result of a check of the program.
  virtual void ReportCheck(std::optional<Error> failure) = 0;  // nullopt: the check passed

  // Creates a context of the same run for another device.
  virtual std::unique_ptr<Context> ForDevice(int64_t replica, int64_t partition,
                                             Devices* devices) = 0;

  int64_t replica = 0, partition = 0;
  Devices* devices = nullptr;  // null: a single device
  Host* host = nullptr;        // null: host services are unavailable (constant folding)

 protected:
  explicit Context(NumericMode mode) : mode_(mode) {}

 private:
  NumericMode mode_;
};

// Moves operand i out. ModuleInterpreter passes evaluators their own operands, so an array at its
// last use has no other reference and TakeData moves its elements.
inline Value TakeOperand(std::span<const Value> operands, size_t i) {
  return std::move(const_cast<Value&>(operands[i]));
}

// The shape of a result with the dimensions of `like`: the instruction's own shape may be dynamic.
inline Shape ResultShape(const Instr& instr, const Value& like) {
  return instr.shape().dims() == like.dims() ? instr.shape() : instr.shape().WithDims(like.dims());
}

// Rejects (TK5010) operands whose run-time dimensions differ.
Status CheckSameDims(const Instr& instr, std::span<const Value> operands);
// The error TK5001 at an instruction: "op: text".
Error Unsupported(const Instr& instr, const std::string& text);

}  // namespace tokamak
