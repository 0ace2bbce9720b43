// Shifts. A shift by the width or more gives 0, or copies of the sign bit. The shift amount is
// unsigned, whatever its type.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::c;
using m::x;

bool ShiftsOutAllBits(const m::Match& match) {
  auto width = static_cast<uint64_t>(InfoOf(match.type()).bits);
  uint64_t mask = width < 64 ? (uint64_t{1} << width) - 1 : ~uint64_t{0};
  return (match.number(c).BitsAt(0) & mask) >= width;
}

}  // namespace

std::span<const Rule> ShiftRules() {
  static constexpr Rule kRules[] = {
      {"shift-left.zero", "x << 0 is x", m::ShiftLeft(x, m::Zero()), x},
      {"shift-right-logical.zero", "x >> 0 is x", m::ShiftRightLogical(x, m::Zero()), x},
      {"shift-right-arithmetic.zero", "x >> 0 is x", m::ShiftRightArithmetic(x, m::Zero()), x},
      {"shift-right-logical.of-zero", "0 >> x is 0", m::ShiftRightLogical(m::Zero(), x), m::Zero()},
      {"shift-right-logical.overshift", "x >> the width or more is 0",
       m::ShiftRightLogical(x, m::Splat(c)), m::Zero(), ShiftsOutAllBits,
       R"(x = s8[61] parameter(0)
          c = s8[] constant(-1)
          b = s8[61] broadcast(c), dimensions={}
          ROOT d = s8[61] shift-right-logical(x, b))"},
  };
  return kRules;
}

}  // namespace tokamak
