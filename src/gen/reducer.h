#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gen/element.h"

namespace tokamak {

// A reduce: what it folds and how.
struct Reducer {
  const Instr* instr = nullptr;
  size_t count = 0;  // inputs, and results
  const Computation* body = nullptr;
  std::optional<Op> op;    // of a body that is x op y, whatever the order
  bool any_order = false;  // lanes may fold apart, from the neutral element
  Dims reduced, kept;      // dimensions of the inputs

  const Shape& input() const { return instr->operand(0)->shape(); }
  ElementType type(size_t i) const { return instr->operand(i)->shape().type(); }
  ElementType result_type(size_t i) const { return PartsOf(instr->shape())[i].type(); }
};

Reducer ReducerOf(const Instr& reduce);
// Why no kernel folds so, in words; nothing when one does.
std::optional<std::string> WhyNoReducer(const Instr& reduce);
// What changes nothing when it is folded in; only where any_order.
Element NeutralOf(KernelBuilder& b, Op op, ElementType type);

// The sums of one reduce that are being made, one for each lane, in registers.
class Accumulators {
 public:
  Accumulators(KernelBuilder& b, ElementEmitter& emitter, const Reducer& reducer, int64_t lanes);
  const Reducer& reducer() const { return *reducer_; }
  // What a sum begins with: the neutral element, or the reduce's own first value.
  std::vector<Element> Begin();
  std::vector<Element> Read(Scalar lane);
  void Write(Scalar lane, const std::vector<Element>& values);
  // Folds one element of the inputs, those at `at`, into a lane; only where `valid` holds (may be
  // nothing: always).
  void Fold(Scalar lane, const Coordinates& at, Scalar valid);
  // Folds all lanes into one, in the order of a fixed tree.
  std::vector<Element> Combined();
  // Two sums as one.
  std::vector<Element> Joined(const std::vector<Element>& x, const std::vector<Element>& y) {
    return Apply(x, y);
  }
  // The reduce's result of a sum: with its own first value, in its own type.
  std::vector<Element> Finished(std::vector<Element> sums);

 private:
  std::vector<Element> Apply(const std::vector<Element>& x, const std::vector<Element>& y);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Reducer* reducer_;
  int64_t lanes_;
  std::vector<std::array<ArrayId, 2>> arrays_;
};

}  // namespace tokamak
