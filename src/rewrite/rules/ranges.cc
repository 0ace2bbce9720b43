#include "rewrite/rules/ranges.h"

#include <algorithm>

namespace tokamak {
namespace {

// Levels of operands that are visited. Chosen: with two operands per level, at most 2^5
// instructions.
constexpr int kDepth = 5;

std::optional<IntRange> Look(const Instr* instr, int depth);

bool Fits(IntRange range, ElementType type) {
  std::optional<IntRange> whole = RangeOfType(type);
  if (!whole) return range.low >= 0;  // u64
  return range.low >= whole->low && range.high <= whole->high;
}

bool AreSmall(IntRange a, IntRange b) {
  // Products of two such bounds fit in 64 bits.
  constexpr int64_t kSmall = int64_t{1} << 31;
  for (int64_t end : {a.low, a.high, b.low, b.high})
    if (end > kSmall || end < -kSmall) return false;
  return true;
}

// Sums and products of small bounds do not overflow; the caller checks the range of the type.
std::optional<IntRange> OfArithmetic(Op op, IntRange a, IntRange b) {
  if (!AreSmall(a, b)) return std::nullopt;
  if (op == Op::kAdd) return IntRange{a.low + b.low, a.high + b.high};
  if (op == Op::kSubtract) return IntRange{a.low - b.high, a.high - b.low};
  auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return IntRange{low, high};
}

std::optional<IntRange> OfTwo(const Instr* instr, int depth) {
  std::optional<IntRange> a = Look(instr->operand(0), depth - 1);
  std::optional<IntRange> b = Look(instr->operand(1), depth - 1);
  switch (instr->op()) {
    case Op::kMaximum:
      if (!a || !b) return std::nullopt;
      return IntRange{std::max(a->low, b->low), std::max(a->high, b->high)};
    case Op::kMinimum:
      if (!a || !b) return std::nullopt;
      return IntRange{std::min(a->low, b->low), std::min(a->high, b->high)};
    case Op::kAnd:  // no greater than either operand that is nonnegative
      if (a && b && a->low >= 0 && b->low >= 0) return IntRange{0, std::min(a->high, b->high)};
      if (a && a->low >= 0) return IntRange{0, a->high};
      if (b && b->low >= 0) return IntRange{0, b->high};
      return std::nullopt;
    case Op::kRemainder:
      // x % 0 is x, so the divisor must be known to be nonzero.
      if (!a || !b || a->low < 0 || b->low <= 0) return std::nullopt;
      return IntRange{0, std::min(a->high, b->high - 1)};
    case Op::kDivide:
      if (!a || !b || a->low < 0 || b->low <= 0) return std::nullopt;
      return IntRange{a->low / b->high, a->high / b->low};
    case Op::kShiftRightLogical:
      if (!a || !b || a->low < 0 || b->low < 0) return std::nullopt;
      return IntRange{0, b->low > 62 ? 0 : a->high >> b->low};
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
      if (!a || !b) return std::nullopt;
      return OfArithmetic(instr->op(), *a, *b);
    default:
      return std::nullopt;
  }
}

std::optional<IntRange> OfConvert(const Instr* instr, int depth) {
  const Instr* from = instr->operand(0);
  ElementType type = from->shape().type();
  if (type == ElementType::kPred) return IntRange{0, 1};
  if (!IsInteger(type)) return std::nullopt;
  return Look(from, depth - 1);
}

std::optional<IntRange> OfClamp(const Instr* instr, int depth) {
  std::optional<IntRange> low = Look(instr->operand(0), depth - 1);
  std::optional<IntRange> x = Look(instr->operand(1), depth - 1);
  std::optional<IntRange> high = Look(instr->operand(2), depth - 1);
  if (!low || !x || !high) return std::nullopt;
  auto clamp = [](int64_t value, int64_t from, int64_t to) {
    return std::min(std::max(value, from), to);
  };
  return IntRange{clamp(x->low, low->low, high->low), clamp(x->high, low->high, high->high)};
}

std::optional<IntRange> OfOp(const Instr* instr, int depth) {
  switch (instr->op()) {
    case Op::kIota: {
      int64_t size = SizeAt(instr->shape(), instr->attrs<IotaAttrs>().dimension);
      return IntRange{0, std::max<int64_t>(size - 1, 0)};
    }
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kTranspose:
    case Op::kReverse:
    case Op::kSlice:
    case Op::kDynamicSlice:
    case Op::kGather:
    case Op::kCopy:
      return Look(instr->operand(0), depth - 1);
    case Op::kConvert:
      return OfConvert(instr, depth);
    case Op::kClamp:
      return OfClamp(instr, depth);
    case Op::kSign:
      return IntRange{-1, 1};
    case Op::kPopulationCount:
    case Op::kCountLeadingZeros:
      return IntRange{0, InfoOf(instr->shape().type()).bits};
    case Op::kSelect: {
      std::optional<IntRange> a = Look(instr->operand(1), depth - 1);
      std::optional<IntRange> b = Look(instr->operand(2), depth - 1);
      if (!a || !b) return std::nullopt;
      return IntRange{std::min(a->low, b->low), std::max(a->high, b->high)};
    }
    default:
      return instr->operand_count() == 2 ? OfTwo(instr, depth) : std::nullopt;
  }
}

std::optional<IntRange> Look(const Instr* instr, int depth) {
  if (!IsStaticArray(instr) || instr->shape().quant() != nullptr) return std::nullopt;
  ElementType type = instr->shape().type();
  if (type == ElementType::kPred) return IntRange{0, 1};
  if (!IsInteger(type)) return std::nullopt;
  std::optional<IntRange> whole = RangeOfType(type);
  if (std::optional<int64_t> value = IntOf(instr)) {
    if (!whole && *value < 0) return std::nullopt;  // u64 above the greatest s64
    return IntRange{*value, *value};
  }
  if (depth == 0) return whole;
  std::optional<IntRange> range = OfOp(instr, depth);
  // Out-of-range values wrap around.
  return range && Fits(*range, type) ? range : whole;
}

}  // namespace

std::optional<IntRange> RangeOf(const Instr* instr) {
  return Look(instr, kDepth);
}

}  // namespace tokamak
