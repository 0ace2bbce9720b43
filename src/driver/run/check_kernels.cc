// Compares each step of a run with the interpreter, given the step's actual inputs. The difficulty
// is the tolerance: a fused kernel rounds at other points than the reference, and conditioning
// differs per element. Instead of one constant, the tolerance is measured:
//
//   reference   every op rounded to its type          oracle   rounded once, at the end
//   moved       oracle for inputs perturbed by a few roundings, up to kDraws times
//
//   atol(i) = plain + slack of sums + 8 * max(|reference(i) - oracle(i)|, |moved(i) - oracle(i)|)
//
// An ill-conditioned element moves with its inputs and gets a wide tolerance; a well-conditioned
// one stays strict. Elements on which the references disagree (the other side of a comparison, an
// overflow) are skipped. Steps whose result is unspecified by the semantics of an op are skipped as
// a whole (AnyOpen, ShowsBits).

#include "driver/run/check_kernels.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/index_map.h"
#include "driver/compile/custom_kernel_code.h"
#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "driver/run/compare_arrays.h"
#include "explain/decision.h"
#include "interp/array_bytes.h"
#include "ir/dot_precision.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

// Maximum number of random perturbations of the inputs. Chosen: four pairs of opposite ones; more
// than one is needed only where the first comparison fails.
constexpr size_t kDraws = 8;

// Allowed difference from the interpreter's result.
struct Bound {
  double rtol = 0, atol = 0;
  // Partial sums may overflow, depending on their order: infinities and NaNs are not checked.
  bool may_overflow = false;
};

bool IsFractional(ElementType type) {
  return IsReal(type) || IsComplex(type);
}

Bound PlainBound(ElementType type) {
  if (!IsFractional(type)) return {};
  int bits = InfoOf(RealPartOf(type)).bits;
  double base = bits <= 8 ? 1e-1 : bits <= 16 ? 2e-2 : bits <= 32 ? 1e-4 : 1e-9;
  return {base, base, false};
}

// The largest finite magnitude of an array; 0 for integers.
double LargestOf(const Value& value) {
  double largest = 0;
  if (!value.shape().IsArray() || !IsFractional(value.type())) return largest;
  auto take = [&](double x) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  };
  if (IsComplex(value.type())) {
    for (const Complex& x : value.Data<Complex>()) {
      take(x.real());
      take(x.imag());
    }
  } else {
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

bool AnyOpen(const std::vector<const Instr*>& instrs,
             const std::unordered_map<const Instr*, Value>& values) {
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

// Rounding error of a sum of that many terms if large ones cancel.
double SlackOf(const Instr& instr, const std::unordered_map<const Instr*, Value>& values,
               bool tf32) {
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

// Whether some reduction of the instructions may overflow.
bool MayOverflow(const std::vector<const Instr*>& instrs,
                 const std::unordered_map<const Instr*, Value>& values, ElementType type) {
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

// Whether some reduction overflowed in an intermediate result: which of its results are infinite
// and which are NaN depends on the order of the terms, and so does everything that depends on the
// difference.
bool LeftTheRange(const std::vector<const Instr*>& instrs,
                  const std::unordered_map<const Instr*, Value>& values) {
  return std::ranges::any_of(instrs, [&](const Instr* instr) {
    if (TermsOf(*instr) <= 1 || !instr->shape().IsArray()) return false;
    return AnyPart(values.at(instr), IsNoNumber) &&
           MayOverflow({instr}, values, instr->shape().type());
  });
}

// Whether the bits of a NaN or of a rounded value become a number; those bits are unspecified.
bool ShowsBits(const std::vector<const Instr*>& instrs,
               const std::unordered_map<const Instr*, Value>& values) {
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

// Whether results may be one or two roundings away from the interpreter's.
bool IsApproximate(const Instr& instr) {
  if (instr.info().Is(kContraction) || instr.info().Is(kReduction)) return true;
  switch (instr.op()) {
    case Op::kExp:
    case Op::kExpm1:
    case Op::kLog:
    case Op::kLog1p:
    case Op::kPower:
    case Op::kTanh:
    case Op::kLogistic:
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kAtan2:
    case Op::kCbrt:
    case Op::kRsqrt:
      return true;
    default:
      return instr.info().mlir.starts_with("chlo.");
  }
}

// The numbers, each perturbed by a few roundings; the effect shows how far a result may be off.
// Draws 2 n and 2 n + 1 are opposite: a number that is about to be rounded is seen on both sides.
Value Moved(const Value& value, uint64_t draw, bool tf32) {
  if (!value.shape().IsArray() || !IsFractional(value.type())) return value;
  int bits = InfoOf(RealPartOf(value.type())).bits;
  uint64_t pair = draw / 2;
  bool is_opposite = draw % 2 == 1;
  double step = static_cast<double>(4 - pair % 3) * (bits > 32   ? 0x1p-52
                                                     : bits > 16 ? (tf32 ? 0x1p-12 : 0x1p-23)
                                                     : bits > 8  ? 0x1p-9
                                                                 : 0x1p-4);
  // The largest numbers stay finite.
  auto other = [&](double x, size_t i) {
    uint64_t mixed = (i + 1 + (pair << 32)) * 0x9E3779B97F4A7C15u;
    bool is_larger = ((mixed >> 40 & 1) != 0) != is_opposite && std::isfinite(x * 2);
    return x * (is_larger ? 1 + step : 1 - step);
  };
  if (IsComplex(value.type())) {
    std::span<const Complex> from = value.Data<Complex>();
    std::vector<Complex> to(from.begin(), from.end());
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = {other(to[i].real(), 2 * i), other(to[i].imag(), 2 * i + 1)};
    return Value::Array(value.shape(), std::move(to));
  }
  std::span<const double> from = value.Data<double>();
  std::vector<double> to(from.begin(), from.end());
  for (size_t i = 0; i < to.size(); ++i) to[i] = other(to[i], i);
  return Value::Array(value.shape(), std::move(to));
}

double DistanceAt(const Literal& x, const Literal& y, int64_t i) {
  if (!IsFractional(x.type())) return 0;
  double distance = IsComplex(x.type()) ? std::abs(x.ComplexAt(i) - y.ComplexAt(i))
                                        : std::abs(x.DoubleAt(i) - y.DoubleAt(i));
  return std::isfinite(distance) ? distance : 0;
}

bool CloseTo(double got, double expected, const Bound& bound) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  if (!std::isfinite(got) || !std::isfinite(expected)) return bound.may_overflow;
  return std::abs(got - expected) <= bound.atol + bound.rtol * std::abs(expected);
}

bool CloseAt(const Literal& got, const Literal& expected, int64_t i, const Bound& bound) {
  if (IsReal(got.type())) return CloseTo(got.DoubleAt(i), expected.DoubleAt(i), bound);
  if (!IsComplex(got.type())) return got.BitsAt(i) == expected.BitsAt(i);
  std::complex<double> x = got.ComplexAt(i), y = expected.ComplexAt(i);
  // Which part of a product is infinite and which is NaN is unspecified.
  auto is_finite = [](std::complex<double> z) {
    return std::isfinite(z.real()) && std::isfinite(z.imag());
  };
  if (!is_finite(x) && !is_finite(y)) return true;
  Bound both = {0, bound.atol + bound.rtol * std::abs(y), bound.may_overflow};
  return CloseTo(x.real(), y.real(), both) && CloseTo(x.imag(), y.imag(), both);
}

// The interpreter's results: rounded after every op, rounded at the end only, and for perturbed
// inputs.
struct Opinions {
  Literal reference, oracle;
  std::vector<Literal> moved;
};

// Empty if they agree.
std::string DifferenceOf(const Literal& got, const Opinions& of, const Bound& plain) {
  int64_t count = got.shape().ElementCount(), mismatches = 0, first = -1;
  Bound at_first;
  for (int64_t i = 0; i < count; ++i) {
    Bound bound = plain;
    double distance = DistanceAt(of.reference, of.oracle, i);
    for (const Literal& moved : of.moved)
      distance = std::max(distance, DistanceAt(moved, of.oracle, i));
    bound.atol += 8 * distance;
    if (CloseAt(got, of.reference, i, bound) || CloseAt(got, of.oracle, i, bound)) continue;
    // Skip elements on which the references themselves disagree (a step of floor, the other side of
    // a comparison, an overflow).
    auto is_other = [&](const Literal& x) { return !CloseAt(x, of.oracle, i, plain); };
    if (is_other(of.reference) || std::ranges::any_of(of.moved, is_other)) continue;
    if (mismatches++ > 0) continue;
    first = i;
    at_first = bound;
  }
  if (mismatches == 0) return "";
  std::string tolerance;
  if (IsFractional(got.type()))
    tolerance = fmt::format("; tolerance {:.3g} + {:.3g} * |x|", at_first.atol, at_first.rtol);
  return fmt::format(
      "{} of {} elements differ; the first is number {}: got {}, the interpreter has {}{}",
      mismatches, count, first, ElementText(got, first), ElementText(of.reference, first),
      tolerance);
}

const Value& PartOf(const Value& value, size_t part) {
  return value.shape().IsTuple() ? value.elements()[part] : value;
}

bool MultipliesNarrow(const StmtList& block, const Kernel& kernel) {
  return std::ranges::any_of(block, [&](const Stmt& stmt) {
    return (stmt.kind == StmtKind::kMatMul && BytesOf(kernel.array(stmt.matmul.lhs).type) == 2) ||
           MultipliesNarrow(stmt.body, kernel) || MultipliesNarrow(stmt.else_body, kernel) ||
           MultipliesNarrow(stmt.condition_stmts, kernel);
  });
}

// Whether a kernel multiplies f32 as sums of 16-bit factors, which is more precise than TF32.
bool SplitsFactors(std::span<const Instr* const> instrs, const Kernel& kernel) {
  auto has_f32 = [](const Instr* instr) {
    return instr->op() == Op::kDot &&
           std::ranges::any_of(instr->operands(), [](const Instr* operand) {
             return operand->shape().type() == ElementType::kF32;
           });
  };
  return std::ranges::any_of(instrs, has_f32) && MultipliesNarrow(kernel.body, kernel);
}

// Whether a library on a GPU may round the factors of a dot or convolution of f32 to TF32.
bool MayRoundToTf32(const Instr& instr) {
  if (instr.op() == Op::kConvolution)
    return AreAllDefault(instr.attrs<ConvolutionAttrs>().precision);
  return instr.op() == Op::kDot && AllowsTf32(instr.attrs<DotAttrs>());
}

}  // namespace

bool MultipliesTf32(const StmtList& block) {
  return std::ranges::any_of(block, [](const Stmt& stmt) {
    bool is_rounded = stmt.matmul.tf32 || stmt.matmul.IsFloat8();
    return (stmt.kind == StmtKind::kMatMul && is_rounded) || MultipliesTf32(stmt.body) ||
           MultipliesTf32(stmt.else_body) || MultipliesTf32(stmt.condition_stmts);
  });
}

namespace {

RunOptions WithCustomKernels() {
  RunOptions options;
  options.host_calls = &RegisteredHostCalls();
  return options;
}

const Instr* CustomStep(const RunStep& step, const LoweredProgram& program) {
  if (step.kind != StepKind::kCall) return nullptr;
  const Instr* instr = program.call_instrs[step.target];
  return CustomKernelIn(*instr) != nullptr ? instr : nullptr;
}

}  // namespace

KernelChecker::KernelChecker(const LoweredProgram& program, const Module& module,
                             std::span<const HostFunction* const> functions, bool library_tf32)
    : program_(program),
      module_(module),
      functions_(functions),
      library_tf32_(library_tf32),
      reference_(WithCustomKernels()),
      oracle_(WithCustomKernels()),
      reference_runner_(reference_),
      oracle_runner_(oracle_) {
  oracle_.mode = NumericMode::kOracle;
}

bool KernelChecker::IsWatched(const RunStep& step) const {
  return step.kind != StepKind::kHost || !functions_[step.target]->IsInterpreter();
}

// The launches of a horizontally fused one are independent: together they are one kernel, whose
// arguments are those of all launches.
KernelChecker::Work KernelChecker::HorizontalWorkOf(const RunStep& step) const {
  Work all;
  all.name = "horizontally fused launch";
  for (const RunStep& launch : step.blocks[0]) {
    Work work = WorkOf(launch);
    for (auto [number, old] : work.updates)
      all.updates.emplace_back(all.arguments.size() + number, old);
    all.instrs.insert(all.instrs.end(), work.instrs.begin(), work.instrs.end());
    all.arguments.insert(all.arguments.end(), work.arguments.begin(), work.arguments.end());
    all.tf32 = all.tf32 || work.tf32;
  }
  return all;
}

KernelChecker::Work KernelChecker::WorkOf(const RunStep& step) const {
  if (step.kind == StepKind::kHorizontal) return HorizontalWorkOf(step);
  if (step.kind == StepKind::kLaunch) {
    const KernelSource& source = program_.sources[step.target];
    const Kernel& kernel = program_.kernels[step.target];
    return {source.region.instrs, source.arguments, source.updates, "kernel '" + kernel.name + "'",
            MultipliesTf32(kernel.body) || SplitsFactors(source.region.instrs, kernel)};
  }
  const Instr* instr = step.kind == StepKind::kLibrary ? program_.product_instrs[step.target]
                       : step.kind == StepKind::kCall  ? program_.call_instrs[step.target]
                                                       : program_.host_instrs[step.target];
  Work work{.instrs = {instr}, .arguments = {}, .updates = {}, .name = "library step"};
  work.tf32 = library_tf32_ && MayRoundToTf32(*instr);
  for (const Instr* operand : instr->operands()) work.arguments.push_back({.instr = operand});
  for (size_t i = 0; i < ResultShapesOf(instr->shape()).size(); ++i)
    work.arguments.push_back({.instr = instr, .result_index = i, .is_output = true});
  return work;
}

Status KernelChecker::Before(const RunStep& step, std::span<void* const> arguments) {
  inputs_.clear();
  if (!IsWatched(step)) return Ok();
  Work work = WorkOf(step);
  for (size_t i = 0; i < work.arguments.size() && i < arguments.size(); ++i) {
    const KernelArgument& argument = work.arguments[i];
    if (argument.is_output || !argument.instr->shape().IsArray()) continue;
    TOK_TRY(inputs_[argument.instr], ValueFromBytes(argument.instr->shape(), arguments[i]));
  }
  for (const auto& [number, old] : work.updates) {
    TOK_TRY(inputs_[old], ValueFromBytes(old->shape(), arguments[number]));
  }
  // The interpreter runs a kernel of the user in a child process, which may crash.
  if (CustomStep(step, program_) == nullptr) return Ok();
  Values trial = inputs_;
  return Evaluate(work, reference_runner_, trial, std::nullopt);
}

Status KernelChecker::Evaluate(const Work& work, InstrRunner& runner, Values& values,
                               std::optional<uint64_t> draw) const {
  for (const Instr* instr : work.instrs) {
    if (values.count(instr) != 0) continue;
    std::vector<Value> operands;
    for (const Instr* operand : instr->operands()) {
      auto it = values.find(operand);
      if (it == values.end() && operand->op() == Op::kConstant) {
        TOK_TRY(Value constant, runner.Evaluate(*operand, {}));
        it = values.emplace(operand, std::move(constant)).first;
      }
      if (it == values.end() && instr->op() == Op::kWhile) {
        // The previous contents are irrelevant: a loop overwrites all of it.
        std::vector<std::byte> zeros(static_cast<size_t>(operand->shape().ByteSize()));
        TOK_TRY(Value blank, ValueFromBytes(operand->shape(), zeros.data()));
        it = values.emplace(operand, std::move(blank)).first;
      }
      if (it == values.end()) return Differs(work, *operand, "it is not an argument of the kernel");
      operands.push_back(it->second);
    }
    TOK_TRY(Value value, runner.Evaluate(*instr, std::move(operands)));
    values.emplace(
        instr, draw && IsApproximate(*instr) ? Moved(value, *draw, work.tf32) : std::move(value));
  }
  return Ok();
}

Status KernelChecker::After(const RunStep& step, std::span<void* const> arguments) {
  if (!IsWatched(step)) return Ok();
  Work work = WorkOf(step);
  Values reference = inputs_, oracle = inputs_;
  TOK_RETURN_IF_ERROR(Evaluate(work, reference_runner_, reference, std::nullopt));
  TOK_RETURN_IF_ERROR(Evaluate(work, oracle_runner_, oracle, std::nullopt));
  if (ShowsBits(work.instrs, reference) || AnyOpen(work.instrs, reference)) return Ok();
  // A single perturbation may leave a result unchanged by chance: try more before reporting a
  // kernel as wrong.
  std::vector<Values> moved;
  Status status = Ok();
  do {
    moved.push_back(inputs_);
    uint64_t draw = moved.size() - 1;
    for (auto& [instr, value] : moved.back()) value = Moved(value, draw, work.tf32);
    TOK_RETURN_IF_ERROR(Evaluate(work, oracle_runner_, moved.back(), draw));
    status = CompareWithReference(work, arguments, reference, oracle, moved);
  } while (!status.ok() && moved.size() < kDraws);
  return status;
}

Status KernelChecker::CompareWithReference(const Work& work, std::span<void* const> arguments,
                                           const Values& reference, const Values& oracle,
                                           std::span<const Values> moved) const {
  for (size_t i = 0; i < work.arguments.size() && i < arguments.size(); ++i) {
    const KernelArgument& argument = work.arguments[i];
    if (!argument.is_output) continue;
    const Instr& instr = *argument.instr;
    const Value& exact = PartOf(reference.at(&instr), argument.result_index);
    TOK_TRY(Value got, ValueFromBytes(exact.shape(), arguments[i]));
    Bound bound = PlainBound(got.type());
    if (IsFractional(got.type())) {
      bound.may_overflow = MayOverflow(work.instrs, reference, got.type());
      double slack = SlackOf(instr, reference, work.tf32);
      if (work.tf32)  // values computed from a product have the same relative error
        for (const Instr* part : work.instrs)
          slack = std::max(slack, SlackOf(*part, reference, true));
      bound.atol += slack;
    } else if (LeftTheRange(MadeOf(instr, work.instrs), reference)) {
      continue;
    }
    auto part = [&](const Values& values) {
      return LiteralFromValue(PartOf(values.at(&instr), argument.result_index));
    };
    Opinions opinions{part(reference), part(oracle), {}};
    for (const Values& values : moved) opinions.moved.push_back(part(values));
    std::string words = DifferenceOf(LiteralFromValue(got), opinions, bound);
    if (!words.empty()) return Differs(work, instr, words);
  }
  return Ok();
}

Error KernelChecker::Differs(const Work& work, const Instr& instr, std::string words) const {
  Error error =
      MakeError(ErrorCode::kKernelDiffers,
                work.name + ": " + LabelOf(instr) + " (" + std::string(instr.info().name) + ", " +
                    ToString(instr.shape()) + "): " + words,
                SpanOf(instr));
  AddOrigins(error, instr, module_);
  std::string all;
  for (const Instr* part : work.instrs) all += (all.empty() ? "" : ", ") + LabelOf(*part);
  error.notes.push_back("it does " + all);
  return error;
}

}  // namespace tokamak
