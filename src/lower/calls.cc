// Steps that call functions: of the BLAS library, the runtime, the interpreter on the host.

#include <tuple>

#include "gen/library/convolution.h"
#include "gen/library/custom_kernel.h"
#include "gen/library/dot.h"
#include "lower/library_calls.h"
#include "lower/lowerer.h"

namespace tokamak {
namespace {

MatrixProduct ProductOf(const LibraryDot& from) {
  MatrixProduct product;
  std::tie(product.m, product.n, product.k) = std::tie(from.m, from.n, from.k);
  product.type = from.type == ElementType::kF32   ? MatrixType::kF32
                 : from.type == ElementType::kF64 ? MatrixType::kF64
                 : from.type == ElementType::kC64 ? MatrixType::kC64
                                                  : MatrixType::kC128;
  product.lhs = {from.lhs.row, from.lhs.column};
  product.rhs = {from.rhs.row, from.rhs.column};
  for (const LibraryDot::BatchDim& batch : from.batch)
    product.batch.push_back({batch.count, batch.lhs, batch.rhs});
  return product;
}

ProductCall ProductCallOf(const Instr& instr, const Machine& machine) {
  ProductCall call;
  if (std::optional<LibraryConvolution> convolution = MatchLaidOutConvolution(instr)) {
    call.convolution = ConvolutionFrom(*convolution);
    return call;
  }
  call.product = ProductOf(*LibraryDotOf(instr, machine));
  call.blocks = BlocksOf(call.product);
  return call;
}

}  // namespace

Convolution ConvolutionFrom(const LibraryConvolution& from) {
  using Form = LibraryConvolution::Form;
  Convolution made;
  made.form = from.form == Form::kForward        ? Convolution::Form::kForward
              : from.form == Form::kBackwardData ? Convolution::Form::kBackwardData
                                                 : Convolution::Form::kBackwardFilter;
  made.type = from.type == ElementType::kF32    ? Convolution::Type::kF32
              : from.type == ElementType::kBF16 ? Convolution::Type::kBF16
                                                : Convolution::Type::kF16;
  made.tf32 = from.tf32;
  std::tie(made.batch, made.inputs, made.outputs, made.groups) =
      std::tie(from.batch, from.inputs, from.outputs, from.groups);
  for (const LibraryConvolution::SpatialDim& dim : from.space)
    made.space.push_back(
        {dim.x, dim.w, dim.y, dim.pad_low, dim.pad_high, dim.stride, dim.dilation});
  return made;
}

void Lowerer::CallLibrary(Frame& frame, const Instr& dot) {
  memory_.Tick();
  RunStep step{.kind = StepKind::kLibrary, .target = program_.products.size(), .at = memory_.now()};
  for (const Instr* operand : dot.operands()) {
    MemoryValue value = frame.leaves[operand][0];
    memory_.Use(value);
    step.slices.push_back(Unassigned(value));
  }
  frame.leaves[&dot] = NewLeaves(dot.shape());
  memory_.Define(frame.leaves[&dot][0]);
  step.slices.push_back(Unassigned(frame.leaves[&dot][0]));
  ProductCall call = ProductCallOf(dot, options_.machine);
  log_.Add({.pass = "lower",
            .rule = call.convolution ? "library.convolution" : "library.product",
            .subject = LabelOf(dot),
            .origins = dot.origins(),
            .because = ToString(call)});
  program_.products.push_back(std::move(call));
  program_.product_instrs.push_back(&dot);
  frame.steps->push_back(std::move(step));
}

std::vector<Leaves> Lowerer::OperandsOf(Frame& frame, const Instr& instr) {
  std::vector<Leaves> operands;
  for (const Instr* operand : instr.operands()) operands.push_back(frame.leaves[operand]);
  if (CustomKernelIn(instr) == nullptr) return operands;
  Result<CustomKernelStep> custom = CustomKernelStepOf(instr);
  if (!custom.ok()) return operands;  // running it reports the error
  const CustomKernelStep& step = custom.value();
  for (auto [input, output] : step.kernel.aliases) {
    MemoryValue& operand = operands[*step.operands[input]][0];
    MemoryValue result = frame.leaves[&instr][*step.results[output]];
    Copy(*frame.steps, result, operand);
    operand = result;
  }
  return operands;
}

void Lowerer::CallRuntime(Frame& frame, const Instr& instr) {
  std::shared_ptr<const LibraryCall> call = LibraryCallOf(instr);
  frame.leaves[&instr] = NewLeaves(instr.shape());
  std::vector<Leaves> operands = OperandsOf(frame, instr);
  memory_.Tick();
  RunStep step{.kind = StepKind::kCall, .target = program_.calls.size(), .at = memory_.now()};
  for (const Leaves& operand : operands) {
    memory_.Use(operand[0]);
    step.slices.push_back(Unassigned(operand[0]));
  }
  step.inputs = step.slices.size();
  Leaves made = frame.leaves[&instr];
  if (call->ScratchBytes() > 0) made.push_back(memory_.New(call->ScratchBytes()));
  for (MemoryValue value : made) {
    memory_.Define(value);
    memory_.Use(value);
    step.slices.push_back(Unassigned(value));
  }
  // A scatter may update its operand in place.
  if (instr.op() == Op::kScatter && instr.operand(0) != instr.operand(1) &&
      instr.operand(0) != instr.operand(2))
    memory_.MayAlias(made[0], frame.leaves[instr.operand(0)][0]);
  log_.Add({.pass = "lower",
            .rule = "library.call",
            .subject = LabelOf(instr),
            .origins = instr.origins(),
            .because = call->Text()});
  program_.calls.push_back(std::move(call));
  program_.call_instrs.push_back(&instr);
  frame.steps->push_back(std::move(step));
}

void Lowerer::CallHost(Frame& frame, const Instr& instr) {
  frame.leaves[&instr] = NewLeaves(instr.shape());
  std::vector<Leaves> operands = OperandsOf(frame, instr);
  memory_.Tick();
  RunStep step{.kind = StepKind::kHost, .at = memory_.now()};
  for (const Leaves& operand : operands) {
    for (MemoryValue value : operand) {
      if (value == kNoMemory) continue;
      memory_.Use(value);
      step.slices.push_back(Unassigned(value));
    }
  }
  step.inputs = step.slices.size();
  for (MemoryValue value : frame.leaves[&instr]) {
    if (value == kNoMemory) continue;
    memory_.Define(value);
    step.slices.push_back(Unassigned(value));
  }
  step.target = program_.host_instrs.size();
  program_.host_instrs.push_back(&instr);
  std::string why = frame.plan->host_step_reason[&instr];
  if (why.empty()) why = std::string(instr.info().name) + ": has no kernel";
  program_.host_reasons.push_back(why);
  log_.Add({.pass = "lower",
            .rule = "host.step",
            .subject = LabelOf(instr),
            .origins = instr.origins(),
            .because = why});
  frame.steps->push_back(std::move(step));
}

}  // namespace tokamak
