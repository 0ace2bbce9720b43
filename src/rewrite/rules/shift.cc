// Shifts. A shift by the width or more gives 0, or copies of the sign bit. The shift amount is
// unsigned, whatever its type.

#include <algorithm>

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::c;
using m::d;
using m::x;

int Width(const m::Match& match) {
  return InfoOf(match.type()).bits;
}
uint64_t MaskOf(int bits) {
  return bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t{0};
}
uint64_t Distance(const m::Match& match, m::Var var) {
  return match.number(var).BitsAt(0) & MaskOf(Width(match));
}
bool ShiftsOutAllBits(const m::Match& match) {
  return Distance(match, c) >= static_cast<uint64_t>(Width(match));
}

// The sum of both shift amounts, at most the width.
uint64_t Sum(const m::Match& match) {
  auto width = static_cast<uint64_t>(Width(match));
  return std::min(width, std::min(width, Distance(match, c)) + std::min(width, Distance(match, d)));
}
Instr* ShiftBySum(Editor& edit, const m::Match& match) {
  auto sum = static_cast<int64_t>(Sum(match));
  if (match.root()->op() == Op::kShiftRightArithmetic)
    sum = std::min<int64_t>(sum, Width(match) - 1);
  if (sum >= Width(match)) return FilledInt(edit, match, 0);
  return WithInt(edit, match, match.root()->op(), match[x], sum);
}
bool IsSameDistance(const m::Match& match) {
  return Distance(match, c) == Distance(match, d) && !ShiftsOutAllBits(match);
}

}  // namespace

std::span<const Rule> ShiftRules() {
  constexpr std::string_view kOvershiftText = R"(x = s8[61] parameter(0)
          c = s8[] constant(-1)
          b = s8[61] broadcast(c), dimensions={}
          ROOT d = s8[61] SHIFT(x, b))";
  static const auto overshift = [kOvershiftText](std::string_view op) {
    std::string text(kOvershiftText);
    return text.replace(text.find("SHIFT"), 5, op);
  };
  static const std::string shifts_all_left = overshift("shift-left"),
                           shifts_all_right = overshift("shift-right-logical"),
                           shifts_all_arithmetic = overshift("shift-right-arithmetic");
  static const Rule kRules[] = {
      {"shift-left.zero", "x << 0 is x", m::ShiftLeft(x, m::Zero()), x},
      {"shift-right-logical.zero", "x >> 0 is x", m::ShiftRightLogical(x, m::Zero()), x},
      {"shift-right-arithmetic.zero", "x >> 0 is x", m::ShiftRightArithmetic(x, m::Zero()), x},
      {"shift-left.of-zero", "0 << x is 0", m::ShiftLeft(m::Zero(), x), m::Zero()},
      {"shift-right-logical.of-zero", "0 >> x is 0", m::ShiftRightLogical(m::Zero(), x), m::Zero()},
      {"shift-right-arithmetic.of-zero", "0 >> x is 0", m::ShiftRightArithmetic(m::Zero(), x),
       m::Zero()},
      {"shift-left.overshift", "x << the width or more is 0", m::ShiftLeft(x, m::Splat(c)),
       m::Zero(), ShiftsOutAllBits, shifts_all_left},
      {"shift-right-logical.overshift", "x >> the width or more is 0",
       m::ShiftRightLogical(x, m::Splat(c)), m::Zero(), ShiftsOutAllBits, shifts_all_right},
      {"shift-right-arithmetic.overshift", "x >> the width or more is all sign",
       m::ShiftRightArithmetic(x, m::Splat(c)),
       [](Editor& edit, const m::Match& match) {
         return WithInt(edit, match, match.root()->op(), match[x], Width(match) - 1);
       },
       ShiftsOutAllBits, shifts_all_arithmetic},
      {"shift-left.composes", "(x << c) << d is x << (c + d)",
       m::ShiftLeft(m::ShiftLeft(x, m::Splat(c)), m::Splat(d)), ShiftBySum},
      {"shift-right-logical.composes", "(x >> c) >> d is x >> (c + d)",
       m::ShiftRightLogical(m::ShiftRightLogical(x, m::Splat(c)), m::Splat(d)), ShiftBySum},
      {"shift-right-arithmetic.composes", "(x >> c) >> d is x >> (c + d)",
       m::ShiftRightArithmetic(m::ShiftRightArithmetic(x, m::Splat(c)), m::Splat(d)), ShiftBySum},
      {"shift-right-logical.of-left", "(x << c) >> c keeps the low bits",
       m::ShiftRightLogical(m::ShiftLeft(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         int kept = Width(match) - static_cast<int>(Distance(match, c));
         return WithInt(edit, match, Op::kAnd, match[x], static_cast<int64_t>(MaskOf(kept)));
       },
       IsSameDistance},
      {"shift-left.of-right", "(x >> c) << c keeps the high bits",
       m::ShiftLeft(m::ShiftRightLogical(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         uint64_t low = MaskOf(static_cast<int>(Distance(match, c)));
         return WithInt(edit, match, Op::kAnd, match[x], static_cast<int64_t>(~low));
       },
       IsSameDistance},
      {"shift-left.of-right-arithmetic", "(x >> c) << c keeps the high bits",
       m::ShiftLeft(m::ShiftRightArithmetic(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         uint64_t low = MaskOf(static_cast<int>(Distance(match, c)));
         return WithInt(edit, match, Op::kAnd, match[x], static_cast<int64_t>(~low));
       },
       IsSameDistance},
  };
  return kRules;
}

}  // namespace tokamak
