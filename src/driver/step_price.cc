#include "driver/step_price.h"

#include <algorithm>
#include <cmath>

#include "cost/rates.h"
#include "driver/device_loops.h"
#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

// The interpreter's step and element; a loop.
constexpr double kHostStep = 5, kHostElement = 0.02, kLoop = 1000;
// A branch of less may be taken or not: the run is short in either case.
constexpr double kShortBranch = 50;

double PricedElements(const Shape& shape) {
  double count = 0;
  for (const Shape& leaf : LeavesOf(shape))
    if (leaf.IsArray()) count += static_cast<double>(leaf.ElementCount());
  return count;
}

double HostPrice(const Instr& instr) {
  double elements = PricedElements(instr.shape());
  for (const Instr* operand : instr.operands()) elements += PricedElements(operand->shape());
  bool any_time =
      instr.op() == Op::kConvolution || instr.op() == Op::kCustomCall || !instr.called().empty();
  return kHostStep + kHostElement * elements + (any_time ? kLoop : 0);
}

// On a GPU as tensor cores take it: f32 is looked at with fewer bits there, narrow types count as
// they are kept here.
void AddTiles(const MatrixProduct& product, double multiplications, Work& work) {
  constexpr double kTile = 128;
  work.threads = 256;
  work.tasks = std::ceil(static_cast<double>(product.m) / kTile) *
               std::ceil(static_cast<double>(product.n) / kTile) *
               static_cast<double>(product.BatchCount());
  work[product.type == MatrixType::kF32 ? Pipe::kMultiply16 : Pipe::kMultiply64] = multiplications;
}

// Of tensor cores likewise; what windows see again is near. They reach half of a product's rate,
// f32 a half of that, and its filters' gradients a quarter: 4.8 G multiplications took 18 us in
// bf16 (asking alone takes that long), 30 and 73 in f32, and 30, 31 and 63 of 3.7 G (H200).
Work WorkOfConvolution(const Convolution& c) {
  constexpr double kTile = 128;
  using Form = Convolution::Form;
  auto x = static_cast<double>(c.XCount()), w = static_cast<double>(c.WCount()),
       y = static_cast<double>(c.YCount()), groups = static_cast<double>(c.groups);
  double bytes = c.type == Convolution::Type::kF32 ? 4 : 2;
  double result = c.form == Form::kForward ? y : c.form == Form::kBackwardData ? x : w;
  double columns = static_cast<double>(c.form == Form::kBackwardData ? c.inputs : c.outputs);
  Work work;
  work.threads = 256;
  work.reads = (x + w + y - result) * bytes;
  work.writes = result * bytes;
  work.tasks = groups * std::ceil(columns / groups / kTile) * std::ceil(result / columns / kTile);
  // A filter's few results are shared out by depth.
  if (c.form == Form::kBackwardFilter) work.tasks = std::max(work.tasks, 132.0);
  double times = c.type != Convolution::Type::kF32 ? 2
                 : !c.tf32                         ? 1
                 : c.form == Form::kBackwardFilter ? 8
                                                   : 4;
  work[times == 1 ? Pipe::kMultiply : Pipe::kMultiply16] = times * c.Multiplications();
  return work;
}

Work WorkOfProduct(const ProductCall& call, const Machine& machine) {
  if (call.convolution) return WorkOfConvolution(*call.convolution);
  const MatrixProduct& product = call.product;
  Work work;
  auto m = static_cast<double>(product.m), n = static_cast<double>(product.n),
       k = static_cast<double>(product.k), batch = static_cast<double>(product.BatchCount());
  auto bytes = static_cast<double>(BytesOf(product.type));
  bool wide = product.type == MatrixType::kF64 || product.type == MatrixType::kC128;
  double parts = product.type == MatrixType::kF32 || product.type == MatrixType::kF64 ? 1 : 4;
  work.tasks = static_cast<double>(call.blocks.count);
  work.reads = batch * (m * k + k * n) * bytes;
  work.writes = batch * m * n * bytes;
  double multiplications = batch * m * n * k * parts;
  if (machine.is_gpu()) {
    AddTiles(product, multiplications, work);
  } else {
    work[wide ? Pipe::kMultiply64 : Pipe::kMultiply] = multiplications;
  }
  return work;
}

// Loops of known ranges are `for`s.
bool HasOpenLoop(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Stmt& stmt) {
    return stmt.kind == StmtKind::kWhile || HasOpenLoop(stmt.head) || HasOpenLoop(stmt.body) ||
           HasOpenLoop(stmt.otherwise);
  });
}

void SetGrainsOf(std::vector<RunStep>& steps, const LoweredProgram& program,
                 const Machine& machine) {
  for (RunStep& step : steps) {
    if (step.kind == StepKind::kLaunch) {
      Work work = WorkOf(step, program, machine);
      step.grain = GrainOf(work, machine);
      step.grain_asleep = GrainOf(work, machine, kPiecesAsleep);
    }
    for (std::vector<RunStep>& block : step.blocks) SetGrainsOf(block, program, machine);
    if (step.kind == StepKind::kPack) ShareOut(step);
  }
}

}  // namespace

Work WorkOf(const RunStep& launch, const LoweredProgram& program, const Machine& machine) {
  if (launch.kind == StepKind::kLibrary)
    return WorkOfProduct(program.products[launch.target], machine);
  return WorkOf(program.kernels[launch.target], launch.grid, machine);
}

void SetGrains(LoweredProgram& program, const Machine& machine) {
  SetGrainsOf(program.steps, program, machine);
}

double PriceOfStep(const RunStep& step, const LoweredProgram& program, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  switch (step.kind) {
    case StepKind::kLaunch:
    case StepKind::kLibrary:
      return PriceOf(WorkOf(step, program, machine), machine).total();
    case StepKind::kPack: {
      // Of the launches inside, one is paid for.
      double most = 0, sum = 0;
      for (const RunStep& launch : step.blocks[0]) {
        double own = PriceOf(WorkOf(launch, program, machine), machine).launch;
        most = std::max(most, own);
        sum += own;
      }
      return most - sum;
    }
    case StepKind::kCall:
      return rates.step_us + program.calls[step.target]->Micros();
    case StepKind::kHost:
      return HostPrice(*program.host_instrs[step.target]);
    case StepKind::kWhile:
      return kLoop;
    case StepKind::kConditional:
      return rates.step_us;
    case StepKind::kCopy:
    case StepKind::kPoison: {
      Work work;
      work.reads = work.writes = static_cast<double>(step.bytes);
      work.tasks = std::max(1.0, work.reads / (1 << 18));
      if (machine.is_gpu()) {  // as its kernels would, 64 bytes a thread
        work.threads = 256;
        work.tasks = std::max(1.0, std::ceil(work.reads / (64 * work.threads)));
      }
      return PriceOf(work, machine).total();
    }
  }
  return 0;
}

double PriceOf(const std::vector<RunStep>& steps, const LoweredProgram& program,
               const Machine& machine) {
  double micros = 0;
  for (const RunStep& step : steps) {
    double inside = 0;
    for (const std::vector<RunStep>& block : step.blocks)
      inside = std::max(inside, PriceOf(block, program, machine));
    micros += PriceOfStep(step, program, machine) + inside;
  }
  return micros;
}

bool TimeDependsOnData(const std::vector<RunStep>& steps, const LoweredProgram& program,
                       const Machine& machine) {
  return std::any_of(steps.begin(), steps.end(), [&](const RunStep& step) {
    if (step.kind == StepKind::kLaunch && HasOpenLoop(program.kernels[step.target].body))
      return true;
    // What the interpreter does in one step may be a loop.
    if (step.kind == StepKind::kHost && !program.host_instrs[step.target]->called().empty())
      return true;
    if (step.kind == StepKind::kWhile && !RoundsOf(step, program)) return true;
    return std::any_of(step.blocks.begin(), step.blocks.end(), [&](const auto& block) {
      return (step.kind == StepKind::kConditional &&
              PriceOf(block, program, machine) > kShortBranch) ||
             TimeDependsOnData(block, program, machine);
    });
  });
}

}  // namespace tokamak
