#include "kernel/range.h"

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

// Saturating arithmetic: INT64_MIN and INT64_MAX are unknown bounds.
int64_t AddEnds(int64_t x, int64_t y) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(x, y, &sum)) return sum;
  return x > 0 ? INT64_MAX : INT64_MIN;
}

int64_t MulEnds(int64_t x, int64_t y) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(x, y, &product)) return product;
  return (x < 0) == (y < 0) ? INT64_MAX : INT64_MIN;
}

int64_t Negated(int64_t x) {
  return x == INT64_MIN ? INT64_MAX : -x;
}

bool IsUnbounded(const Range& r) {
  return r.low == INT64_MIN || r.high == INT64_MAX;
}

Range Sum(const Range& x, const Range& y) {
  Range sum{AddEnds(x.low, y.low), AddEnds(x.high, y.high), std::gcd(x.stride, y.stride)};
  // A sum that may wrap has no known range.
  if (IsUnbounded(x) || IsUnbounded(y) || IsUnbounded(sum)) return {};
  return sum;
}

Range Product(const Range& x, const Range& y) {
  if (IsUnbounded(x) || IsUnbounded(y)) return {};
  int64_t ends[] = {MulEnds(x.low, y.low), MulEnds(x.low, y.high), MulEnds(x.high, y.low),
                    MulEnds(x.high, y.high)};
  Range product{*std::ranges::min_element(ends), *std::ranges::max_element(ends), 1};
  if (IsUnbounded(product)) return {};
  product.stride = MulEnds(x.stride, y.stride);
  return product;
}

// Handles positive constant divisors only, which is what indices need.
Range Quotient(const Range& x, const Range& y) {
  if (!y.IsConstant() || y.low <= 0 || IsUnbounded(x)) return {};
  Range quotient{x.low / y.low, x.high / y.low, 1};
  if (x.stride % y.low == 0) quotient.stride = x.stride / y.low;
  return quotient;
}

Range Remainder(const Range& x, const Range& y) {
  if (!y.IsConstant() || y.low <= 0) return {};
  int64_t below = y.low - 1;
  Range rest{x.low >= 0 ? 0 : -below, x.high <= 0 ? 0 : below, std::gcd(x.stride, y.low)};
  if (x.low >= 0) rest.high = std::min(rest.high, x.high);
  return rest;
}

Range RangeOfConstant(int64_t value) {
  return {value, value, value == INT64_MIN ? 1 : std::abs(value)};
}

// The full range of the type: arithmetic in types other than index may wrap.
Range RangeOfType(ScalarType type) {
  int bits = InfoOf(type).bits;
  if (IsFloat(type) || bits == 64) return {};
  if (IsSigned(type)) return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1, 1};
  return {0, (int64_t{1} << bits) - 1, 1};
}

}  // namespace

// Computes ranges in node order. Operands precede users, so no recursion is needed.
Range RangeTable::Of(const Kernel& kernel, ValueId id) {
  for (size_t i = ranges_.size(); i <= static_cast<size_t>(id); ++i)
    ranges_.push_back(Find(kernel, ValueId{static_cast<uint32_t>(i)}));
  return ranges_[static_cast<size_t>(id)];
}

Range RangeTable::Find(const Kernel& kernel, ValueId id) const {
  const ScalarNode& node = kernel.node(id);
  if (node.prim == Prim::kAnd)
    for (int i : {0, 1}) {
      const ScalarNode& mask = kernel.node(node.operands[static_cast<size_t>(i)]);
      if (mask.prim != Prim::kConst || IsFloat(mask.type)) continue;
      if (int64_t most = IntOfBits(mask.type, mask.bits); most >= 0) return {0, most, 1};
    }
  if (node.type != ScalarType::kIndex && node.prim != Prim::kConst) return RangeOfType(node.type);
  auto known = [&](ValueId of) { return ranges_[static_cast<size_t>(of)]; };
  auto operand = [&](int i) { return known(node.operands[static_cast<size_t>(i)]); };
  switch (node.prim) {
    case Prim::kConst:
      return IsFloat(node.type) ? Range{} : RangeOfConstant(IntOfBits(node.type, node.bits));
    case Prim::kLoop: {
      Range extent = known(kernel.loop(node.loop()).extent);
      return {0, extent.high == INT64_MAX ? INT64_MAX - 1 : std::max<int64_t>(extent.high - 1, 0),
              1};
    }
    case Prim::kExtent: {
      const LaunchExtent& extent = kernel.extent(node.extent());
      return {extent.minimum, std::min(extent.maximum, INT64_MAX - 1), extent.multiple_of};
    }
    case Prim::kAdd:
      return Sum(operand(0), operand(1));
    case Prim::kSub: {
      Range y = operand(1);
      return Sum(operand(0), {Negated(y.high), Negated(y.low), y.stride});
    }
    case Prim::kMul:
      return Product(operand(0), operand(1));
    case Prim::kDiv:
      return Quotient(operand(0), operand(1));
    case Prim::kRem:
      return Remainder(operand(0), operand(1));
    case Prim::kMin: {
      Range x = operand(0), y = operand(1);
      return {std::min(x.low, y.low), std::min(x.high, y.high), std::gcd(x.stride, y.stride)};
    }
    case Prim::kMax: {
      Range x = operand(0), y = operand(1);
      return {std::max(x.low, y.low), std::max(x.high, y.high), std::gcd(x.stride, y.stride)};
    }
    case Prim::kSelect: {
      Range x = operand(1), y = operand(2);
      return {std::min(x.low, y.low), std::max(x.high, y.high), std::gcd(x.stride, y.stride)};
    }
    case Prim::kConvert:
      return operand(0);
    default:
      return {};
  }
}

}  // namespace tokamak
