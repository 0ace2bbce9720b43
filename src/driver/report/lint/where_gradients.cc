// lint.where-nan: the gradient of jnp.where makes NaN.
//
// The gradient of where(p, f(x), c) is where(p, g, 0) * f'(x). Where p is false this is 0 * f'(x):
// NaN if f'(x) is infinite there. A finding needs three things. f' has a pole at 0 of a value u.
// The condition p compares u, or what u is computed from with constants, with a constant. And p is
// false at u = 0: the program itself says that u may be 0.

#include <cmath>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "ir/compare_direction.h"
#include "rewrite/match.h"

namespace tokamak {
namespace {

// Follows renames that keep each element.
const Instr* SameElement(const Instr* value) {
  while ((value->op() == Op::kReshape || value->op() == Op::kConvert ||
          value->op() == Op::kBroadcast || value->op() == Op::kCopy) &&
         value->operand_count() == 1)
    value = value->operand(0);
  return value;
}

std::optional<double> UniformNumber(const Instr* value) {
  const Literal* literal = SplatOf(SameElement(value));
  if (literal == nullptr) return std::nullopt;
  if (IsReal(literal->type())) return literal->DoubleAt(0);
  if (IsInteger(literal->type())) return static_cast<double>(literal->IntAt(0));
  return std::nullopt;
}

bool IsUniformZero(const Instr* value) {
  std::optional<double> number = UniformNumber(value);
  return number && *number == 0;
}

// u = scale * of + offset.
struct Affine {
  const Instr* of;
  double scale = 1, offset = 0;
};

Affine AffineOf(const Instr* value) {
  constexpr int kSteps = 4;  // operations followed (chosen)
  Affine affine{SameElement(value)};
  for (int i = 0; i < kSteps; ++i) {
    const Instr* of = affine.of;
    if (of->op() == Op::kNegate) {
      affine.scale = -affine.scale;
      affine.of = SameElement(of->operand(0));
      continue;
    }
    if (of->operand_count() != 2) return affine;
    std::optional<double> left = UniformNumber(of->operand(0)),
                          right = UniformNumber(of->operand(1));
    if (left.has_value() == right.has_value()) return affine;
    double number = left ? *left : *right;
    const Instr* rest = of->operand(left ? 1 : 0);
    if (of->op() == Op::kAdd) {
      affine.offset += affine.scale * number;
    } else if (of->op() == Op::kSubtract) {
      affine.offset += left ? affine.scale * number : -affine.scale * number;
      if (left) affine.scale = -affine.scale;
    } else if (of->op() == Op::kMultiply) {
      affine.scale *= number;
    } else {
      return affine;
    }
    affine.of = SameElement(rest);
  }
  return affine;
}

// The value at whose zero a factor is infinite: x of 1/x, 1/sqrt(x), rsqrt(x), x^-2; null if none.
const Instr* PoleOfDivisor(const Instr* divisor) {
  divisor = SameElement(divisor);
  while (true) {
    if (divisor->op() == Op::kSqrt || divisor->op() == Op::kCbrt) {
      divisor = SameElement(divisor->operand(0));
    } else if (divisor->op() == Op::kMultiply &&
               SameElement(divisor->operand(0)) == SameElement(divisor->operand(1))) {
      divisor = SameElement(divisor->operand(0));
    } else if (divisor->op() == Op::kMultiply && UniformNumber(divisor->operand(0))) {
      divisor = SameElement(divisor->operand(1));
    } else if (divisor->op() == Op::kMultiply && UniformNumber(divisor->operand(1))) {
      divisor = SameElement(divisor->operand(0));
    } else {
      return divisor;
    }
  }
}

const Instr* PoleOfFactor(const Instr* factor) {
  factor = SameElement(factor);
  while (factor->op() == Op::kMultiply) {
    bool left = UniformNumber(factor->operand(0)).has_value();
    if (!left && !UniformNumber(factor->operand(1))) return nullptr;
    factor = SameElement(factor->operand(left ? 1 : 0));
  }
  if (factor->op() == Op::kRsqrt) return SameElement(factor->operand(0));
  if (factor->op() == Op::kDivide) return PoleOfDivisor(factor->operand(1));
  if (factor->op() != Op::kPower) return nullptr;
  std::optional<double> exponent = UniformNumber(factor->operand(1));
  return exponent && *exponent < 0 ? SameElement(factor->operand(0)) : nullptr;
}

// The select in a gradient: where(p, g, 0), behind constant factors and signs.
const Instr* MaskedGradient(const Instr* value) {
  constexpr int kFactors = 4;  // followed (chosen)
  for (int i = 0; i < kFactors; ++i) {
    value = SameElement(value);
    if (value->op() == Op::kSelect) {
      bool masks = IsUniformZero(value->operand(1)) != IsUniformZero(value->operand(2));
      return masks ? value : nullptr;
    }
    if (value->op() == Op::kNegate) {
      value = value->operand(0);
    } else if (value->op() == Op::kMultiply && UniformNumber(value->operand(0))) {
      value = value->operand(1);
    } else if (value->op() == Op::kMultiply && UniformNumber(value->operand(1))) {
      value = value->operand(0);
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

bool IsGradient(const Instr& instr) {
  for (const Origin* origin : instr.parent()->module()->origins().Of(instr.origins()))
    if (origin->op_name.find("transpose(") != std::string::npos) return true;
  return false;
}

// Whether the select leaves out the gradient where `pole` is 0.
bool LeavesOutPole(const Instr& select, const Instr* pole) {
  const Instr* predicate = SameElement(select.operand(0));
  if (predicate->op() != Op::kCompare) return false;
  std::optional<double> limit = UniformNumber(predicate->operand(1));
  const Instr* compared = predicate->operand(0);
  CompareDirection direction = predicate->attrs<CompareAttrs>().direction;
  if (!limit) {
    limit = UniformNumber(predicate->operand(0));
    compared = predicate->operand(1);
    direction = Swapped(direction);
  }
  if (!limit) return false;
  Affine of_pole = AffineOf(pole), of_compared = AffineOf(compared);
  if (of_pole.of != of_compared.of || of_pole.scale == 0) return false;
  // A guarded value is bounded away from its pole: it is not the value that is compared.
  double at_pole = -of_pole.offset / of_pole.scale;
  bool is_true = Holds(of_compared.scale * at_pole + of_compared.offset, direction, *limit);
  bool zero_if_true = IsUniformZero(select.operand(1));
  return zero_if_true == is_true;
}

// `reported`: selects that have a finding.
void LookAtProduct(LintSubject& subject, const Instr& instr,
                   std::unordered_set<const Instr*>& reported) {
  bool divides = instr.op() == Op::kDivide;
  for (size_t side = 0; side < (divides ? 1U : 2U); ++side) {
    const Instr* select = MaskedGradient(instr.operand(side));
    if (select == nullptr) continue;
    const Instr* other = instr.operand(1 - side);
    const Instr* pole = divides ? PoleOfDivisor(other) : PoleOfFactor(other);
    if (pole == nullptr || !LeavesOutPole(*select, pole)) continue;
    if (!reported.insert(select).second) return;
    std::vector<const Instr*> at = {&instr, select};
    subject.Add({.rule = "lint.where-nan",
                 .lines = LintLinesOf(at),
                 .text = "the gradient is NaN where the condition of jnp.where is false: it is 0 "
                         "times an infinite derivative of the value that is not used; use "
                         "jnp.where inside the function, too: f(jnp.where(p, x, 1))",
                 .fix = {.kind = "safe_where", .text = "jnp.where(p, x, 1)"}});
    return;
  }
}

}  // namespace

void LintWhereGradients(LintSubject& subject) {
  if (!subject.has_written()) return;
  std::unordered_set<const Instr*> reported;
  for (const auto& computation : subject.folded().computations())
    for (const Instr* instr : computation->Instrs())
      if ((instr->op() == Op::kMultiply || instr->op() == Op::kDivide) && IsGradient(*instr) &&
          IsReal(instr->shape().type()))
        LookAtProduct(subject, *instr, reported);
}

}  // namespace tokamak
