#include "driver/plugins/check_values.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "interp/arguments.h"
#include "interp/interp.h"

namespace tokamak {
namespace {

// Seeds of the drawn inputs. Chosen: a second set of values finds what the first has by accident.
constexpr uint64_t kSeeds[] = {1, 2};
// Interpreted instructions at most; programs that take more are not compared. Chosen: about a
// second.
constexpr int64_t kMaxSteps = 200'000;

// The default tolerance of `run --expect` (driver/run/compare_arrays.h), absolute and relative.
double ToleranceOf(ElementType type) {
  int bits = InfoOf(type).bits;
  return bits >= 32 ? 1e-4 : bits == 16 ? 2e-2 : 1e-1;
}

bool IsSame(const Literal& x, const Literal& y, int64_t i, bool may_round) {
  if (x.BitsAt(i) == y.BitsAt(i)) return true;
  if (!IsReal(x.type())) return false;
  double a = x.DoubleAt(i), b = y.DoubleAt(i);
  if (std::isnan(a) && std::isnan(b)) return true;
  double tolerance = ToleranceOf(x.type());
  return may_round && std::abs(a - b) <= tolerance + tolerance * std::abs(a);
}

std::string DifferenceIn(const Literal& x, const Literal& y, size_t result, bool may_round) {
  if (!(x.shape() == y.shape()))
    return fmt::format("result {} is {}, not {}", result, ToString(y.shape()), ToString(x.shape()));
  if (IsComplex(x.type())) {
    for (int64_t i = 0; i < x.shape().ElementCount(); ++i)
      if (std::abs(x.ComplexAt(i) - y.ComplexAt(i)) >
          (may_round ? ToleranceOf(x.type()) * (1 + std::abs(x.ComplexAt(i))) : 0))
        return fmt::format("element {} of result {} differs", i, result);
    return "";
  }
  for (int64_t i = 0; i < x.shape().ElementCount(); ++i)
    if (!IsSame(x, y, i, may_round))
      return fmt::format("element {} of result {} is {:g}, not {:g}", i, result,
                         IsReal(y.type()) ? y.DoubleAt(i) : static_cast<double>(y.IntAt(i)),
                         IsReal(x.type()) ? x.DoubleAt(i) : static_cast<double>(x.IntAt(i)));
  return "";
}

}  // namespace

std::string DifferenceOfValues(const Module& before, const Module& after, bool may_round) {
  for (uint64_t seed : kSeeds) {
    Result<std::vector<Value>> arguments = DrawArguments(seed, *before.entry());
    if (!arguments.ok()) return "";
    RunOptions options;
    options.max_steps = kMaxSteps;
    Result<RunOutcome> expected = Interpret(before, arguments.value(), options);
    if (!expected.ok()) return "";
    options.max_steps = 2 * kMaxSteps;
    Result<RunOutcome> got = Interpret(after, arguments.value(), options);
    if (!got.ok()) return "it cannot be run any more: " + got.error().message;
    const std::vector<Value>&x = expected.value().results, &y = got.value().results;
    if (x.size() != y.size()) return "it has another number of results";
    for (size_t i = 0; i < x.size(); ++i) {
      if (!x[i].shape().IsArray() || !y[i].shape().IsArray()) continue;
      std::string difference =
          DifferenceIn(LiteralFromValue(x[i]), LiteralFromValue(y[i]), i, may_round);
      if (!difference.empty())
        return fmt::format("{}, on drawn inputs (seed {})", difference, seed);
    }
  }
  return "";
}

}  // namespace tokamak
