// Transformations that preserve the values of a program.
#include "ir/clone.h"
#include "ir/compare.h"
#include "random/check.h"
#include "random/plan_order.h"
#include "rewrite/normal_form.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak::fuzz {
namespace {

// Checks that the interpreter is deterministic.
class Clone : public Transformation {
 public:
  std::string name() const override { return "clone"; }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    return CloneModule(module);
  }
};

// Prints and parses; the result must also be equal.
class RoundTrip : public Transformation {
 public:
  explicit RoundTrip(bool hlo) : hlo_(hlo) {}
  std::string name() const override { return hlo_ ? "hlo" : "mlir"; }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    std::string text = hlo_ ? WriteHloText(module) : WriteStablehloText(module);
    TOK_TRY(std::unique_ptr<Module> again,
            hlo_ ? ReadHloText(text, "printed") : ReadMlirText(text, "printed"));
    std::string difference = FirstDifference(module, *again);
    if (!difference.empty())
      return MakeError(ErrorCode::kRoundTripDiffers, "reads back differently: " + difference);
    if (StructuralHash(module) != StructuralHash(*again))
      return MakeError(ErrorCode::kRoundTripDiffers, "equal modules have different hashes");
    return again;
  }

 private:
  bool hlo_;
};

bool IsWrittenOut(const Instr& instr) {
  if (!instr.info().Is(kElementwise) || instr.operand_count() == 0) return false;
  if (!instr.operand(0)->shape().IsArray()) return false;
  bool by_function = instr.info().mlir.starts_with("chlo.") && instr.op() != Op::kSquare;
  return by_function || IsComplex(instr.operand(0)->shape().type());
}

// Whether the op turns the sign of a zero into more than the sign of a zero.
bool SeesZeroSigns(const Instr& instr) {
  switch (instr.op()) {
    case Op::kDivide:
    case Op::kPower:
    case Op::kRsqrt:
    case Op::kAtan2:
    case Op::kTriangularSolve:
    case Op::kCholesky:
    case Op::kBatchNormTraining:
    case Op::kBatchNormInference:
    case Op::kBatchNormGrad:
      return !IsInteger(instr.operand(0)->shape().type());
    case Op::kBitcastConvert:
    case Op::kSort:
    case Op::kTopK:
      return IsReal(instr.operand(0)->shape().type());
    case Op::kCompare:
      return instr.attrs<CompareAttrs>().type == CompareType::kTotalOrder;
    default:
      return false;
  }
}

class Normal : public Transformation {
 public:
  std::string name() const override { return "normal-form"; }
  // The pass simplifies x + 0 to x.
  Closeness closeness() const override { return {.ulps = 0, .zero_signs = false}; }
  // Functions that JAX expands are expanded in the same way, with any rounding. A zero of the other
  // sign may also have led to a different value.
  bool Keeps(const Module& module) const override {
    for (const auto& computation : module.computations())
      for (const Instr* instr : computation->Instrs())
        if (IsWrittenOut(*instr) || SeesZeroSigns(*instr)) return false;
    return true;
  }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    return NormalForm(module);
  }
};

}  // namespace

std::unique_ptr<Transformation> TransformationNamed(std::string_view name) {
  if (name == "clone") return std::make_unique<Clone>();
  if (name == "hlo") return std::make_unique<RoundTrip>(true);
  if (name == "mlir") return std::make_unique<RoundTrip>(false);
  if (name == "normal-form") return std::make_unique<Normal>();
  if (name.starts_with("on:")) return BackendNamed(name);
  if (name == "plans:shuffled") return PlanShuffle();
  return PassNamed(name);
}

std::vector<std::string> TransformationNames() {
  std::vector<std::string> names{"clone", "hlo", "mlir", "normal-form"};
  for (std::string& pass : PassNames()) names.push_back(std::move(pass));
  return names;
}

}  // namespace tokamak::fuzz
