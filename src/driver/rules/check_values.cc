// Pattern and replacement on drawn inputs. Each draw has numbers of one magnitude, because a sum of
// large and small numbers would hide errors of the small ones.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "driver/rules/make_rule.h"
#include "interp/interp.h"
#include "interp/rounding.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

// Representable numbers between two results that count as equal without a declared tolerance.
// Chosen: a few roundings of single operations.
constexpr int64_t kDefaultUlps = 8;
// A replacement may be this many times as far from the pattern's result as the pattern's own
// roundings are from the exact result. Chosen: both round about as often.
constexpr double kRoundingMargin = 4;
// Elements of all variables above which only the first draws are run: the interpreter takes about
// a second.
constexpr int64_t kManyElements = int64_t{1} << 18;
constexpr size_t kFewDraws = 2;
// Elements of all variables that each kind of draw has at least, and the runs that this may take.
// Chosen: an edge that every eighth number has occurs, also in rules for scalars.
constexpr int64_t kDrawnElements = 96, kMostRepeats = 32;
// Elements of an array that an error shows.
constexpr int64_t kShownElements = 8;

enum class Draw : uint8_t {
  kOrdinary,  // reals in [-2, 2)
  kEdges,     // 0, -0, 1, -1, ordinary ones
  kModerate,  // reals in [-50, 50)
  kSmall,     // about 1e-6
  kTiny,      // about 1e-30
  kLarge,     // about 1e4
  kHuge,      // about 1e30
  kNonfinite,
};
constexpr Draw kDraws[] = {Draw::kOrdinary, Draw::kEdges, Draw::kModerate, Draw::kSmall,
                           Draw::kTiny,     Draw::kLarge, Draw::kHuge,     Draw::kNonfinite};

class Drawer {
 public:
  Drawer(Draw draw, uint64_t seed, const RuleCheck& check)
      : draw_(draw), state_(seed), check_(check) {}

  template <typename T>
  T Element(ElementType type) {
    if constexpr (std::is_same_v<T, Complex>) {
      ElementType part = RealPartOf(type);
      double real = Real(part);
      return {real, Real(part)};
    } else if constexpr (std::is_same_v<T, double>) {
      return Real(type);
    } else if constexpr (std::is_same_v<T, uint8_t>) {
      return Next() >> 63 != 0 ? 1 : 0;
    } else {
      return Integer<T>(type);
    }
  }

 private:
  uint64_t Next() { return MixBits(state_ += 0x9e3779b97f4a7c15u); }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  double Wanted() {
    double unit = 2 * Unit() - 1;
    uint64_t pick = Next() % 8;
    switch (draw_) {
      case Draw::kOrdinary:
        return 2 * unit;
      case Draw::kEdges:
        return pick == 0 ? 0.0 : pick == 1 ? -0.0 : pick == 2 ? 1.0 : pick == 3 ? -1.0 : 2 * unit;
      case Draw::kModerate:
        return 50 * unit;
      case Draw::kSmall:
        return 1e-6 * unit;
      case Draw::kTiny:
        return 1e-30 * unit;
      case Draw::kLarge:
        return 1e4 * unit;
      case Draw::kHuge:
        return 1e30 * unit;
      case Draw::kNonfinite:
        break;
    }
    if (pick == 0) return HUGE_VAL;
    if (pick == 1) return -HUGE_VAL;
    return pick == 2 ? std::nan("") : 2 * unit;
  }

  double Real(ElementType type) {
    double value = Wanted();
    if (std::isfinite(value)) {
      // Inside of a declared range, also where it excludes this magnitude.
      if (value < check_.low || value > check_.high) {
        double low = std::max(check_.low, check_.high - 100);
        double high = std::min(check_.high, check_.low + 100);
        value = std::isfinite(low) && std::isfinite(high)
                    ? low + (high - low) * Unit()
                    : std::clamp(value, check_.low, check_.high);
      }
    }
    double rounded = RoundToType(type, value);
    // Narrow types cannot represent huge numbers.
    return std::isfinite(value) && !std::isfinite(rounded) ? RoundToType(type, 2 * Unit())
                                                           : rounded;
  }

  template <typename T>
  T Integer(ElementType type) {
    int bits = InfoOf(type).bits;
    uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    auto wrap = [&](uint64_t value) {
      if constexpr (std::is_same_v<T, int64_t>)
        return WrapSigned(type, static_cast<int64_t>(value));
      else
        return WrapUnsigned(type, value & mask);
    };
    if (draw_ == Draw::kLarge || draw_ == Draw::kHuge) return wrap(Next());
    if (draw_ == Draw::kEdges) {
      uint64_t top = uint64_t{1} << (bits - 1);
      const uint64_t edges[] = {0, 1, mask, top, top - 1, Next() % 4};
      return wrap(edges[Next() % 6]);
    }
    return wrap(Next() % (draw_ == Draw::kModerate ? 100 : 4));
  }

  Draw draw_;
  uint64_t state_;
  const RuleCheck& check_;
};

std::vector<Value> DrawVariables(const Computation& entry, Draw draw, uint64_t seed,
                                 const RuleCheck& check) {
  std::vector<Value> values;
  for (const Instr* parameter : entry.parameters()) {
    Drawer drawer(draw, MixBits(seed + values.size() * 977 + static_cast<uint64_t>(draw)), check);
    const Shape& shape = parameter->shape();
    values.push_back(DispatchStorage(shape.type(), [&]<typename T>() {
      std::vector<T> elements(static_cast<size_t>(shape.ElementCount()));
      for (T& element : elements) element = drawer.Element<T>(shape.type());
      return Value::Array(shape.WithoutLayout(), std::move(elements));
    }));
  }
  return values;
}

Result<std::vector<Literal>> ResultsOn(const Module& module, const std::vector<Value>& variables,
                                       NumericMode mode) {
  RunOptions options;
  options.mode = mode;
  TOK_TRY(RunOutcome outcome, Interpret(module, variables, options));
  std::vector<Literal> results;
  for (const Value& value : outcome.results) results.push_back(LiteralFromValue(value));
  return results;
}

// The results of the pattern, those that an exact machine would compute, and the replacement's.
struct Compared {
  Literal pattern, exact, replacement;
};

double PartAt(const Literal& literal, int64_t i, int part) {
  if (!IsComplex(literal.type())) return literal.DoubleAt(i);
  std::complex<double> value = literal.ComplexAt(i);
  return part == 0 ? value.real() : value.imag();
}

// The distance by which the pattern itself misses the exact result, at most, in one array.
double RoundingOf(const Compared& compared) {
  double most = 0;
  for (int64_t i = 0; i < compared.pattern.shape().ElementCount(); ++i)
    for (int part = 0; part < (IsComplex(compared.pattern.type()) ? 2 : 1); ++part) {
      double miss = std::abs(PartAt(compared.pattern, i, part) - PartAt(compared.exact, i, part));
      if (std::isfinite(miss)) most = std::max(most, miss);
    }
  return most;
}

bool IsClose(double got, double expected, ElementType type, const RuleCheck& check, double slack) {
  if (std::isnan(expected) || std::isinf(expected)) {
    if (!check.nonfinite) return true;
    return std::isnan(expected) ? std::isnan(got) : got == expected;
  }
  if (!std::isfinite(got)) return false;
  double difference = std::abs(got - expected);
  if (difference <= slack) return true;
  if (check.tolerance) return difference <= *check.tolerance * (1 + std::abs(expected));
  return UlpsBetween(RealPartOf(type), got, expected) <= kDefaultUlps;
}

bool IsExact(ElementType type) {
  return !IsReal(type) && !IsComplex(type);
}

// The first element that differs by more than `slack` allows; -1 if there is none.
int64_t FirstDifference(const Compared& compared, const RuleCheck& check, double slack) {
  ElementType type = compared.pattern.type();
  bool is_exact = IsExact(type);
  for (int64_t i = 0; i < compared.pattern.shape().ElementCount(); ++i) {
    if (is_exact) {
      if (compared.pattern.BitsAt(i) != compared.replacement.BitsAt(i)) return i;
      continue;
    }
    for (int part = 0; part < (IsComplex(type) ? 2 : 1); ++part) {
      double got = PartAt(compared.replacement, i, part);
      if (!IsClose(got, PartAt(compared.pattern, i, part), type, check, slack) &&
          !IsClose(got, PartAt(compared.exact, i, part), type, check, slack))
        return i;
    }
  }
  return -1;
}

// "x = 1.5, y = f32[2,3] {1, 2 ...}": of variables with the shape of the result, the one element.
std::string InputsText(const Computation& entry, const std::vector<Value>& variables,
                       const Shape& result, int64_t element) {
  std::string text;
  for (size_t k = 0; k < variables.size(); ++k) {
    Literal literal = LiteralFromValue(variables[k]);
    bool is_same = SameDims(literal.shape(), result);
    bool is_scalar = literal.shape().ElementCount() == 1;
    text += (k == 0 ? "" : ", ") + entry.parameter(k)->name() + " = ";
    text += is_scalar ? ElementText(literal, 0)
            : is_same ? ElementText(literal, element)
                      : ArrayText(literal, kShownElements);
  }
  return text;
}

// Runs both programs on draws of one kind. One kind at a time, so that the largest rounding error
// found is that of numbers of one magnitude.
Status CheckDraws(const std::string& name, const TextSpan& where, const RulePair& pair,
                  const RuleCheck& check, Draw draw, int64_t repeats) {
  const Computation& entry = *pair.pattern->entry();
  std::vector<std::vector<Value>> variables;
  std::vector<std::vector<Compared>> compared;  // by repeat and result
  std::vector<double> rounding;                 // by result
  for (int64_t n = 0; n < repeats; ++n) {
    variables.push_back(DrawVariables(entry, draw, 1 + static_cast<uint64_t>(n) * 7919, check));
    const std::vector<Value>& drawn = variables.back();
    TOK_TRY(std::vector<Literal> pattern, ResultsOn(*pair.pattern, drawn, NumericMode::kReference));
    TOK_TRY(std::vector<Literal> exact, ResultsOn(*pair.pattern, drawn, NumericMode::kOracle));
    TOK_TRY(std::vector<Literal> replacement,
            ResultsOn(*pair.replacement, drawn, NumericMode::kReference));
    rounding.resize(pattern.size());
    compared.emplace_back();
    for (size_t i = 0; i < pattern.size(); ++i) {
      compared.back().push_back({pattern[i], exact[i], replacement[i]});
      if (!IsExact(pattern[i].type()))
        rounding[i] = std::max(rounding[i], RoundingOf(compared.back().back()));
    }
  }
  for (size_t n = 0; n < compared.size(); ++n)
    for (size_t i = 0; i < compared[n].size(); ++i) {
      const Compared& one = compared[n][i];
      int64_t at = FirstDifference(one, check, kRoundingMargin * rounding[i]);
      if (at < 0) continue;
      Error error =
          MakeError(ErrorCode::kRuleValues,
                    fmt::format("rule {}: for {} the pattern gives {}, the replacement {}", name,
                                InputsText(entry, variables[n], one.pattern.shape(), at),
                                ElementText(one.pattern, at), ElementText(one.replacement, at)),
                    where);
      error.notes.push_back(
          fmt::format("element {} of result {}, variables {}", at, i, VariablesText(entry)));
      return error;
    }
  return Ok();
}

}  // namespace

Status CheckRuleValues(const std::string& name, const TextSpan& where, const RulePair& pair,
                       const RuleCheck& check) {
  int64_t elements = 1;
  for (const Instr* parameter : pair.pattern->entry()->parameters())
    elements += parameter->shape().ElementCount();
  size_t kinds = elements > kManyElements ? kFewDraws : std::size(kDraws);
  int64_t repeats = std::clamp<int64_t>(kDrawnElements / elements, 1, kMostRepeats);
  for (Draw draw : std::span(kDraws).first(kinds))
    if (draw != Draw::kNonfinite || check.nonfinite)
      TOK_RETURN_IF_ERROR(CheckDraws(name, where, pair, check, draw, repeats));
  return Ok();
}

}  // namespace tokamak
