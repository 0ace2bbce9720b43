#pragma once

// Patterns over instructions, as values: m::Add(m::x, m::Zero()) matches a sum of anything and a
// zero of any shape. One function per op of ops.def; a commutative op also matches with its
// operands exchanged. A variable matches anything, and the same instruction wherever it stands.
//
//   m::x .. m::w, m::p, m::q     variables
//   m::Transpose(m::x)           this op, with these operands
//   m::Concatenate()             this op, whatever its operands
//   m::Splat(m::c)               an array (or scalar) of equal constant elements; m::c is bound
//   m::Zero(), m::One() ...      such an array of that number
//   m::Bind(m::a, pattern)       the pattern, and m::a is what it matched
//
// A pattern is also what a rule builds (rules.h): variables are what they matched, ops are made
// anew from the shapes of their operands, numbers fill the shape of what is replaced.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// The literal whose first element fills the whole array `instr`: a constant of equal elements, or
// one that is broadcast. Null when there is none.
const Literal* SplatOf(const Instr* instr);

namespace m {

// A variable of a pattern.
struct Var {
  uint8_t index;
};
inline constexpr Var x{0}, y{1}, z{2}, w{3}, p{4}, q{5}, a{6}, b{7}, c{8}, d{9};
inline constexpr size_t kVars = 10;

// What a constant must be. Numbers are compared as numbers of the constant's type.
enum class Number : uint8_t {
  kAny,
  kZero,          // +0, -0, integer 0
  kPositiveZero,  // integer 0 too
  kNegativeZero,
  kOne,
  kMinusOne,
  kAllOnes,  // every bit set: -1, the greatest unsigned, true
  kFalse,
  kTrue,
};

class Pattern {
 public:
  Pattern(Var var) : node_(std::make_shared<Node>(Node{Kind::kVar, {}, {}, var.index, {}})) {}

  enum class Kind : uint8_t { kVar, kOp, kNumber };
  struct Node {
    Kind kind;
    Op op;
    Number number;
    int var;  // bound to what matches; -1: none
    std::vector<Pattern> operands;
  };
  explicit Pattern(Node node) : node_(std::make_shared<Node>(std::move(node))) {}
  const Node& node() const { return *node_; }

 private:
  std::shared_ptr<const Node> node_;
};

inline Pattern Bind(Var var, const Pattern& pattern) {
  Pattern::Node node = pattern.node();
  node.var = var.index;
  return Pattern(std::move(node));
}

inline Pattern OfNumber(Number number, int var = -1) {
  return Pattern({Pattern::Kind::kNumber, {}, number, var, {}});
}
inline Pattern Splat(Var var) {
  return OfNumber(Number::kAny, var.index);
}
inline Pattern Zero() {
  return OfNumber(Number::kZero);
}
inline Pattern PositiveZero() {
  return OfNumber(Number::kPositiveZero);
}
inline Pattern NegativeZero() {
  return OfNumber(Number::kNegativeZero);
}
inline Pattern One() {
  return OfNumber(Number::kOne);
}
inline Pattern MinusOne() {
  return OfNumber(Number::kMinusOne);
}
inline Pattern AllOnes() {
  return OfNumber(Number::kAllOnes);
}
inline Pattern True() {
  return OfNumber(Number::kTrue);
}
inline Pattern False() {
  return OfNumber(Number::kFalse);
}

// m::Add(x, y), m::Transpose(x), m::Concatenate() ...
#define TOK_OP(id, ...)                                                              \
  template <typename... P>                                                           \
  Pattern id(const P&... operands) {                                                 \
    return Pattern({Pattern::Kind::kOp, Op::k##id, {}, -1, {Pattern(operands)...}}); \
  }
#include "ir/ops.def"

// What a pattern matched.
class Match {
 public:
  Instr* root() const { return root_; }
  const Shape& shape() const { return root_->shape(); }
  ElementType type() const { return root_->shape().type(); }
  // What a variable is bound to. It must be in the pattern.
  Instr* operator[](Var var) const { return bound_[var.index]; }
  // The constant that fills what a variable of Splat() is bound to.
  const Literal& number(Var var) const { return *SplatOf(bound_[var.index]); }
  // The instructions that ops of the pattern matched, without the root.
  const std::vector<Instr*>& inner() const { return inner_; }

 private:
  friend class Matcher;
  Instr* root_ = nullptr;
  std::array<Instr*, kVars> bound_{};
  std::vector<Instr*> inner_;
};

// Linear in the pattern, times two for each commutative op in it.
std::optional<Match> Find(const Pattern& pattern, Instr* instr);

}  // namespace m
}  // namespace tokamak
