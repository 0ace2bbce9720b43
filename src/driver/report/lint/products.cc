// lint.tf32: products of f32 whose factors a GPU rounds to TF32.
// lint.padding-waste: a product of an array that was padded with zeros.
// lint.library-boundary: a library call between kernels that only move its operand or result.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "driver/report/write.h"
#include "gen/dot_dimensions.h"
#include "ir/dot_precision.h"

namespace tokamak {
namespace {

// Terms of a sum from which a note about TF32 is useful, and elements of the result (chosen: GPU
// kernels for smaller products use f32).
constexpr int64_t kMinTf32Terms = 16, kMinTf32Elements = 256;
constexpr size_t kMostTf32Lines = 8;  // lines in the note (chosen)
// Part of the multiplications of a product that are with padding, from which it is a finding
// (chosen).
constexpr double kMinPadded = 0.2;
// Part of a call that an array beside a library call costs, from which it is a finding (chosen).
constexpr double kMinBoundary = 0.05;

// ---- TF32

int64_t TermsOf(const Instr& dot) {
  return SizeAlong(dot.operand(0)->shape().dims(), dot.attrs<DotAttrs>().lhs_contracting);
}

bool MayUseTf32(const Instr& dot) {
  if (dot.op() != Op::kDot || !dot.shape().IsStaticArray() ||
      !dot.operand(0)->shape().IsStaticArray() || !dot.operand(1)->shape().IsStaticArray())
    return false;
  for (const Instr* operand : dot.operands())
    if (operand->shape().type() != ElementType::kF32) return false;
  return AllowsTf32(dot.attrs<DotAttrs>()) && TermsOf(dot) >= kMinTf32Terms &&
         dot.shape().ElementCount() >= kMinTf32Elements;
}

// Instructions followed from an addition back to a sum of squares (chosen).
constexpr int kStepsToSquares = 6;

// Whether a value is computed from a sum of squares of `factor`: |x|^2 beside x @ y.
bool SumsSquaresOf(const Instr* value, const Instr* factor, int steps = kStepsToSquares) {
  for (; steps > 0; --steps) {
    value = LintSource(value);
    if (value->op() == Op::kReduce) {
      const Instr* squared = LintSource(value->operand(0));
      bool squares = squared->op() == Op::kSquare ||
                     (squared->op() == Op::kMultiply &&
                      LintSource(squared->operand(0)) == LintSource(squared->operand(1)));
      return squares && LintSource(squared->operand(0)) == LintSource(factor);
    }
    if (value->op() == Op::kAdd)
      return SumsSquaresOf(value->operand(0), factor, steps - 1) ||
             SumsSquaresOf(value->operand(1), factor, steps - 1);
    if (value->operand_count() == 0) return false;
    value = value->operand(0);
  }
  return false;
}

// Why a product needs more than 11 significant bits; empty if no reason is visible.
std::string WhyPrecise(const Instr& dot) {
  constexpr int kSteps = 4;  // followed from the product (chosen)
  const Instr* value = &dot;
  for (int i = 0; i < kSteps && value->users().size() == 1; ++i) {
    const Instr* user = value->users()[0];
    if (user->op() == Op::kCholesky || user->op() == Op::kTriangularSolve)
      return "a linear system is solved with it";
    if (user->op() == Op::kAdd || user->op() == Op::kSubtract) {
      const Instr* other = user->operand(user->operand(0) == value ? 1 : 0);
      for (const Instr* factor : dot.operands())
        if (SumsSquaresOf(other, factor))
          return "squared distances are small differences of large numbers";
    }
    bool continues = user->op() == Op::kMultiply || user->op() == Op::kNegate ||
                     user->op() == Op::kReshape || user->op() == Op::kTranspose ||
                     user->op() == Op::kAdd || user->op() == Op::kSubtract;
    if (!continues) return "";
    value = user;
  }
  return "";
}

void LookForTf32(LintSubject& subject) {
  std::vector<const Instr*> products;
  int64_t most_terms = 0;
  for (const auto& computation : subject.written().computations())
    for (const Instr* instr : computation->Instrs()) {
      if (!MayUseTf32(*instr)) continue;
      if (std::string why = WhyPrecise(*instr); !why.empty()) {
        subject.Add({.rule = "lint.tf32",
                     .lines = LintLinesOf({instr}),
                     .text = fmt::format("this product of f32 rounds its factors to TF32 (11 "
                                         "significant bits), and {}: ask for precision='highest'",
                                         why),
                     .fix = {.kind = "precision", .text = "highest"}});
        continue;
      }
      products.push_back(instr);
      most_terms = std::max(most_terms, TermsOf(*instr));
    }
  if (products.empty()) return;
  std::vector<std::string> lines = LintLinesOf(products);
  size_t more = lines.size() - std::min(lines.size(), kMostTf32Lines);
  lines.resize(lines.size() - more);
  subject.Add(
      {.rule = "lint.tf32",
       .severity = LintSeverity::kNote,
       .lines = std::move(lines),
       .text = fmt::format(
           "{} products of f32 round their factors to TF32 on this GPU, as with XLA: the "
           "error of a sum is at most 2^-10 of the sum of |x||y| (up to {} terms){}; where "
           "values need more: precision='highest', or jax_default_matmul_precision",
           products.size(), most_terms, more == 0 ? "" : fmt::format(", on {} more lines", more)),
       .fix = {.kind = "precision", .text = "highest"}});
}

// ---- padding

// The part of a dot's operand that is zero padding added by a pad; 0 if none.
double PaddedPart(const Instr* operand, const Instr** pad) {
  const Instr* value = operand;
  while (value->operand_count() == 1 &&
         (value->op() == Op::kReshape || value->op() == Op::kTranspose ||
          value->op() == Op::kConvert || value->op() == Op::kCopy))
    value = value->operand(0);
  if (value->op() != Op::kPad || !value->shape().IsStaticArray() ||
      !value->operand(0)->shape().IsStaticArray())
    return 0;
  const Instr* zero = LintSource(value->operand(1));
  if (zero->op() != Op::kConstant || zero->attrs<ConstantAttrs>().literal.DoubleAt(0) != 0)
    return 0;
  for (int64_t low : value->attrs<PadAttrs>().low)
    if (low < 0) return 0;
  *pad = value;
  auto all = static_cast<double>(value->shape().ElementCount());
  auto kept = static_cast<double>(value->operand(0)->shape().ElementCount());
  return all > 0 && kept <= all ? 1 - kept / all : 0;
}

void LookForPadding(LintSubject& subject) {
  for (const auto& computation : subject.written().computations())
    for (const Instr* dot : computation->Instrs()) {
      if (dot->op() != Op::kDot) continue;
      const Instr* pad = nullptr;
      double kept = 1;
      std::vector<const Instr*> at = {dot};
      for (const Instr* operand : dot->operands()) {
        double part = PaddedPart(operand, &pad);
        if (part > 0) at.push_back(pad);
        kept = std::min(kept, 1 - part);
      }
      double wasted = 1 - kept;
      if (wasted < kMinPadded) continue;
      double us = 0;
      for (size_t step : subject.StepsOf(*dot))
        us += subject.Claim(step, subject.report().steps[step].us() * wasted);
      if (us == 0) continue;
      subject.Add(
          {.rule = "lint.padding-waste",
           .lines = LintLinesOf(at),
           .us = us,
           .text = fmt::format("{:.0f} % of the multiplications of a product are with zeros "
                               "that jnp.pad added: multiply first and pad the result, or "
                               "group arrays by size",
                               100 * wasted)});
    }
}

// ---- library calls

// Whether a step is one of our kernels for elementwise operations only.
bool IsElementwiseKernel(const StepReport& step) {
  return step.generator == "loop" && step.work.has_value();
}

void LookForBoundaries(LintSubject& subject) {
  const std::vector<StepReport>& steps = subject.report().steps;
  double call_us = subject.report().totals.us;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].generator != "library" || steps[i].made.size() != 1) continue;
    const Instr& made = *steps[i].made[0];
    const LintSubject::Traffic& traffic = subject.TrafficOf(made);
    // Stored for one elementwise kernel: its epilogue.
    if (traffic.readers != 1 || traffic.steps.size() != 2) continue;
    const StepReport& reader = steps[traffic.steps[1]];
    if (!IsElementwiseKernel(reader)) continue;
    double memory = reader.estimate ? reader.estimate->memory : 0;
    double part = static_cast<double>(LintBytes(made)) /
                  std::max<double>(1, static_cast<double>(reader.reads + reader.writes));
    if (memory * part * static_cast<double>(reader.runs()) < kMinBoundary * call_us) continue;
    std::vector<const Instr*> at = {&made};
    at.insert(at.end(), reader.made.begin(), reader.made.end());
    double us = subject.ClaimBytes(traffic.steps[1], LintBytes(made));
    subject.Add({.rule = "lint.library-boundary",
                 .lines = LintLinesOf(at),
                 .us = us,
                 .text = fmt::format("{} stores {} that only {} reads, {} operations: narrower "
                                     "results (preferred_element_type) halve that traffic; "
                                     "tokamak.require_fused shows what prevents one kernel",
                                     steps[i].library, BytesText(LintBytes(made)), reader.name,
                                     reader.ops)});
  }
}

}  // namespace

void LintProducts(LintSubject& subject) {
  if (subject.has_written()) LookForPadding(subject);
  LookForBoundaries(subject);
}

void LintPrecision(LintSubject& subject) {
  if (subject.machine().is_gpu() && subject.has_written()) LookForTf32(subject);
}

}  // namespace tokamak
