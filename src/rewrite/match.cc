#include "rewrite/match.h"

#include <cmath>

namespace tokamak {

const Literal* SplatOf(const Instr* instr) {
  if (instr->op() == Op::kBroadcast) instr = instr->operand(0);
  if (instr->op() != Op::kConstant || !instr->shape().IsArray()) return nullptr;
  const Literal& literal = instr->attrs<ConstantAttrs>().literal;
  if (!literal.shape().IsArray() || literal.data().empty()) return nullptr;
  if (!literal.is_splat() && literal.shape().ElementCount() != 1) return nullptr;
  return &literal;
}

namespace m {
namespace {

bool IsNumber(const Literal& literal, Number wanted) {
  ElementType type = literal.type();
  if (wanted == Number::kAny) return true;
  if (wanted == Number::kFalse || wanted == Number::kTrue)
    return type == ElementType::kPred && (literal.IntAt(0) != 0) == (wanted == Number::kTrue);
  if (wanted == Number::kAllOnes) {
    if (type == ElementType::kPred) return literal.IntAt(0) != 0;
    int bits = InfoOf(type).bits;
    uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    return IsInteger(type) && (literal.BitsAt(0) & mask) == mask;
  }
  if (type == ElementType::kPred) return false;
  if (IsInteger(type)) {
    int64_t value = literal.IntAt(0);
    if (wanted == Number::kOne) return value == 1;
    if (wanted == Number::kMinusOne) return IsSigned(type) && value == -1;
    return wanted != Number::kNegativeZero && value == 0;
  }
  std::complex<double> value =
      IsComplex(type) ? literal.ComplexAt(0) : std::complex<double>(literal.DoubleAt(0), 0);
  bool negative = std::signbit(value.real()) && (!IsComplex(type) || std::signbit(value.imag()));
  bool positive = !std::signbit(value.real()) && !std::signbit(value.imag());
  switch (wanted) {
    case Number::kZero:
      return value == 0.0;
    case Number::kPositiveZero:
      return value == 0.0 && positive;
    case Number::kNegativeZero:
      return value == 0.0 && negative;
    case Number::kOne:
      return value == 1.0 && positive;
    case Number::kMinusOne:
      return value == -1.0 && !std::signbit(value.imag());
    default:
      return false;
  }
}

}  // namespace

class PatternMatcher {
 public:
  explicit PatternMatcher(Instr* root) { match_.root_ = root; }

  bool Matches(const Pattern::Node& node, Instr* instr) {
    if (node.kind == Pattern::Kind::kOp && !MatchesOp(node, instr)) return false;
    if (node.kind == Pattern::Kind::kNumber) {
      const Literal* literal = SplatOf(instr);
      if (literal == nullptr || !IsNumber(*literal, node.number)) return false;
    }
    if (node.var < 0) return true;
    Instr*& bound = match_.bound_[static_cast<size_t>(node.var)];
    if (bound != nullptr) return bound == instr;
    bound = instr;
    return true;
  }

  Match Take() { return std::move(match_); }

 private:
  bool MatchesOp(const Pattern::Node& node, Instr* instr) {
    if (instr->op() != node.op) return false;
    if (instr != match_.root_) match_.inner_.push_back(instr);
    if (node.operand_count == 0) return true;
    if (node.operand_count != instr->operand_count()) return false;
    if (!IsCommutative(node.op)) return MatchesOperands(node, instr, false);
    Match before = match_;
    if (MatchesOperands(node, instr, false)) return true;
    match_ = std::move(before);
    return MatchesOperands(node, instr, true);
  }

  bool MatchesOperands(const Pattern::Node& node, Instr* instr, bool exchanged) {
    for (size_t i = 0; i < node.operand_count; ++i)
      if (!Matches(node.operand(i), instr->operand(exchanged ? 1 - i : i))) return false;
    return true;
  }

  Match match_;
};

std::optional<Match> Find(const Pattern& pattern, Instr* instr) {
  PatternMatcher matcher(instr);
  if (!matcher.Matches(pattern.node(), instr)) return std::nullopt;
  return matcher.Take();
}

}  // namespace m
}  // namespace tokamak
