#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/infer.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Builds one computation by hand. Shapes are inferred. The first error is stored: after it every
// method returns a null pointer and accepts null pointers, so callers need not check each step.
// Finish returns the error.
//
//   Module module("m");
//   Builder b(module, "main");
//   Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {2, 3}));
//   Instr* y = b.Multiply(x, b.Tanh(x));
//   TOK_TRY(Computation* main, b.Finish(y));
//   module.set_entry(main);
class Builder {
 public:
  Builder(Module& module, std::string name)
      : computation_(module.AddComputation(std::move(name))) {}
  // A private computation that a pass creates for `of`, with the origins of `of`.
  Builder(const Instr& of, std::string name);

  // The general form; the other methods call it. `shape` is for ops whose row says kExplicit.
  struct Extra {
    std::optional<Shape> shape = std::nullopt;
    std::vector<Computation*> called = {};
    size_t captures = 0;
    std::string name = {};
  };
  Instr* Append(Op op, std::vector<Instr*> operands, Attrs attrs, Extra extra);
  Instr* Append(Op op, std::vector<Instr*> operands, Attrs attrs = {}) {
    return Append(op, std::move(operands), std::move(attrs), Extra{});
  }

  // One method per elementwise op whose shape follows from its operands: Add(x, y), Tanh(x),
  // Select(p, x, y) ...
#define TOK_OP(id, name, mlir, arity, types, rule, traits, flops, attrs, meaning)     \
  template <std::same_as<Instr*>... X>                                                \
  requires(((traits)&kElementwise) != 0 && ShapeRule::rule != ShapeRule::kExplicit && \
           static_cast<int>(sizeof...(X)) == (arity)) Instr*                          \
  id(X... x) {                                                                        \
    return Append(Op::k##id, {x...});                                                 \
  }
#include "ir/ops.def"

  // Parameters are numbered in the order of the calls.
  Instr* Parameter(Shape shape, std::string name = {});
  Instr* Constant(Literal literal);
  Instr* Scalar(ElementType type, double value);
  Instr* Iota(Shape shape, int64_t dimension);
  Instr* Convert(Instr* x, ElementType type);
  Instr* BitcastConvert(Instr* x, Shape shape);
  Instr* Compare(Instr* x, Instr* y, CompareDirection direction);

  Instr* Broadcast(Instr* x, Dims result, Dims dimensions);
  Instr* Reshape(Instr* x, Dims result);
  Instr* Transpose(Instr* x, Dims permutation);
  Instr* Reverse(Instr* x, Dims dimensions);
  Instr* Slice(Instr* x, Dims starts, Dims limits, Dims strides = {});
  Instr* DynamicSlice(Instr* x, std::vector<Instr*> starts, Dims sizes);
  Instr* DynamicUpdateSlice(Instr* x, Instr* update, std::vector<Instr*> starts);
  Instr* Concatenate(std::vector<Instr*> parts, int64_t dimension);
  Instr* Pad(Instr* x, Instr* value, PadAttrs padding);
  Instr* Gather(Instr* x, Instr* indices, GatherAttrs attrs);

  Instr* Reduce(std::vector<Instr*> inputs, std::vector<Instr*> inits, Dims dimensions,
                Computation* body);
  Instr* ReduceWindow(std::vector<Instr*> inputs, std::vector<Instr*> inits, Window window,
                      Computation* body);
  Instr* Scatter(std::vector<Instr*> inputs, Instr* indices, std::vector<Instr*> updates,
                 ScatterAttrs attrs, Computation* body);
  Instr* Sort(std::vector<Instr*> operands, int64_t dimension, bool is_stable,
              Computation* comparator);
  Instr* Map(std::vector<Instr*> operands, Computation* body);
  Instr* Dot(Instr* lhs, Instr* rhs, DotAttrs attrs, std::optional<ElementType> type = {});
  Instr* Convolution(Instr* lhs, Instr* rhs, ConvolutionAttrs attrs);

  Instr* Tuple(std::vector<Instr*> elements);
  Instr* GetTupleElement(Instr* tuple, int64_t index);
  Instr* Call(Computation* callee, std::vector<Instr*> arguments);
  Instr* While(Computation* condition, Computation* body, std::vector<Instr*> state);
  Instr* Conditional(Instr* index, std::vector<Computation*> branches,
                     std::vector<Instr*> arguments);

  // Returns the computation with its root set, or the first error.
  Result<Computation*> Finish(Instr* root);
  // Like Finish, but an error is a bug of the caller (TOK_CHECK).
  Computation* FinishValid(Instr* root);

  // The computation under construction, for operations without a method here.
  Computation* computation() const {
    return computation_;
  }
  const std::optional<Error>& error() const {
    return error_;
  }

 private:
  // The shape of x with other dimensions, for ops with an explicit result shape.
  std::optional<Shape> Like(const Instr* x, Dims dims) const;

  Computation* computation_;
  OriginId origins_ = OriginId::kNone;
  TextPos pos_;
  std::optional<Error> error_;
};

}  // namespace tokamak
