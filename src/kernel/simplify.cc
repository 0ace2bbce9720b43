#include "kernel/simplify.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "kernel/linear.h"
#include "kernel/sqrt_comparisons.h"

namespace tokamak {
namespace {

class KernelSimplifier {
 public:
  KernelSimplifier(KernelBuilder& b, const ScalarNode& node) : b_(b), node_(node) {}

  std::optional<Scalar> Run() {
    if (std::optional<Scalar> folded = Fold()) return folded;
    if (node_.prim == Prim::kSelect) return Select();
    if (node_.type == ScalarType::kIndex) return Index();
    if (node_.prim == Prim::kLt || node_.prim == Prim::kLe || node_.prim == Prim::kEq ||
        node_.prim == Prim::kNe)
      return Comparison();
    if (IsFloat(node_.type)) return Float();
    return Integer();
  }

 private:
  Scalar Operand(size_t i) const { return {&b_, node_.operands[i]}; }
  const ScalarNode& At(size_t i) const { return b_.kernel().node(node_.operands[i]); }
  bool IsConst(size_t i) const { return At(i).prim == Prim::kConst; }
  bool Is(size_t i, double value) const {
    return IsConst(i) && At(i).bits == BitsOfDouble(At(i).type, value);
  }
  bool IsAllOnes(size_t i) const {
    return IsConst(i) && At(i).bits == ~Bits{0} >> (64 - InfoOf(At(i).type).bits);
  }
  Scalar Number(double value) const { return b_.Constant(node_.type, value); }
  Scalar Truth(bool holds) const { return b_.ConstantBits(ScalarType::kPred, holds ? 1 : 0); }

  std::optional<Scalar> Fold() const {
    size_t arity = static_cast<size_t>(node_.arity());
    if (arity == 0) return std::nullopt;
    Bits values[3];
    for (size_t i = 0; i < arity; ++i) {
      if (!IsConst(i)) return std::nullopt;
      values[i] = At(i).bits;
    }
    std::optional<Bits> bits = EvaluatePrim(node_.prim, node_.type, At(0).type, values);
    if (!bits) return std::nullopt;
    return b_.ConstantBits(node_.type, *bits);
  }

  std::optional<Scalar> Select() const {
    if (IsConst(0)) return At(0).bits != 0 ? Operand(1) : Operand(2);
    if (node_.operands[1] == node_.operands[2]) return Operand(1);
    if (IsRedundantNanSelect(b_.kernel(), node_)) return Operand(2);
    return std::nullopt;
  }

  // Bit-exact simplifications only: -0 must stay -0.
  std::optional<Scalar> Float() const {
    switch (node_.prim) {
      case Prim::kMul:
        if (Is(1, 1)) return Operand(0);
        if (Is(0, 1)) return Operand(1);
        break;
      case Prim::kDiv:
        if (Is(1, 1)) return Operand(0);
        break;
      case Prim::kSub:
        if (Is(1, 0)) return Operand(0);
        break;
      case Prim::kNeg:
        if (At(0).prim == Prim::kNeg) return Scalar(&b_, At(0).operands[0]);
        break;
      default:
        break;
    }
    return std::nullopt;
  }

  std::optional<Scalar> Integer() const {
    bool x0 = node_.arity() > 0 && Is(0, 0), y0 = node_.arity() > 1 && Is(1, 0);
    switch (node_.prim) {
      case Prim::kOr:
        if (IsAllOnes(0) || node_.operands[0] == node_.operands[1]) return Operand(0);
        if (IsAllOnes(1)) return Operand(1);
        [[fallthrough]];
      case Prim::kAdd:
      case Prim::kXor:
        if (x0) return Operand(1);
        [[fallthrough]];
      case Prim::kSub:
      case Prim::kShl:
      case Prim::kShr:
        if (y0) return Operand(0);
        if (node_.prim == Prim::kShr && IsShiftedOut()) return Number(0);
        break;
      case Prim::kAnd:
        if (x0 || y0) return Number(0);
        if (node_.operands[0] == node_.operands[1] || IsAllOnes(1)) return Operand(0);
        if (IsAllOnes(0)) return Operand(1);
        break;
      case Prim::kMul:
        if (x0 || y0) return Number(0);
        if (Is(1, 1)) return Operand(0);
        if (Is(0, 1)) return Operand(1);
        break;
      case Prim::kDiv:
        if (Is(1, 1)) return Operand(0);
        break;
      default:
        break;
    }
    return std::nullopt;
  }

  // Whether a right shift gives 0, as for the upper half of a 64-bit position.
  bool IsShiftedOut() const {
    if (!IsConst(1) || At(1).bits >= 63) return false;
    Range range = b_.RangeOf(Operand(0));
    return range.low >= 0 && range.high >> At(1).bits == 0;
  }

  std::optional<Scalar> Comparison() const {
    if (IsFloat(At(0).type) && (node_.prim == Prim::kLt || node_.prim == Prim::kLe))
      return CompareSquare(b_, node_);
    if (At(0).type != ScalarType::kIndex) return std::nullopt;
    Range x = b_.RangeOf(Operand(0)), y = b_.RangeOf(Operand(1));
    bool below = x.high<y.low, above = x.low> y.high;
    switch (node_.prim) {
      case Prim::kLt:
        if (below) return Truth(true);
        if (x.low >= y.high) return Truth(false);
        break;
      case Prim::kLe:
        if (x.high <= y.low) return Truth(true);
        if (above) return Truth(false);
        break;
      default:
        if (below || above) return Truth(node_.prim == Prim::kNe);
        if (node_.operands[0] == node_.operands[1]) return Truth(node_.prim == Prim::kEq);
        break;
    }
    return std::nullopt;
  }

  std::optional<Scalar> Index() {
    switch (node_.prim) {
      case Prim::kAdd:
      case Prim::kSub:
      case Prim::kMul:
        return Sums();
      case Prim::kDiv:
      case Prim::kRem:
        return Division();
      case Prim::kMin:
      case Prim::kMax:
        return Bounds();
      case Prim::kConvert:
        return Back();
      default:
        return std::nullopt;
    }
  }

  // An index converted to an integer of at least 32 bits and back, if the value fits.
  std::optional<Scalar> Back() const {
    if (At(0).prim != Prim::kConvert || InfoOf(At(0).type).bits < 32 || IsFloat(At(0).type))
      return std::nullopt;
    Scalar index(&b_, At(0).operands[0]);
    if (index.type() != ScalarType::kIndex) return std::nullopt;
    Range range = b_.RangeOf(index);
    if (range.low < 0 || range.high > INT32_MAX) return std::nullopt;
    return index;
  }

  std::optional<Scalar> Bounds() const {
    Range x = b_.RangeOf(Operand(0)), y = b_.RangeOf(Operand(1));
    bool is_min = node_.prim == Prim::kMin;
    if (x.high <= y.low) return Operand(is_min ? 0 : 1);
    if (y.high <= x.low) return Operand(is_min ? 1 : 0);
    return std::nullopt;
  }

  std::optional<Scalar> Sums() {
    const Kernel& kernel = b_.kernel();
    if (node_.prim == Prim::kMul) {
      if (IsConst(0)) return Operand(1) * Operand(0);
      if (!IsConst(1)) return std::nullopt;
    }
    std::optional<LinearIndex> x = LinearOf(kernel, node_.operands[0]);
    std::optional<LinearIndex> y = LinearOf(kernel, node_.operands[1]);
    if (!x || !y) return std::nullopt;
    std::optional<LinearIndex> result;
    switch (node_.prim) {
      case Prim::kMul:
        result = Times(*x, y->constant);
        break;
      case Prim::kSub:
        y = Times(*y, -1);
        [[fallthrough]];
      default:
        result = y ? Sum(*x, *y) : std::nullopt;
    }
    if (result) result = Recombined(kernel, std::move(*result));
    if (!result) return std::nullopt;
    return ValueOf(b_, *result);
  }

  // x / c and x % c for x >= 0, c > 0: splits off multiples of c.
  std::optional<Scalar> Division() {
    if (!IsConst(1)) return std::nullopt;
    int64_t by = IntOfBits(ScalarType::kIndex, At(1).bits);
    Range range = b_.RangeOf(Operand(0));
    bool is_div = node_.prim == Prim::kDiv;
    if (by == 1) return is_div ? Operand(0) : b_.Index(0);
    if (by <= 0 || range.low < 0) return std::nullopt;
    if (range.high < by) return is_div ? b_.Index(0) : Operand(0);
    if (std::optional<Scalar> apart = Apart(by)) return apart;
    if (std::optional<Scalar> coarser = Coarser(by)) return coarser;
    return Nested(by);
  }

  // x = g * q + r with 0 <= r < g, where g divides c: x / c = q / (c / g) and x % c = g * (q % (c /
  // g)) + r. Lane numbers are typical r: they leave the division.
  std::optional<Scalar> Coarser(int64_t by) {
    std::optional<LinearIndex> x = LinearOf(b_.kernel(), node_.operands[0]);
    if (!x || x->constant < 0) return std::nullopt;
    std::vector<std::pair<ValueId, int64_t>> terms = x->terms;
    std::ranges::stable_sort(terms, {}, [](const auto& term) { return std::abs(term.second); });
    for (size_t small = 0; small < terms.size(); ++small) {
      int64_t g = by;
      for (size_t i = small; i < terms.size(); ++i) g = std::gcd(g, terms[i].second);
      if (g == 1) continue;
      LinearIndex rest, whole;
      for (auto term : x->terms) {
        auto at = static_cast<size_t>(std::ranges::find(terms, term) - terms.begin());
        (at < small ? rest : whole).terms.push_back(term);
      }
      rest.constant = x->constant % g;
      whole.constant = x->constant - rest.constant;
      Scalar r = ValueOf(b_, rest);
      Range range = b_.RangeOf(r);
      if (range.low < 0 || range.high >= g) continue;
      for (auto& [value, factor] : whole.terms) factor /= g;
      whole.constant /= g;
      Scalar q = b_.Make(node_.prim, {ValueOf(b_, whole), b_.Index(by / g)});
      return node_.prim == Prim::kDiv ? q : q * b_.Index(g) + r;
    }
    return std::nullopt;
  }

  std::optional<Scalar> Apart(int64_t by) {
    std::optional<LinearIndex> x = LinearOf(b_.kernel(), node_.operands[0]);
    if (!x) return std::nullopt;
    LinearIndex whole, rest;
    for (auto [value, factor] : x->terms)
      (factor % by == 0 ? whole : rest).terms.emplace_back(value, factor);
    rest.constant = x->constant % by;
    whole.constant = x->constant - rest.constant;
    // Keep the remainder non-negative.
    if (rest.constant < 0 && b_.RangeOf(ValueOf(b_, rest)).low < 0) {
      rest.constant += by;
      whole.constant -= by;
    }
    if (whole.terms.empty() && whole.constant == 0) return std::nullopt;
    Scalar rest_value = ValueOf(b_, rest), whole_value = ValueOf(b_, whole);
    if (b_.RangeOf(rest_value).low < 0 || b_.RangeOf(whole_value).low < 0) return std::nullopt;
    if (node_.prim == Prim::kRem) return b_.Make(Prim::kRem, {rest_value, Operand(1)});
    for (auto& [value, factor] : whole.terms) factor /= by;
    whole.constant /= by;
    return ValueOf(b_, whole) + b_.Make(Prim::kDiv, {rest_value, Operand(1)});
  }

  // (x / a) / b = x / (a b); (x % a) % b = x % b when b divides a.
  std::optional<Scalar> Nested(int64_t by) {
    const ScalarNode inner = At(0);
    if (inner.prim != node_.prim) return std::nullopt;
    const ScalarNode& divisor = b_.kernel().node(inner.operands[1]);
    if (divisor.prim != Prim::kConst) return std::nullopt;
    int64_t a = IntOfBits(ScalarType::kIndex, divisor.bits), product = 0;
    Scalar x(&b_, inner.operands[0]);
    if (a <= 0 || b_.RangeOf(x).low < 0) return std::nullopt;
    if (node_.prim == Prim::kRem) return a % by == 0 ? std::optional(x % Operand(1)) : std::nullopt;
    if (__builtin_mul_overflow(a, by, &product)) return std::nullopt;
    return x / b_.Index(product);
  }

  KernelBuilder& b_;
  const ScalarNode node_;
};

}  // namespace

std::optional<Scalar> Simplify(KernelBuilder& b, const ScalarNode& node) {
  return KernelSimplifier(b, node).Run();
}

}  // namespace tokamak
