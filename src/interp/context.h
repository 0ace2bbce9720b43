#pragma once

#include <span>

#include "interp/interp.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

class Devices;  // several devices of one run: collectives, channels, feeds

// What an evaluator may ask for beside its operands. One per device.
class Context {
 public:
  virtual ~Context() = default;

  NumericMode mode() const { return mode_; }
  // `value` as it is kept in an array of `type`: rounded in law mode.
  double Round(ElementType type, double value) const {
    return mode_ == NumericMode::kLaw ? RoundToType(type, value) : value;
  }
  Complex Round(ElementType type, Complex value) const {
    ElementType part = RealPartOf(type);
    return {Round(part, value.real()), Round(part, value.imag())};
  }
  int64_t Round(ElementType type, int64_t value) const { return WrapSigned(type, value); }
  uint64_t Round(ElementType type, uint64_t value) const { return WrapUnsigned(type, value); }
  uint8_t Round(ElementType, uint8_t value) const { return value != 0 ? 1 : 0; }

  // Runs a computation; refuses too deep a stack.
  virtual Result<Value> Call(const Computation& computation, std::span<const Value> arguments) = 0;

  // A failed or passed check of the program.
  virtual void ReportCheck(bool passed, std::string failure) = 0;

  int64_t replica = 0, partition = 0;
  Devices* devices = nullptr;  // null: alone

 protected:
  explicit Context(NumericMode mode) : mode_(mode) {}

 private:
  NumericMode mode_;
};

}  // namespace tokamak
