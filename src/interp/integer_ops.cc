// Elementwise ops on integers and pred. Where the StableHLO specification is silent, results follow
// XLA: x/0 = -1, x%0 = x, MIN/-1 = MIN, shifts by the width or more give 0 or the sign.

#include <bit>
#include <cstdint>

#include "interp/scalar_ops.h"

namespace tokamak {
namespace {

uint64_t Mask(int bits) {
  return bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t{0};
}
uint64_t Low(int64_t x, int bits) {
  return static_cast<uint64_t>(x) & Mask(bits);
}

// Wrapping arithmetic, computed in unsigned integers, where C++ defines it.
template <typename Fn>
int64_t Wrapping(int64_t x, int64_t y, Fn fn) {
  return static_cast<int64_t>(fn(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
}

int64_t DivideSigned(int64_t x, int64_t y, int) {
  if (y == 0) return -1;
  if (y == -1) return Wrapping(0, x, [](uint64_t a, uint64_t b) { return a - b; });
  return x / y;
}
int64_t RemainderSigned(int64_t x, int64_t y, int) {
  if (y == 0) return x;
  return y == -1 ? 0 : x % y;
}
uint64_t PowerOf(uint64_t x, uint64_t y) {
  uint64_t result = 1;
  for (; y > 0; y >>= 1, x *= x)
    if ((y & 1) != 0) result *= x;
  return result;
}
// A negative power of an integer is 0 except for the bases 1 and -1.
int64_t PowerSigned(int64_t x, int64_t y, int) {
  if (y >= 0) return Wrapping(x, y, PowerOf);
  if (x == 1) return 1;
  if (x == -1) return (y & 1) != 0 ? -1 : 1;
  return 0;
}

bool ShiftsOutAllBits(uint64_t shift, int bits) {
  return shift >= static_cast<uint64_t>(bits);
}
int64_t ShiftLeftSigned(int64_t x, int64_t y, int bits) {
  uint64_t shift = Low(y, bits);
  return ShiftsOutAllBits(shift, bits) ? 0
                                       : static_cast<int64_t>(static_cast<uint64_t>(x) << shift);
}
int64_t ShiftRightLogicalSigned(int64_t x, int64_t y, int bits) {
  uint64_t shift = Low(y, bits);
  return ShiftsOutAllBits(shift, bits) ? 0 : static_cast<int64_t>(Low(x, bits) >> shift);
}
int64_t ShiftRightArithmeticSigned(int64_t x, int64_t y, int bits) {
  uint64_t shift = Low(y, bits);
  if (ShiftsOutAllBits(shift, bits)) return x < 0 ? -1 : 0;
  return x >> shift;
}
// The sign of an unsigned number is its highest bit.
uint64_t ShiftRightArithmeticUnsigned(uint64_t x, uint64_t y, int bits) {
  bool negative = (x >> (bits - 1) & 1) != 0;
  uint64_t extended = negative ? x | ~Mask(bits) : x;
  if (ShiftsOutAllBits(y, bits)) return negative ? ~uint64_t{0} : 0;
  return static_cast<uint64_t>(static_cast<int64_t>(extended) >> y);
}

int64_t LeadingZeros(uint64_t low, int bits) {
  return std::countl_zero(low) - (64 - bits);
}

}  // namespace

SignedUnaryFn SignedUnary(Op op) {
  switch (op) {
    case Op::kAbs:
      return [](int64_t x, int) {
        return x < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x;
      };
    case Op::kNegate:
      return [](int64_t x, int) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); };
    case Op::kSign:
      return [](int64_t x, int) { return static_cast<int64_t>(x > 0) - (x < 0); };
    case Op::kNot:
      return [](int64_t x, int) { return ~x; };
    case Op::kPopulationCount:
      return [](int64_t x, int bits) { return static_cast<int64_t>(std::popcount(Low(x, bits))); };
    case Op::kCountLeadingZeros:
      return [](int64_t x, int bits) { return LeadingZeros(Low(x, bits), bits); };
    case Op::kConj:
      return [](int64_t x, int) { return x; };
    case Op::kSquare:
      return [](int64_t x, int) {
        return Wrapping(x, x, [](uint64_t a, uint64_t b) { return a * b; });
      };
    default:
      return nullptr;
  }
}

SignedBinaryFn SignedBinary(Op op) {
  switch (op) {
    case Op::kAdd:
      return [](int64_t x, int64_t y, int) {
        return Wrapping(x, y, [](uint64_t a, uint64_t b) { return a + b; });
      };
    case Op::kSubtract:
      return [](int64_t x, int64_t y, int) {
        return Wrapping(x, y, [](uint64_t a, uint64_t b) { return a - b; });
      };
    case Op::kMultiply:
      return [](int64_t x, int64_t y, int) {
        return Wrapping(x, y, [](uint64_t a, uint64_t b) { return a * b; });
      };
    case Op::kMultiplyHigh:
      return [](int64_t x, int64_t y, int bits) {
        __extension__ using Wide = __int128;
        return static_cast<int64_t>((static_cast<Wide>(x) * y) >> bits);
      };
    case Op::kDivide:
      return DivideSigned;
    case Op::kRemainder:
      return RemainderSigned;
    case Op::kPower:
      return PowerSigned;
    case Op::kMaximum:
      return [](int64_t x, int64_t y, int) { return x > y ? x : y; };
    case Op::kMinimum:
      return [](int64_t x, int64_t y, int) { return x < y ? x : y; };
    case Op::kAnd:
      return [](int64_t x, int64_t y, int) { return x & y; };
    case Op::kOr:
      return [](int64_t x, int64_t y, int) { return x | y; };
    case Op::kXor:
      return [](int64_t x, int64_t y, int) { return x ^ y; };
    case Op::kShiftLeft:
      return ShiftLeftSigned;
    case Op::kShiftRightLogical:
      return ShiftRightLogicalSigned;
    case Op::kShiftRightArithmetic:
      return ShiftRightArithmeticSigned;
    default:
      return nullptr;
  }
}

UnsignedUnaryFn UnsignedUnary(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kConj:
      return [](uint64_t x, int) { return x; };
    case Op::kNegate:
      return [](uint64_t x, int) { return 0 - x; };
    case Op::kSign:
      return [](uint64_t x, int) { return static_cast<uint64_t>(x != 0); };
    case Op::kNot:
      return [](uint64_t x, int) { return ~x; };
    case Op::kPopulationCount:
      return [](uint64_t x, int) { return static_cast<uint64_t>(std::popcount(x)); };
    case Op::kCountLeadingZeros:
      return [](uint64_t x, int bits) { return static_cast<uint64_t>(LeadingZeros(x, bits)); };
    case Op::kSquare:
      return [](uint64_t x, int) { return x * x; };
    default:
      return nullptr;
  }
}

UnsignedBinaryFn UnsignedBinary(Op op) {
  switch (op) {
    case Op::kAdd:
      return [](uint64_t x, uint64_t y, int) { return x + y; };
    case Op::kSubtract:
      return [](uint64_t x, uint64_t y, int) { return x - y; };
    case Op::kMultiply:
      return [](uint64_t x, uint64_t y, int) { return x * y; };
    case Op::kMultiplyHigh:
      return [](uint64_t x, uint64_t y, int bits) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<uint64_t>((static_cast<Wide>(x) * y) >> bits);
      };
    case Op::kDivide:
      return [](uint64_t x, uint64_t y, int) { return y == 0 ? ~uint64_t{0} : x / y; };
    case Op::kRemainder:
      return [](uint64_t x, uint64_t y, int) { return y == 0 ? x : x % y; };
    case Op::kPower:
      return [](uint64_t x, uint64_t y, int) { return PowerOf(x, y); };
    case Op::kMaximum:
      return [](uint64_t x, uint64_t y, int) { return x > y ? x : y; };
    case Op::kMinimum:
      return [](uint64_t x, uint64_t y, int) { return x < y ? x : y; };
    case Op::kAnd:
      return [](uint64_t x, uint64_t y, int) { return x & y; };
    case Op::kOr:
      return [](uint64_t x, uint64_t y, int) { return x | y; };
    case Op::kXor:
      return [](uint64_t x, uint64_t y, int) { return x ^ y; };
    case Op::kShiftLeft:
      return
          [](uint64_t x, uint64_t y, int bits) { return ShiftsOutAllBits(y, bits) ? 0 : x << y; };
    case Op::kShiftRightLogical:
      return
          [](uint64_t x, uint64_t y, int bits) { return ShiftsOutAllBits(y, bits) ? 0 : x >> y; };
    case Op::kShiftRightArithmetic:
      return ShiftRightArithmeticUnsigned;
    default:
      return nullptr;
  }
}

PredUnaryFn PredUnary(Op op) {
  switch (op) {
    case Op::kNot:
      return [](uint8_t x) { return static_cast<uint8_t>(x == 0); };
    case Op::kConj:
      return [](uint8_t x) { return x; };
    default:
      return nullptr;
  }
}

PredBinaryFn PredBinary(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kMaximum:
    case Op::kOr:
      return [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x | y); };
    case Op::kMultiply:
    case Op::kMinimum:
    case Op::kAnd:
      return [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x & y); };
    case Op::kXor:
    case Op::kSubtract:
      return [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x ^ y); };
    default:
      return nullptr;
  }
}

}  // namespace tokamak
