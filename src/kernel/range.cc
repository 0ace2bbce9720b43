#include "kernel/range.h"

#include <algorithm>
#include <bit>
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

// Handles positive divisors only, which is what indices need.
Range Quotient(const Range& x, const Range& y) {
  if (y.low <= 0 || IsUnbounded(x)) return {};
  // Not constant: the one that is farther from zero.
  Range quotient{x.low / (x.low < 0 ? y.low : y.high), x.high / (x.high < 0 ? y.high : y.low), 1};
  if (!y.IsConstant()) return quotient;
  if (x.stride % y.low == 0) quotient.stride = x.stride / y.low;
  return quotient;
}

Range Remainder(const Range& x, const Range& y) {
  if (y.low <= 0 || y.high == INT64_MAX) return {};
  int64_t below = y.high - 1;
  Range rest{x.low >= 0 ? 0 : -below, x.high <= 0 ? 0 : below, 1};
  if (y.IsConstant()) rest.stride = std::gcd(x.stride, y.low);
  if (x.low >= 0) rest.high = std::min(rest.high, x.high);
  return rest;
}

Range RangeOfConstant(int64_t value) {
  return {value, value, value == INT64_MIN ? 1 : std::abs(value)};
}

// The full range of the type.
Range RangeOfType(ScalarType type) {
  int bits = InfoOf(type).bits;
  if (IsFloat(type) || bits == 64) return {};
  if (IsSigned(type)) return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1, 1};
  return {0, (int64_t{1} << bits) - 1, 1};
}

// The range of the mathematical value, from the `ranges` of the operands.
Range ExactRange(const Kernel& kernel, ValueId id, const std::vector<Range>& ranges) {
  const ScalarNode& node = kernel.node(id);
  if (IsFloat(node.type)) return node.prim == Prim::kConst ? Range{} : RangeOfType(node.type);
  if (node.prim == Prim::kAnd)
    for (int i : {0, 1}) {
      const ScalarNode& mask = kernel.node(node.operands[static_cast<size_t>(i)]);
      if (mask.prim != Prim::kConst || IsFloat(mask.type)) continue;
      if (int64_t most = IntOfBits(mask.type, mask.bits); most >= 0) return {0, most, 1};
    }
  auto known = [&](ValueId of) { return ranges[static_cast<size_t>(of)]; };
  auto operand = [&](int i) { return known(node.operands[static_cast<size_t>(i)]); };
  switch (node.prim) {
    case Prim::kConst: {
      int64_t value = IntOfBits(node.type, node.bits);
      return node.type == ScalarType::kU64 && value < 0 ? Range{} : RangeOfConstant(value);
    }
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
    case Prim::kXor: {
      Range x = operand(0), y = operand(1);
      int64_t most = std::max(x.high, y.high);
      if (std::min(x.low, y.low) < 0 || most >= INT64_MAX / 2) return {};
      return {0, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most) + 1)) - 1, 1};
    }
    case Prim::kConvert:
      return operand(0);
    default:
      return {};
  }
}

}  // namespace

// Computes ranges in node order. Operands precede users, so no recursion is needed.
Range RangeTable::Of(const Kernel& kernel, ValueId id) {
  for (size_t i = ranges_.size(); i <= static_cast<size_t>(id); ++i)
    ranges_.push_back(Find(kernel, ValueId{static_cast<uint32_t>(i)}));
  return ranges_[static_cast<size_t>(id)];
}

// Indices do not wrap. Other integers do: a range that the type does not hold says nothing.
Range RangeTable::Find(const Kernel& kernel, ValueId id) const {
  const ScalarNode& node = kernel.node(id);
  if (node.type == ScalarType::kIndex || node.prim == Prim::kConst)
    return ExactRange(kernel, id, ranges_);
  Range of_type = RangeOfType(node.type), exact = ExactRange(kernel, id, ranges_);
  int64_t least = node.type == ScalarType::kU64 ? 0 : of_type.low;
  bool fits = !IsUnbounded(exact) && exact.low >= least && exact.high <= of_type.high;
  return fits ? exact : of_type;
}

}  // namespace tokamak
