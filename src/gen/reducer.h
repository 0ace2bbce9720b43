#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gen/element.h"

// Reductions: analysis of reduce instructions and the accumulators that kernels keep for them.

namespace tokamak {

// Argmax and argmin: a reduction of pairs (value, index) to the pair with the greatest or least
// value. Ties go to the lower index; the first NaN wins over all numbers.
enum class ArgReduction : uint8_t { kNone, kArgMax, kArgMin };

// What a kernel needs to know of a reduce instruction: its dimensions and its combining function.
struct Reducer {
  const Instr* instr = nullptr;
  size_t input_count = 0;  // number of inputs, and of results
  const Computation* body = nullptr;
  // One op per input, if each result of the body is x op y or y op x of its own input; otherwise
  // empty.
  std::vector<Op> ops;
  ArgReduction arg_reduction = ArgReduction::kNone;
  // Whether the elements may be reassociated: several lanes accumulate disjoint subsets, each in
  // order, and CombineLanes() merges them. Each accumulator then starts with the neutral element
  // (for an argmax or argmin, with the reduce's initial value). If false, one accumulator starts
  // with the initial value and takes all elements in order.
  bool can_reassociate = false;
  Dims reduced_dims, kept_dims;  // indices of the inputs' dimensions, ascending

  const Shape& input() const { return instr->operand(0)->shape(); }
  ElementType type(size_t i) const { return instr->operand(i)->shape().type(); }
  ElementType result_type(size_t i) const { return ResultShapesOf(instr->shape())[i].type(); }
};

Reducer ReducerOf(const Instr& reduce);
// Returns why a reduce has no kernel, nullopt if it has one.
std::optional<std::string> WhyNoReduceKernel(const Instr& reduce);
// The op of a body that is x op y or y op x, if it is commutative and has a neutral element.
std::optional<Op> CommutativeOpOf(const Computation& body);
// Requires a reduce of two arrays.
ArgReduction ArgReductionOf(const Reducer& reducer);
// Emits the argmax or argmin of two pairs (value, index). `pick` says which of the two.
std::vector<Element> SelectPair(ArgReduction pick, const std::vector<Element>& x,
                                const std::vector<Element>& y);
// The neutral element of the op.
Element NeutralOf(KernelBuilder& b, Op op, ElementType type);

// The accumulators of one reduce: an array in registers for each result, with `lanes` elements, one
// for each lane. A thread has one copy of these arrays: lanes store to different elements
// (Space::kRegisters in kernel/kernel.h).
class Accumulators {
 public:
  Accumulators(KernelBuilder& b, ElementEmitter& emitter, const Reducer& reducer, int64_t lanes);
  const Reducer& reducer() const { return *reducer_; }
  // The start value of an accumulator: the neutral element of the op if can_reassociate, otherwise
  // the reduce's initial value. An argmax or argmin always starts with the reduce's initial value.
  std::vector<Element> StartValue();
  std::vector<Element> Read(Scalar lane);
  void Write(Scalar lane, const std::vector<Element>& values);
  // Accumulates the elements of the inputs at `at` into a lane. `valid` is a pred evaluated at run
  // time: if false, the accumulator keeps its value. If it is no value (Scalar{}), the elements are
  // always accumulated.
  void Accumulate(Scalar lane, const Coordinates& at, Scalar valid);
  // Combines all lanes with a fixed reduction tree.
  std::vector<Element> CombineLanes();
  // Combines two partial results. Requires can_reassociate.
  std::vector<Element> CombinePair(const std::vector<Element>& x, const std::vector<Element>& y);
  // The result of the reduce from an accumulator: combined with the reduce's initial value, unless
  // the accumulator started with it (StartValue), and rounded to the result type.
  std::vector<Element> FinalResult(std::vector<Element> sums);

 private:
  bool StartsNeutral() const { return reducer_->can_reassociate && !reducer_->ops.empty(); }
  // The new sum, as a fused multiply-add, if the reduce is a sum and the element a product.
  std::optional<Scalar> TryMultiplyAdd(Scalar lane, const Element& element);
  std::vector<Element> Apply(const std::vector<Element>& x, const std::vector<Element>& y);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Reducer* reducer_;
  int64_t lanes_;
  std::vector<ElementArrays> arrays_;
};

}  // namespace tokamak
