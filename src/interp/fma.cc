// x * y + z with one rounding.

#include <bit>
#include <cmath>

#include "interp/evaluators.h"
#include "interp/rounding.h"

namespace tokamak {
namespace {

// x * y + z of numbers of at most 24 bits, rounded to odd: the last bit of the double is set if the
// result is inexact. Rounding that to at most 51 bits equals rounding the exact sum.
double FmaToOdd(double x, double y, double z) {
  double product = x * y;  // exact
  double sum = product + z;
  if (!std::isfinite(sum)) return sum;
  double back = sum - product;
  double lost = (product - (sum - back)) + (z - back);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (lost == 0 || (bits & 1) != 0) return sum;
  return std::bit_cast<double>((lost > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

}  // namespace

Result<Value> EvalFma(const Instr& instr, std::span<const Value> operands, Context& context) {
  TOK_RETURN_IF_ERROR(CheckSameDims(instr, operands));
  ElementType type = operands[0].type();
  Rounder round(type, context.mode());
  bool is_double = type == ElementType::kF64 || context.mode() == NumericMode::kOracle;
  Shape shape = ResultShape(instr, operands[0]);
  std::span<const double> y = operands[1].Data<double>(), z = operands[2].Data<double>();
  std::vector<double> elements = TakeOperand(operands, 0).TakeData<double>();
  for (size_t i = 0; i < elements.size(); ++i) {
    double& x = elements[i];
    x = round(is_double ? std::fma(x, y[i], z[i]) : FmaToOdd(x, y[i], z[i]));
  }
  return Value::Array(std::move(shape), std::move(elements));
}

}  // namespace tokamak
