// Compiles programs for a backend and runs them there.
#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "analysis/cumulative_window.h"
#include "analysis/index_map.h"
#include "driver/compile/compilation.h"
#include "driver/compile/devices.h"
#include "driver/compile/fusion_options.h"
#include "driver/run/compiled_run.h"
#include "gen/generator.h"
#include "ir/clone.h"
#include "random/bulk_schedules.h"
#include "random/check.h"

namespace tokamak::fuzz {
namespace {

// Ops with a uniquely defined result, independent of the implementation.
bool IsExactOnReals(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kNegate:
    case Op::kSign:
    case Op::kSqrt:
    case Op::kCeil:
    case Op::kFloor:
    case Op::kRoundAfz:
    case Op::kRoundEven:
    case Op::kIsFinite:
    case Op::kReal:
    case Op::kImag:
    case Op::kConvert:
    case Op::kReducePrecision:
    case Op::kSquare:
    case Op::kConj:
    case Op::kIsInf:
    case Op::kIsPosInf:
    case Op::kIsNegInf:
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kRemainder:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kComplex:
    case Op::kCompare:
    case Op::kNextAfter:
    case Op::kSelect:
    case Op::kClamp:
      return true;
    default:
      return false;
  }
}

bool IsExactOnComplex(Op op) {
  return op == Op::kAdd || op == Op::kSubtract || op == Op::kNegate || op == Op::kReal ||
         op == Op::kImag || op == Op::kConj || op == Op::kCompare || op == Op::kSelect ||
         op == Op::kComplex || op == Op::kConvert;
}

bool HasReals(const Instr& instr, bool (*is)(ElementType)) {
  auto has = [&](const Shape& shape) { return shape.IsArray() && is(shape.type()); };
  if (has(instr.shape())) return true;
  return std::any_of(instr.operands().begin(), instr.operands().end(),
                     [&](const Instr* operand) { return has(operand->shape()); });
}

// Windows of up to this many taps are always summed sequentially.
constexpr int64_t kShort = 8;

// Scatters with up to this many windows always combine them sequentially; GPUs combine more of them
// in chunks (docs/kernels.md).
constexpr int64_t kFewWindows = 512;

int64_t WindowsOf(const Instr& scatter) {
  if (scatter.op() == Op::kSelectAndScatter) return scatter.operand(1)->shape().ElementCount();
  const Shape& indices = scatter.operand((scatter.operand_count() - 1) / 2)->shape();
  auto along = static_cast<size_t>(scatter.attrs<ScatterAttrs>().index_vector_dim);
  int64_t of_vector = along < indices.dims().size() ? indices.dim(along) : 1;
  return of_vector == 0 ? 1 : indices.ElementCount() / of_vector;
}

bool IsExact(const Instr& instr) {
  if (instr.op() == Op::kInfeed || instr.op() == Op::kRng ||
      instr.op() == Op::kRngGetAndUpdateState)
    return false;
  // Maxima and minima do not depend on the order.
  if (instr.op() == Op::kReduce && instr.called(0)->root()->operand_count() == 2 &&
      (instr.called(0)->root()->op() == Op::kMaximum ||
       instr.called(0)->root()->op() == Op::kMinimum))
    return !HasReals(instr, IsComplex);
  if (instr.op() == Op::kReduce || instr.op() == Op::kDot || instr.op() == Op::kConvolution ||
      instr.op() == Op::kFft || instr.op() == Op::kCholesky || instr.op() == Op::kTriangularSolve ||
      instr.op() == Op::kBatchNormTraining || instr.op() == Op::kBatchNormGrad)
    return !HasReals(instr, IsReal) && !HasReals(instr, IsComplex);
  // The interpreter rounds products over a window, and sums of complex numbers, once at the end.
  if (instr.op() == Op::kReduceWindow &&
      (instr.called(0)->root()->op() == Op::kMultiply || HasReals(instr, IsComplex)))
    return !HasReals(instr, IsReal) && !HasReals(instr, IsComplex);
  // A reverse cumulative sum starts at the end, and a long window is summed in chunks.
  if (instr.op() == Op::kReduceWindow &&
      (CumulativeWindowOf(instr) || ReadsPerElement(instr) > kShort)) {
    Op op = instr.called(0)->root()->op();
    if (op == Op::kAdd || op == Op::kMultiply)
      return !HasReals(instr, IsReal) && !HasReals(instr, IsComplex);
  }
  if ((instr.op() == Op::kScatter || instr.op() == Op::kSelectAndScatter) &&
      WindowsOf(instr) > kFewWindows) {
    Op op = instr.called().back()->root()->op();
    if (op == Op::kAdd || op == Op::kMultiply)
      return !HasReals(instr, IsReal) && !HasReals(instr, IsComplex);
  }
  // These ops expose the sign of a NaN, which is unspecified.
  if (instr.op() == Op::kBitcastConvert || instr.op() == Op::kBitcast || instr.op() == Op::kTopK)
    return !HasReals(instr, IsReal) && !HasReals(instr, IsComplex);
  // Plain comparisons do not order NaN.
  if (instr.op() == Op::kSort) {
    const Instr* root = instr.called(0)->root();
    return root->op() == Op::kCompare &&
           (!HasReals(*root, IsReal) ||
            root->attrs<CompareAttrs>().type == CompareType::kTotalOrder);
  }
  if (instr.op() == Op::kCompare && instr.attrs<CompareAttrs>().type == CompareType::kTotalOrder)
    return !HasReals(instr, IsReal);
  if (!instr.info().Is(kElementwise)) return true;
  if (HasReals(instr, IsComplex)) return IsExactOnComplex(instr.op());
  return !HasReals(instr, IsReal) || IsExactOnReals(instr.op());
}

// "h200": a machine with all SMs of an H200, simulated. Otherwise the name of a backend.
Result<Target> TargetOf(const std::string& name) {
  if (name != "h200") return TargetOfBackend(name);
  TOK_TRY(Target target, TargetNamed(name));
  target.libraries = LibraryUse::kNone;
  TOK_TRY(target.device, DeviceOf("sim-cuda"));
  return target;
}

class OnBackend : public Transformation {
 public:
  // "cpu", or "cpu/rules": the fusion planner (CompileOptions::fusion); "h200/bulk": schedules with
  // bulk copies for the contractions that have some.
  explicit OnBackend(std::string backend) : backend_(std::move(backend)) {
    size_t slash = backend_.find('/');
    if (slash == std::string::npos) return;
    fusion_ = backend_.substr(slash + 1);
    backend_.resize(slash);
  }
  std::string name() const override {
    return "on:" + backend_ + (fusion_.empty() ? "" : "/" + fusion_);
  }
  std::string Summary() const override {
    return fmt::format("{} programs with a contraction of bulk copies", bulk_programs_.load());
  }
  bool Keeps(const Module& module) const override {
    for (const auto& computation : module.computations())
      for (const Instr* instr : computation->Instrs())
        if (!PromisesBits(*instr)) return false;
    return true;
  }
  bool RunsAlways() const override { return true; }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    return CloneModule(module);
  }
  Result<RunOutcome> Run(const Module& module, std::span<const Value> inputs,
                         const RunOptions& how) const override {
    // Compiled programs get no host services here.
    for (const auto& computation : module.computations())
      for (const Instr* instr : computation->Instrs())
        if (instr->op() == Op::kInfeed) return Interpret(module, inputs, how);
    CompileOptions options;
    options.backend = backend_;
    options.strict = true;
    bool is_bulk = fusion_ == "bulk";
    if (!fusion_.empty() && !is_bulk) {
      TOK_TRY(options.fusion, ParseFusionMode(fusion_));
    }
    options.hoist = true;
    TOK_TRY(Target target, TargetOf(backend_));
    TOK_TRY(CompiledRun program, CompiledRun::Make(module, target, options));
    if (is_bulk) options.schedules.forced = BulkSchedules(program.executable().compilation());
    if (!options.schedules.forced.empty()) {
      Result<CompiledRun> forced = CompiledRun::Make(module, target, options);
      // The schedules fit the kernels that they were drawn for. With them, the planner may choose
      // others.
      bool is_other = !forced.ok() && forced.error().message.starts_with("schedule: ");
      if (!forced.ok() && !is_other) return forced.error();
      if (forced.ok()) program = std::move(forced.value());
    }
    if (HasBulkSchedule(program.executable().compilation())) ++bulk_programs_;
    for (const Decision& decision : program.executable().compilation().log.all())
      if (decision.because.starts_with(kGeneratorBug))
        return MakeError(ErrorCode::kKernelStructure, ToString(decision));
    return program.Run(inputs);
  }

 private:
  std::string backend_, fusion_;
  mutable std::atomic<int64_t> bulk_programs_{0};  // runs of them, two per program
};

}  // namespace

bool PromisesBits(const Instr& instr) {
  return IsExact(instr);
}

std::unique_ptr<Transformation> BackendNamed(std::string_view name) {
  return std::make_unique<OnBackend>(std::string(name.substr(3)));
}

}  // namespace tokamak::fuzz
