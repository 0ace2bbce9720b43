// lint.float64: values of f64 in a program whose arguments are narrower.

#include <algorithm>

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

// Elements of an array that is worth a finding (chosen: scalars in f64 cost nothing).
constexpr int64_t kMinWideElements = 256;

bool IsWideFloat(ElementType type) {
  return RealPartOf(type) == ElementType::kF64;
}

bool IsWideArray(const Instr& instr) {
  return instr.shape().IsStaticArray() && IsWideFloat(instr.shape().type()) &&
         instr.shape().ElementCount() >= kMinWideElements;
}

// Whether the program has floating-point arguments, and all of them are narrower than f64.
bool HasNarrowArguments(const Computation& entry) {
  bool has_floats = false;
  for (const Instr* parameter : entry.parameters()) {
    if (!parameter->shape().IsArray()) continue;
    ElementType type = parameter->shape().type();
    if (IsWideFloat(type)) return false;
    has_floats |= IsReal(type) || IsComplex(type);
  }
  return has_floats;
}

bool ReturnsWide(const Computation& entry) {
  const Shape& shape = entry.root()->shape();
  if (!shape.IsTuple()) return IsWideArray(*entry.root());
  return std::any_of(shape.elements().begin(), shape.elements().end(), [](const Shape& result) {
    return result.IsArray() && IsWideFloat(result.type());
  });
}

// Where narrower values become f64.
std::vector<const Instr*> Promotions(const Module& module) {
  std::vector<const Instr*> promotions;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs()) {
      if (instr->op() != Op::kConvert || !IsWideArray(*instr)) continue;
      ElementType from = instr->operand(0)->shape().type();
      if ((IsReal(from) || IsComplex(from)) &&
          InfoOf(from).bits < InfoOf(instr->shape().type()).bits)
        promotions.push_back(instr);
    }
  return promotions;
}

// Half of the time that steps spend on f64: f32 has half of the bytes, and at least twice the
// operations per second.
double ClaimWideTime(LintSubject& subject) {
  double us = 0;
  const CompileReport& report = subject.report();
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const StepReport& step = report.steps[i];
    std::vector<const Instr*> all = subject.InstrsOf(step);
    int64_t wide = std::ranges::count_if(all, [](const Instr* of) { return IsWideArray(*of); });
    if (wide == 0) continue;
    us += subject.Claim(
        i, step.us() / 2 * static_cast<double>(wide) / static_cast<double>(all.size()));
  }
  return us;
}

}  // namespace

void LintFloat64(LintSubject& subject) {
  const Computation& entry = *subject.written().entry();
  if (!HasNarrowArguments(entry)) return;
  std::vector<const Instr*> promotions = Promotions(subject.written());
  if (promotions.empty()) return;
  int64_t bytes = 0;
  for (const Instr* promotion : promotions) bytes += LintBytes(*promotion);
  // f64 between narrower arguments and results is usually meant: sums that need it.
  bool leaks = ReturnsWide(entry);
  std::string text = fmt::format(
      "no argument is f64, but {} ({} in f64) here{}: a NumPy scalar or array has that type, a "
      "Python number does not; write jnp.float32(...) or dtype=jnp.float32",
      promotions.size() == 1 ? "an array becomes f64"
                             : fmt::format("{} arrays become f64", promotions.size()),
      BytesText(bytes), leaks ? ", and results are f64" : "");
  subject.Add({.rule = "lint.float64",
               .severity = leaks ? LintSeverity::kWarning : LintSeverity::kNote,
               .lines = LintLinesOf(promotions),
               .us = leaks ? ClaimWideTime(subject) : 0,
               .text = std::move(text),
               .fix = {.kind = "dtype", .text = "float32"}});
}

}  // namespace tokamak
