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

class Devices;  // several devices of one run: collectives and channels (devices.h)
class Host;     // what a program may ask of its host: feeds, probes, prints (host.h)

// What an evaluator may ask for beside its operands. One per device.
class Context {
 public:
  virtual ~Context() = default;

  NumericMode mode() const { return mode_; }
  // `value` as it is kept in an array of `type`: rounded in law mode, and one NaN for all
  // (rounding.h).
  double Round(ElementType type, double value) const {
    if (value != value) value = kOneNan;
    return mode_ == NumericMode::kLaw ? RoundToType(type, value) : value;
  }
  Complex Round(ElementType type, Complex value) const {
    ElementType part = RealPartOf(type);
    return {Round(part, value.real()), Round(part, value.imag())};
  }
  int64_t Round(ElementType type, int64_t value) const { return WrapSigned(type, value); }
  uint64_t Round(ElementType type, uint64_t value) const { return WrapUnsigned(type, value); }
  uint8_t Round(ElementType, uint8_t value) const { return value != 0 ? 1 : 0; }

  // Runs a computation; refuses too deep a stack. The arguments are given away: those that nobody
  // else holds may be written in place.
  virtual Result<Value> Call(const Computation& computation, std::vector<Value>&& arguments) = 0;
  Result<Value> Call(const Computation& computation, std::span<const Value> arguments) {
    return Call(computation, std::vector<Value>(arguments.begin(), arguments.end()));
  }

  // Refuses (TK5002) an array that is too large, or that would make all live arrays together too
  // large. To be asked before a shape that only values know is allocated; the walk asks for the
  // shapes that the program states.
  Status CheckFits(const Instr& instr, const Shape& shape) const;

  // A failed or passed check of the program.
  virtual void ReportCheck(std::optional<Error> failure) = 0;  // nothing: it holds

  // A context of the same run for another device.
  virtual std::unique_ptr<Context> ForDevice(int64_t replica, int64_t partition,
                                             Devices* devices) = 0;

  int64_t replica = 0, partition = 0;
  Devices* devices = nullptr;  // null: alone
  Host* host = nullptr;        // null: nothing may be asked of it (constant folding)

 protected:
  explicit Context(NumericMode mode) : mode_(mode) {}

 private:
  NumericMode mode_;
};

// Operand i, moved out: the walk gives an evaluator operands of its own, so an array at its last
// use is held by nobody else and TakeData moves its elements.
inline Value TakeOperand(std::span<const Value> operands, size_t i) {
  return std::move(const_cast<Value&>(operands[i]));
}

// The shape of a result whose dimensions are those of `like`: the instruction's own may be dynamic.
inline Shape ResultShape(const Instr& instr, const Value& like) {
  return instr.shape().dims() == like.dims() ? instr.shape() : instr.shape().WithDims(like.dims());
}

// Refuses (TK5010) operands whose dimensions, known only now, differ.
Status CheckSameDims(const Instr& instr, std::span<const Value> operands);
// TK5001 at an instruction: "op: text".
Error Unsupported(const Instr& instr, const std::string& text);

}  // namespace tokamak
