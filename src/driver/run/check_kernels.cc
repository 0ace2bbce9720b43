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
// a whole (unspecified_values.h).

#include "driver/run/check_kernels.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "driver/compile/custom_kernel_code.h"
#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "driver/run/compare_arrays.h"
#include "driver/run/unspecified_values.h"
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
  bool is_custom =
      step.kind == StepKind::kCall && CustomKernelIn(*program_.call_instrs[step.target]) != nullptr;
  if (!is_custom) return Ok();
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
  if (HasUnspecifiedResult(work.instrs, reference)) return Ok();
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
    } else if (DependsOnOverflow(instr, work.instrs, reference)) {
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
