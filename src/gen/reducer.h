#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gen/element.h"

namespace tokamak {

// What argmax and argmin do: of pairs (value, index) the one with the greatest or least value, of
// equal ones that with the lower index, and the first NaN before all others.
enum class Pick : uint8_t { kNone, kGreatest, kLeast };

// A reduce: what it folds and how.
struct Reducer {
  const Instr* instr = nullptr;
  size_t count = 0;  // inputs, and results
  const Computation* body = nullptr;
  std::optional<Op> op;  // of a body that is x op y, whatever the order
  Pick pick = Pick::kNone;
  // Lanes may fold apart, each its elements in order: from the neutral element, or, of a pick, from
  // the reduce's own first value.
  bool any_order = false;
  Dims reduced, kept;  // dimensions of the inputs

  const Shape& input() const { return instr->operand(0)->shape(); }
  ElementType type(size_t i) const { return instr->operand(i)->shape().type(); }
  ElementType result_type(size_t i) const { return PartsOf(instr->shape())[i].type(); }
};

Reducer ReducerOf(const Instr& reduce);
// Why no kernel folds so, in words; nothing when one does.
std::optional<std::string> WhyNoReducer(const Instr& reduce);
// The op of a body that is x op y, whatever the order, and has an element that changes nothing.
std::optional<Op> AnyOrderOp(const Computation& body);
// Of a reduce of two arrays.
Pick PickOf(const Reducer& reducer);
// The one of two pairs to take.
std::vector<Element> Picked(Pick pick, const std::vector<Element>& x,
                            const std::vector<Element>& y);
// What changes nothing when it is folded in; only where there is an op.
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
  // Two sums, of elements in any order, as one.
  std::vector<Element> Joined(const std::vector<Element>& x, const std::vector<Element>& y);
  // The reduce's result of a sum: with its own first value, in its own type.
  std::vector<Element> Finished(std::vector<Element> sums);

 private:
  std::optional<Scalar> ProductAdded(Scalar lane, const Element& element);
  std::vector<Element> Apply(const std::vector<Element>& x, const std::vector<Element>& y);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Reducer* reducer_;
  int64_t lanes_;
  std::vector<std::array<ArrayId, 2>> arrays_;
};

}  // namespace tokamak
