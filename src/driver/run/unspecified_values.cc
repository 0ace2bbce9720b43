#include "driver/run/unspecified_values.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "analysis/index_map.h"

namespace tokamak {
namespace {

// The largest finite magnitude of an array; 0 for integers.
double LargestOf(const Value& value) {
  double largest = 0;
  if (!value.shape().IsArray()) return largest;
  auto take = [&](double x) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  };
  if (IsComplex(value.type())) {
    for (const Complex& x : value.Data<Complex>()) {
      take(x.real());
      take(x.imag());
    }
  } else if (IsReal(value.type())) {
    for (double x : value.Data<double>()) take(x);
  }
  return largest;
}

double CountOf(const Shape& shape) {
  return shape.IsArray() ? static_cast<double>(shape.ElementCount()) : 1;
}

// Maximum number of terms reduced into one element of the result.
double TermsOf(const Instr& instr) {
  bool reduces = instr.info().Is(kReduction) || instr.info().Is(kContraction);
  if (!reduces || instr.operand_count() == 0) return 1;
  double inputs = CountOf(instr.operand(0)->shape());
  if (instr.op() == Op::kDot || instr.op() == Op::kReduceWindow)
    return std::max(1.0, static_cast<double>(ReadsPerElement(instr)));
  if (instr.op() == Op::kConvolution) return CountOf(instr.operand(1)->shape());
  return std::max(1.0, inputs);
}

bool ReducesProducts(const Instr& instr) {
  for (const Computation* body : instr.called())
    for (const Instr* part : body->Instrs())
      if (part->op() == Op::kMultiply) return true;
  return false;
}

// log2 of the smallest nonzero magnitude; 0 if none is below 1.
double LeastBits(const Value& value) {
  double bits = 0;
  auto take = [&](double x) {
    if (x != 0 && std::isfinite(x)) bits = std::min(bits, std::log2(std::abs(x)));
  };
  if (IsReal(value.type()))
    for (double x : value.Data<double>()) take(x);
  return bits;
}

// Whether the predicate `is` holds for any real or imaginary part.
template <typename Fn>
bool AnyPart(const Value& value, Fn&& is) {
  if (IsReal(value.type())) return std::ranges::any_of(value.Data<double>(), is);
  if (!IsComplex(value.type())) return false;
  return std::ranges::any_of(value.Data<Complex>(),
                             [&](const Complex& x) { return is(x.real()) || is(x.imag()); });
}

bool IsNoNumber(double x) {
  return !std::isfinite(x);
}

// Whether a finite f32 is beyond the largest TF32, which has 11 significant bits, by half of its
// last bit or more.
bool OverflowsTf32(double x) {
  return std::isfinite(x) && std::abs(x) >= 0x1.ffep127;
}

// Whether some matrix of the batch is so close to not being positive definite that rounding decides
// whether its Cholesky factor exists.
bool IsNearlySingular(const Value& matrices, double rounding) {
  if (!IsReal(matrices.type())) return false;
  int64_t n = matrices.dims().back();
  std::span<const double> numbers = matrices.Data<double>();
  for (int64_t begin = 0; begin + n * n <= matrices.ElementCount() && n > 0; begin += n * n) {
    std::vector<double> a(numbers.begin() + begin, numbers.begin() + begin + n * n);
    auto at = [&](int64_t i, int64_t j) -> double& { return a[static_cast<size_t>(i * n + j)]; };
    for (int64_t k = 0; k < n; ++k) {
      double whole = std::abs(numbers[static_cast<size_t>(begin + k * n + k)]);
      if (std::abs(at(k, k)) <= whole * static_cast<double>(n) * rounding) return true;
      for (int64_t i = k + 1; i < n; ++i)
        for (int64_t j = k + 1; j <= i; ++j) at(i, j) -= at(i, k) * at(j, k) / at(k, k);
    }
  }
  return false;
}

// Whether some complex number is a cancellation residue close to 0: which bits of a product remain
// depends on where its terms are rounded.
bool AnyResidue(const Value& value) {
  if (!IsComplex(value.type())) return false;
  double least = InfoOf(RealPartOf(value.type())).bits > 32 ? 0x1p-1022 : 0x1p-126;
  return std::ranges::any_of(value.Data<Complex>(), [&](const Complex& x) {
    return x != Complex(0) && std::abs(x.real()) < least && std::abs(x.imag()) < least;
  });
}

// Whether the result for this operand is unspecified: a product of several numbers that underflows
// in some order; numbers that bf16 units flush to 0; NaN in a sort, whose sign is unspecified. Also
// infinities in a transform, and matrices that are singular up to rounding.
bool IsOpen(const Instr& instr, const Value& operand) {
  double terms = TermsOf(instr);
  bool is_double = InfoOf(RealPartOf(operand.type())).bits > 32;
  switch (instr.op()) {
    case Op::kCholesky:
      return IsNearlySingular(operand, is_double ? 0x1p-46 : 0x1p-18);
    case Op::kFft:
      return AnyPart(operand, IsNoNumber);
    case Op::kConvert:  // which part of a product is infinite and which is NaN is unspecified
      return IsComplex(operand.type()) && AnyPart(operand, IsNoNumber);
    case Op::kSort:
    case Op::kTopK:
      return AnyPart(operand, [](double x) { return std::isnan(x); });
    case Op::kDot:
    case Op::kConvolution:
      // TF32 rounds the largest numbers to infinity, and its product with zero is NaN.
      if (operand.type() == ElementType::kF32 && AnyPart(operand, OverflowsTf32)) return true;
      return operand.type() == ElementType::kBF16 && LeastBits(operand) < -60;
    default:
      return terms > 2 && ReducesProducts(instr) &&
             LeastBits(operand) * terms < (is_double ? -1022 : -126);
  }
}

bool AnyOpen(const std::vector<const Instr*>& instrs, const StepValues& values) {
  for (const Instr* instr : instrs) {
    for (const Instr* operand : instr->operands()) {
      auto it = values.find(operand);
      if (it == values.end() || !it->second.shape().IsArray()) continue;
      if (IsOpen(*instr, it->second)) return true;
    }
    // Once a solution overflows, the next unknowns are differences of infinities.
    if (instr->op() == Op::kTriangularSolve && AnyPart(values.at(instr), IsNoNumber)) return true;
    if (instr->op() == Op::kMultiply && AnyResidue(values.at(instr))) return true;
  }
  return false;
}

// The subset of the instructions that `root` depends on, including itself.
std::vector<const Instr*> MadeOf(const Instr& root, const std::vector<const Instr*>& instrs) {
  std::vector<const Instr*> parts = {&root};
  for (size_t i = 0; i < parts.size(); ++i)
    for (const Instr* operand : parts[i]->operands())
      if (std::ranges::find(instrs, operand) != instrs.end() &&
          std::ranges::find(parts, operand) == parts.end())
        parts.push_back(operand);
  return parts;
}

// Whether the bits of a NaN or of a rounded value become a number; those bits are unspecified.
bool ShowsBits(const std::vector<const Instr*>& instrs, const StepValues& values) {
  for (const Instr* instr : instrs) {
    if (instr->op() != Op::kBitcastConvert || !IsReal(instr->operand(0)->shape().type())) continue;
    if (std::ranges::find(instrs, instr->operand(0)) != instrs.end()) return true;
    auto it = values.find(instr->operand(0));
    if (it == values.end()) continue;
    for (double x : it->second.Data<double>())
      if (std::isnan(x)) return true;
  }
  return false;
}

}  // namespace

bool HasUnspecifiedResult(const std::vector<const Instr*>& instrs, const StepValues& values) {
  return ShowsBits(instrs, values) || AnyOpen(instrs, values);
}

bool MayOverflow(const std::vector<const Instr*>& instrs, const StepValues& values,
                 ElementType type) {
  double limit = InfoOf(RealPartOf(type)).bits > 32 ? 1023 : 127;
  for (const Instr* instr : instrs) {
    bool multiplies = instr->info().Is(kContraction), reduces_products = ReducesProducts(*instr);
    double bits = 0;
    for (const Instr* operand : instr->operands()) {
      auto it = values.find(operand);
      double largest = it == values.end() ? 0 : LargestOf(it->second);
      double own = largest > 0 ? std::log2(largest) : -limit;
      bits = multiplies ? bits + own : std::max(bits, own);
    }
    double terms = TermsOf(*instr);
    if ((reduces_products ? bits * terms : bits + std::log2(terms)) > limit) return true;
  }
  return false;
}

bool DependsOnOverflow(const Instr& root, const std::vector<const Instr*>& instrs,
                       const StepValues& values) {
  return std::ranges::any_of(MadeOf(root, instrs), [&](const Instr* instr) {
    if (TermsOf(*instr) <= 1 || !instr->shape().IsArray()) return false;
    return AnyPart(values.at(instr), IsNoNumber) &&
           MayOverflow({instr}, values, instr->shape().type());
  });
}

double SlackOf(const Instr& instr, const StepValues& values, bool tf32) {
  bool multiplies = instr.info().Is(kContraction);
  if (!multiplies && !instr.info().Is(kReduction) && instr.op() != Op::kFft) return 0;
  double largest = 1,
         terms = instr.op() == Op::kFft ? CountOf(instr.operand(0)->shape()) : TermsOf(instr);
  for (size_t i = 0; i < (multiplies ? 2u : 1u); ++i) {
    auto it = values.find(instr.operand(i));
    if (it != values.end() && it->second.shape().IsArray()) largest *= LargestOf(it->second);
  }
  ElementType type = instr.operand(0)->shape().type();
  bool is_double = InfoOf(RealPartOf(type)).bits > 32;
  return terms * largest * (is_double ? 0x1p-52 : tf32 && multiplies ? 0x1p-10 : 0x1p-23);
}

}  // namespace tokamak
