// Comparisons.

#include "ir/compare_direction.h"
#include "rewrite/rules/conditions.h"
#include "rewrite/rules/ranges.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::c;
using m::d;
using m::x;
using m::y;
using enum CompareDirection;

CompareDirection CompareDirectionOf(const m::Match& match) {
  return match.root()->attrs<CompareAttrs>().direction;
}
bool IsEquality(const m::Match& match) {
  return CompareDirectionOf(match) == kEq || CompareDirectionOf(match) == kNe;
}
// The compared values include neither NaN nor both zeros.
bool HasExactOrder(const Instr* instr) {
  ElementType type = instr->shape().type();
  return IsInteger(type) || type == ElementType::kPred;
}
bool OfIntegers(const m::Match& match) {
  return IsInteger(match.root()->operand(0)->shape().type());
}
// The comparison uses the type's native order; s32 may also be compared as unsigned.
bool HasOwnOrder(const m::Match& match) {
  return match.root()->attrs<CompareAttrs>().type == CompareType::kNone;
}
bool IsEqualityOfIntegers(const m::Match& match) {
  return IsEquality(match) && OfIntegers(match);
}

CompareDirection Inverse(CompareDirection direction) {
  switch (direction) {
    case kEq:
      return kNe;
    case kNe:
      return kEq;
    case kLt:
      return kGe;
    case kLe:
      return kGt;
    case kGt:
      return kLe;
    case kGe:
      return kLt;
  }
  return direction;
}

Instr* MakeCompare(Editor& edit, const Instr* like, CompareDirection direction, Instr* left,
                   Instr* right) {
  CompareAttrs attrs = like->attrs<CompareAttrs>();
  attrs.direction = direction;
  return edit.Make(Op::kCompare, {left, right}, std::move(attrs));
}
// Compares x in the same direction with a number of its type.
Instr* CompareWithInt(Editor& edit, const m::Match& match, int64_t value) {
  const Shape& shape = match[x]->shape();
  return MakeCompare(edit, match.root(), CompareDirectionOf(match), match[x],
                     edit.Filled(shape, Literal::ScalarInt(shape.type(), value)));
}

// The outcome that the ranges of both sides imply, if any.
std::optional<bool> Known(const m::Match& match) {
  std::optional<IntRange> left = RangeOf(match[x]), right = RangeOf(match[y]);
  if (!left || !right) return std::nullopt;
  bool below = left->high<right->low, above = left->low> right->high;
  bool not_above = left->high <= right->low, not_below = left->low >= right->high;
  bool same = not_above && not_below;
  switch (CompareDirectionOf(match)) {
    case kLt:
      return below ? std::optional(true) : not_below ? std::optional(false) : std::nullopt;
    case kLe:
      return not_above ? std::optional(true) : above ? std::optional(false) : std::nullopt;
    case kGt:
      return above ? std::optional(true) : not_above ? std::optional(false) : std::nullopt;
    case kGe:
      return not_below ? std::optional(true) : below ? std::optional(false) : std::nullopt;
    case kEq:
      return same ? std::optional(true) : below || above ? std::optional(false) : std::nullopt;
    case kNe:
      return same ? std::optional(false) : below || above ? std::optional(true) : std::nullopt;
  }
  return std::nullopt;
}

// compare(convert(p), c) for EQ or NE and c = 0 or 1: whether it is p (true) or not p (false).
std::optional<bool> IsTruth(const m::Match& match) {
  if (!IsEquality(match)) return std::nullopt;
  const Literal& number = match.number(c);
  bool equal = CompareDirectionOf(match) == kEq;
  if (IsComplex(number.type())) return std::nullopt;
  double value = IsReal(number.type()) ? number.DoubleAt(0) : static_cast<double>(number.IntAt(0));
  if (number.type() == ElementType::kPred) value = value != 0 ? 1 : 0;
  if (value == 0) return !equal;
  if (value == 1) return equal;
  return std::nullopt;
}
Instr* TruthOf(Editor& edit, const m::Match& match) {
  return *IsTruth(match) ? match[x] : edit.Make(Op::kNot, {match[x]});
}

}  // namespace

// long: a table
std::span<const Rule> CompareRules() {
  static constexpr Rule kRules[] = {
      {"compare.self", "x == x is true, x < x is false, for values that cannot be NaN",
       m::Compare(x, x),
       [](Editor& edit, const m::Match& match) -> Instr* {
         CompareDirection direction = CompareDirectionOf(match);
         bool holds = direction == kEq || direction == kLe || direction == kGe;
         return edit.Filled(match.shape(), holds ? 1 : 0);
       },
       [](const m::Match& match) { return HasExactOrder(match[x]); },
       R"(x = s32[6] parameter(0)
          ROOT c = pred[6] compare(x, x), direction=LE)"},
      {"compare.constant-left", "c < x is x > c", m::Compare(m::Splat(c), x),
       [](Editor& edit, const m::Match& match) {
         return MakeCompare(edit, match.root(), Swapped(CompareDirectionOf(match)), match[x],
                            match[c]);
       },
       [](const m::Match& match) { return SplatOf(match[x]) == nullptr; },
       R"(x = f32[61] parameter(0)
          c = f32[] constant(1)
          b = f32[61] broadcast(c), dimensions={}
          ROOT r = pred[61] compare(b, x), direction=LE)"},
      {"compare.range", "a comparison of values with disjoint ranges is a constant",
       m::Compare(x, y),
       [](Editor& edit, const m::Match& match) {
         return edit.Filled(match.shape(), *Known(match) ? 1 : 0);
       },
       [](const m::Match& match) {
         return HasExactOrder(match[x]) && HasOwnOrder(match) && Known(match).has_value();
       },
       R"(x = u8[61] parameter(0)
          w = s32[61] convert(x)
          c = s32[] constant(256)
          b = s32[61] broadcast(c), dimensions={}
          ROOT r = pred[61] compare(w, b), direction=LT)"},
      {"compare.unsigned-zero", "x < 0 is false, x >= 0 true, for unsigned numbers",
       m::Compare(x, m::Zero()),
       [](Editor& edit, const m::Match& match) {
         return edit.Filled(match.shape(), CompareDirectionOf(match) == kGe ? 1 : 0);
       },
       [](const m::Match& match) {
         return IsUnsigned(match[x]->shape().type()) && HasOwnOrder(match) &&
                (CompareDirectionOf(match) == kLt || CompareDirectionOf(match) == kGe);
       },
       R"(x = u64[61] parameter(0)
          c = u64[] constant(0)
          b = u64[61] broadcast(c), dimensions={}
          ROOT r = pred[61] compare(x, b), direction=LT)"},
      {"compare.truth", "a pred compared with true or false", m::Compare(x, m::Splat(c)), TruthOf,
       [](const m::Match& match) {
         return match[x]->shape().type() == ElementType::kPred && IsTruth(match).has_value();
       },
       R"(x = pred[61] parameter(0)
          c = pred[] constant(false)
          b = pred[61] broadcast(c), dimensions={}
          ROOT r = pred[61] compare(x, b), direction=EQ)"},
      {"compare.converted-truth", "a pred as a number, compared with 0 or 1",
       m::Compare(m::Convert(x), m::Splat(c)), TruthOf,
       [](const m::Match& match) {
         return match[x]->shape().type() == ElementType::kPred && IsTruth(match).has_value();
       },
       R"(x = pred[61] parameter(0)
          f = f32[61] convert(x)
          c = f32[] constant(0)
          b = f32[61] broadcast(c), dimensions={}
          ROOT r = pred[61] compare(f, b), direction=NE)"},
      {"compare.truths", "p != q is p ^ q", m::Compare(x, y), m::Xor(x, y),
       [](const m::Match& match) {
         return match[x]->shape().type() == ElementType::kPred && CompareDirectionOf(match) == kNe;
       },
       R"(x = pred[61] parameter(0)
          y = pred[61] parameter(1)
          ROOT r = pred[61] compare(x, y), direction=NE)"},
      {"compare.sum", "x + c == d is x == d - c", m::Compare(m::Add(x, m::Splat(c)), m::Splat(d)),
       [](Editor& edit, const m::Match& match) {
         return CompareWithInt(edit, match,
                               WrapSubtract(match.number(d).IntAt(0), match.number(c).IntAt(0)));
       },
       IsEqualityOfIntegers},
      {"compare.difference", "x - y == 0 is x == y", m::Compare(m::Subtract(x, y), m::Zero()),
       [](Editor& edit, const m::Match& match) {
         return MakeCompare(edit, match.root(), CompareDirectionOf(match), match[x], match[y]);
       },
       IsEqualityOfIntegers},
      {"not.compare", "not x < y is x >= y where nothing is NaN; not x == y is x != y always",
       m::Not(m::Bind(a, m::Compare(x, y))),
       [](Editor& edit, const m::Match& match) {
         return MakeCompare(edit, match[a], Inverse(match[a]->attrs<CompareAttrs>().direction),
                            match[x], match[y]);
       },
       [](const m::Match& match) {
         CompareDirection direction = match[a]->attrs<CompareAttrs>().direction;
         return direction == kEq || direction == kNe || HasExactOrder(match[x]);
       },
       R"(x = f32[61] parameter(0)
          y = f32[61] parameter(1)
          c = pred[61] compare(x, y), direction=EQ
          ROOT r = pred[61] not(c))"},
  };
  return kRules;
}

}  // namespace tokamak
