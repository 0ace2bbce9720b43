#include "gen/sort_keys.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "gen/line_sort.h"
#include "gen/region.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

// Keys of a comparator, and pairs of instructions compared. Chosen: bounds the analysis.
constexpr size_t kMaxKeys = 16, kMaxPairs = 4000;

// Whether one value depends on the first element as another does on the second.
class Mirror {
 public:
  // Returns 0 if `x` is of the first element and `y` of the second, 1 for the reverse, nullopt
  // otherwise.
  std::optional<int64_t> Of(const Instr* x, const Instr* y) {
    for (int64_t first : {0, 1}) {
      seen_.clear();
      has_parameter_ = false;
      if (Same(x, y, first) && has_parameter_) return first;
    }
    return std::nullopt;
  }

 private:
  bool Same(const Instr* x, const Instr* y, int64_t first) {
    if (!seen_.insert({x, y}).second) return true;
    if (seen_.size() > kMaxPairs || x->op() != y->op()) return false;
    if (x->op() == Op::kParameter) {
      has_parameter_ = true;
      int64_t a = x->attrs<ParameterAttrs>().number, b = y->attrs<ParameterAttrs>().number;
      return a % 2 == first && b == a + 1 - 2 * first;
    }
    if (!(x->shape() == y->shape()) || !x->called().empty() ||
        !EqualAttrs(x->op(), x->attrs(), y->attrs()))
      return false;
    if (x->operand_count() != y->operand_count()) return false;
    for (size_t i = 0; i < x->operand_count(); ++i)
      if (!Same(x->operand(i), y->operand(i), first)) return false;
    return true;
  }

  std::set<std::pair<const Instr*, const Instr*>> seen_;
  bool has_parameter_ = false;
};

bool IsCompare(const Instr* instr, CompareDirection direction) {
  return instr->op() == Op::kCompare && instr->attrs<CompareAttrs>().direction == direction;
}

bool IsNumber(const Instr* instr, bool nan) {
  if (instr->op() != Op::kConstant || !instr->shape().IsArray()) return false;
  double value = instr->attrs<ConstantAttrs>().literal.DoubleAt(0);
  return !std::signbit(value) && (nan ? std::isnan(value) : value == 0);
}

// Matches select(x != x, nan, y) or select(x = 0, 0, y); returns x and sets y.
const Instr* Replaced(const Instr* select, bool nan, const Instr*& rest) {
  if (select->op() != Op::kSelect || !IsNumber(select->operand(1), nan)) return nullptr;
  const Instr* when = select->operand(0);
  rest = select->operand(2);
  if (!IsCompare(when, nan ? CompareDirection::kNe : CompareDirection::kEq)) return nullptr;
  if (when->attrs<CompareAttrs>().type == CompareType::kTotalOrder) return nullptr;
  const Instr *x = when->operand(0), *y = when->operand(1);
  if (nan) return x == y ? x : nullptr;
  return IsNumber(y, false) ? x : IsNumber(x, false) ? y : nullptr;
}

// The number that a value equals except that zeros and NaNs are canonicalized; null if there is
// none.
const Instr* SameProducer(const Instr* value) {
  for (bool nan_first : {true, false}) {
    const Instr *inner = nullptr, *last = nullptr;
    const Instr* x = Replaced(value, nan_first, inner);
    if (x != nullptr && Replaced(inner, !nan_first, last) == x && last == x) return x;
  }
  return nullptr;
}

std::optional<SortOrder> OrderOf(ElementType type, CompareType compare) {
  if (IsComplex(type)) return std::nullopt;
  std::optional<SortOrder> total = TotalOrderOf(type);
  if (!total) return std::nullopt;
  switch (compare) {
    case CompareType::kNone:
      return IsReal(type) ? SortOrder::kFloatIeee : *total;
    case CompareType::kFloat:
      return IsReal(type) ? std::optional(SortOrder::kFloatIeee) : std::nullopt;
    case CompareType::kTotalOrder:
      return *total;
    case CompareType::kSigned:
      return *total == SortOrder::kSigned ? total : std::nullopt;
    case CompareType::kUnsigned:
      return *total == SortOrder::kUnsigned ? total : std::nullopt;
  }
  return std::nullopt;
}

class ComparatorParser {
 public:
  std::optional<std::vector<ComparedKey>> Parse(const Instr* less) {
    while (less != nullptr) {
      if (keys_.size() == kMaxKeys) return std::nullopt;
      if (less->op() == Op::kCompare) return Add(less) ? std::optional(keys_) : std::nullopt;
      less = Tail(less);
    }
    return std::nullopt;
  }

 private:
  // Matches "a < b, or a = b and the rest": takes the comparison and returns the rest, or null.
  const Instr* Tail(const Instr* less) {
    if (less->op() == Op::kSelect) {
      const Instr* when = less->operand(0);
      if (IsCompare(when, CompareDirection::kEq))
        return Take(less->operand(2), when, less->operand(1));
      if (IsCompare(when, CompareDirection::kNe))
        return Take(less->operand(1), when, less->operand(2));
      return nullptr;
    }
    if (less->op() != Op::kOr) return nullptr;
    for (size_t i : {0u, 1u}) {
      const Instr *first = less->operand(i), *both = less->operand(1 - i);
      if (first->op() != Op::kCompare || both->op() != Op::kAnd) continue;
      for (size_t k : {0u, 1u}) {
        const Instr* equal = both->operand(k);
        if (!IsCompare(equal, CompareDirection::kEq)) continue;
        if (const Instr* rest = Take(first, equal, both->operand(1 - k))) return rest;
      }
    }
    return nullptr;
  }

  // `equal` tests equality of the values that `first` compares.
  const Instr* Take(const Instr* first, const Instr* equal, const Instr* rest) {
    if (first->op() != Op::kCompare) return nullptr;
    const Instr *a = first->operand(0), *b = first->operand(1);
    const Instr *x = equal->operand(0), *y = equal->operand(1);
    bool same = (a == x && b == y) || (a == y && b == x);
    bool same_shape = first->attrs<CompareAttrs>().type == equal->attrs<CompareAttrs>().type;
    return same && same_shape && Add(first) ? rest : nullptr;
  }

  bool Add(const Instr* compare) {
    const CompareAttrs& attrs = compare->attrs<CompareAttrs>();
    bool up = attrs.direction == CompareDirection::kLt;
    if (!up && attrs.direction != CompareDirection::kGt) return false;
    const Instr *x = compare->operand(0), *y = compare->operand(1);
    if (x->shape().quant() != nullptr || y->shape().quant() != nullptr) return false;
    std::optional<int64_t> first = Mirror().Of(x, y);
    std::optional<SortOrder> order = OrderOf(x->shape().type(), attrs.type);
    if (!first || !order) return false;
    ComparedKey key{*first == 0 ? x : y, *order, up != (*first == 0)};
    if (*order == SortOrder::kFloatTotal) {
      if (const Instr* number = SameProducer(key.value)) {
        key.value = number;
        key.order = SortOrder::kFloatNanLast;
      }
    }
    keys_.push_back(key);
    return true;
  }

  std::vector<ComparedKey> keys_;
};

}  // namespace

std::optional<SortOrder> TotalOrderOf(ElementType type) {
  if (type == ElementType::kPred) return SortOrder::kUnsigned;
  // Kernels leave the upper bits of narrower integers' bytes undefined.
  if (IsInteger(type) && InfoOf(type).bits < 8) return std::nullopt;
  if (IsInteger(type)) return IsSigned(type) ? SortOrder::kSigned : SortOrder::kUnsigned;
  if (InfinityBits(type) != 0) return SortOrder::kFloatTotal;
  return std::nullopt;
}

uint64_t InfinityBits(ElementType type) {
  // Kernels leave the upper bits of narrower floats' bytes undefined.
  if (!IsReal(type) || InfoOf(type).bits < 8) return 0;
  const FloatFormat& format = FormatOf(type);
  uint64_t exponent = (uint64_t{1} << format.exponent_bits) - 1;
  uint64_t infinity = exponent << format.mantissa_bits;
  if (format.nan == FloatFormat::Nan::kIeee) return infinity;
  if (format.nan != FloatFormat::Nan::kAllOnes || !format.has_sign) return 0;
  // The greatest number is just below the only NaN, whose bits are all ones.
  return (infinity | ((uint64_t{1} << format.mantissa_bits) - 1)) - 1;
}

std::optional<std::vector<ComparedKey>> ComparedKeysOf(const Computation& less) {
  for (const Instr* parameter : less.parameters())
    if (!parameter->shape().IsArray()) return std::nullopt;
  std::optional<std::vector<ComparedKey>> keys = ComparatorParser().Parse(less.root());
  if (!keys) return std::nullopt;
  // NaN is unordered: the result of the sort would depend on which pairs are compared.
  for (const ComparedKey& key : *keys)
    if (key.order == SortOrder::kFloatIeee && keys->size() > 1) return std::nullopt;
  return keys;
}

bool HasPlainOperands(const Instr& sort) {
  if (sort.captures() > 0 || sort.operand_count() == 0) return false;
  for (const Instr* operand : sort.operands()) {
    const Shape& shape = operand->shape();
    if (!IsPlainArray(shape) || shape.ElementCount() == 0 || shape.rank() == 0) return false;
  }
  return true;
}

std::optional<std::vector<OperandKey>> KeysOf(const Instr& sort) {
  std::optional<std::vector<ComparedKey>> compared = ComparedKeysOf(*sort.called(0));
  if (!compared) return std::nullopt;
  std::vector<OperandKey> keys;
  for (const ComparedKey& key : *compared) {
    if (key.value->op() != Op::kParameter) return std::nullopt;
    auto operand = static_cast<size_t>(key.value->attrs<ParameterAttrs>().number / 2);
    if (operand >= sort.operand_count() ||
        sort.operand(operand)->shape().type() != key.value->shape().type())
      return std::nullopt;
    keys.push_back({operand, key.order, key.is_descending});
  }
  return keys;
}

bool IsIotaAlong(const Instr& instr, int64_t dimension) {
  if (!instr.shape().IsArray() || !IsInteger(instr.shape().type()) ||
      InfoOf(instr.shape().type()).bits < 8)
    return false;
  if (dimension < 0) dimension += instr.shape().rank();
  if (instr.op() == Op::kIota) return instr.attrs<IotaAttrs>().dimension == dimension;
  return instr.op() == Op::kBroadcast && instr.operand(0)->op() == Op::kIota &&
         instr.operand(0)->shape().rank() == 1 &&
         instr.attrs<DimensionsAttrs>().dimensions == Dims{dimension};
}

int PackedBits(ElementType type) {
  return type == ElementType::kPred ? 8 : InfoOf(type).bits;
}

bool CanPack(ElementType type) {
  return !IsComplex(type) && (type == ElementType::kPred || IsInteger(type) || IsReal(type)) &&
         PackedBits(type) >= 8 && std::has_single_bit(static_cast<unsigned>(PackedBits(type)));
}

std::optional<PackedKey> PackedKeyOf(const Instr& sort) {
  if (!HasPlainOperands(sort)) return std::nullopt;
  std::optional<std::vector<OperandKey>> keys = KeysOf(sort);
  // If elements are unordered relative to NaN, the result depends on the order of comparisons.
  if (!keys || keys->size() != 1 || (*keys)[0].order == SortOrder::kFloatIeee) return std::nullopt;
  PackedKey packed{.key = (*keys)[0]};
  auto type_of = [&](size_t operand) { return sort.operand(operand)->shape().type(); };
  if (!CanPack(type_of(packed.key.operand))) return std::nullopt;
  packed.key_bits = PackedBits(type_of(packed.key.operand));
  int64_t along = sort.attrs<SortAttrs>().dimension;
  size_t other = 1 - std::min<size_t>(packed.key.operand, 1);
  if (sort.operand_count() == 2 && CanPack(type_of(other)) &&
      !IsIotaAlong(*sort.operand(other), along) &&
      packed.key_bits + PackedBits(type_of(other)) <= 64) {
    packed.payload = PackedKey::Payload::kOperand;
    packed.payload_bits = PackedBits(type_of(other));
  } else if (sort.operand_count() > 1) {
    packed.payload = PackedKey::Payload::kIndex;
    packed.payload_bits =
        static_cast<int>(std::bit_width(static_cast<uint64_t>(LineSortOf(sort).length - 1)));
  }
  int bits = packed.key_bits + packed.payload_bits;
  if (bits > 64) return std::nullopt;
  packed.word = bits <= 32 ? ElementType::kU32 : ElementType::kU64;
  return packed;
}

}  // namespace tokamak
