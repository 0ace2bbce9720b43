#pragma once

// Patterns over instructions, as values: m::Add(m::x, m::Zero()) matches a sum of anything and a
// zero of any shape. There is one function per op of ops.def; a commutative op also matches with
// its operands exchanged. A variable matches anything, but the same instruction at every
// occurrence.
//
//   m::x .. m::w, m::p, m::q     variables
//   m::Transpose(m::x)           this op with these operands
//   m::Concatenate()             this op with any operands
//   m::Splat(m::c)               an array (or scalar) of equal constant elements; m::c is bound
//   m::Zero(), m::One() ...      such an array of that number
//   m::Bind(m::a, pattern)       the pattern; m::a is bound to its match
//
// Rules (rules.h) also use a pattern as the replacement to build: variables stand for their
// matches, ops are created with shapes inferred from their operands, numbers fill the shape of the
// replaced instruction.

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// The literal whose first element fills the whole array `instr`: a constant of equal elements, or a
// broadcast of one. Null if `instr` is not such an array.
const Literal* SplatOf(const Instr* instr);

namespace m {

// A variable of a pattern.
struct Var {
  uint8_t index;
};
inline constexpr Var x{0}, y{1}, z{2}, w{3}, p{4}, q{5}, a{6}, b{7}, c{8}, d{9};
inline constexpr size_t kVars = 10;

// The required value of a constant. Numbers are compared as numbers of the constant's type.
enum class Number : uint8_t {
  kAny,
  kZero,          // +0, -0, integer 0
  kPositiveZero,  // also integer 0
  kNegativeZero,
  kOne,
  kMinusOne,
  kAllOnes,  // every bit set: -1, the greatest unsigned, true
  kFalse,
  kTrue,
};

// A flat value that is constructed at compile time, so rule tables need no initialization at run
// time.
class Pattern {
 public:
  enum class Kind : uint8_t { kVar, kOp, kNumber };
  // Nodes are stored in prefix order: a node, then each operand with its subtree.
  struct Node {
    Kind kind = Kind::kVar;
    Number number = Number::kAny;
    int8_t var = -1;  // bound to the match; -1: no variable
    uint8_t operand_count = 0;
    uint8_t span = 1;  // number of nodes in the subtree that starts here
    Op op{};
    const Node& operand(size_t i) const {
      const Node* node = this + 1;
      for (; i > 0; --i) node += node->span;
      return *node;
    }
  };

  constexpr Pattern(Var var) { nodes_[0].var = static_cast<int8_t>(var.index); }
  constexpr explicit Pattern(Node root) { nodes_[0] = root; }
  template <typename... P>
  constexpr Pattern(Op op, const P&... operands) {
    nodes_[0].kind = Kind::kOp;
    nodes_[0].op = op;
    (Append(operands), ...);
  }
  constexpr const Node& node() const { return nodes_[0]; }
  constexpr void Bind(Var var) { nodes_[0].var = static_cast<int8_t>(var.index); }

 private:
  // Capacity of a pattern. Chosen: enough for the largest rule.
  static constexpr size_t kMostNodes = 14;
  // Too many nodes cause an out-of-bounds access, which is not a constant expression, so the
  // program does not compile.
  constexpr void Append(const Pattern& operand) {
    for (size_t i = 0; i < operand.nodes_[0].span; ++i)
      nodes_.at(nodes_[0].span++) = operand.nodes_[i];
    ++nodes_[0].operand_count;
  }
  std::array<Node, kMostNodes> nodes_{};
};

constexpr Pattern Bind(Var var, Pattern pattern) {
  pattern.Bind(var);
  return pattern;
}

constexpr Pattern OfNumber(Number number, int8_t var = -1) {
  return Pattern({Pattern::Kind::kNumber, number, var});
}
constexpr Pattern Splat(Var var) {
  return OfNumber(Number::kAny, static_cast<int8_t>(var.index));
}
constexpr Pattern Zero() {
  return OfNumber(Number::kZero);
}
constexpr Pattern PositiveZero() {
  return OfNumber(Number::kPositiveZero);
}
constexpr Pattern NegativeZero() {
  return OfNumber(Number::kNegativeZero);
}
constexpr Pattern One() {
  return OfNumber(Number::kOne);
}
constexpr Pattern MinusOne() {
  return OfNumber(Number::kMinusOne);
}
constexpr Pattern AllOnes() {
  return OfNumber(Number::kAllOnes);
}
constexpr Pattern True() {
  return OfNumber(Number::kTrue);
}
constexpr Pattern False() {
  return OfNumber(Number::kFalse);
}

// m::Add(x, y), m::Transpose(x), m::Concatenate() ...
#define TOK_OP(id, ...)                        \
  template <typename... P>                     \
  constexpr Pattern id(const P&... operands) { \
    return Pattern(Op::k##id, operands...);    \
  }
#include "ir/ops.def"

// The result of matching a pattern.
class Match {
 public:
  Instr* root() const { return root_; }
  const Shape& shape() const { return root_->shape(); }
  ElementType type() const { return root_->shape().type(); }
  // The instruction a variable is bound to. The variable must occur in the pattern.
  Instr* operator[](Var var) const { return bound_[var.index]; }
  // The constant that fills the array bound to a variable of Splat().
  const Literal& number(Var var) const { return *SplatOf(bound_[var.index]); }
  // The instructions that matched ops of the pattern, without the root.
  const std::vector<Instr*>& inner() const { return inner_; }

 private:
  friend class PatternMatcher;
  Instr* root_ = nullptr;
  std::array<Instr*, kVars> bound_{};
  std::vector<Instr*> inner_;
};

// Linear in the pattern, times two for each commutative op in it.
std::optional<Match> Find(const Pattern& pattern, Instr* instr);

}  // namespace m
}  // namespace tokamak
