#include "driver/compile/step_cost.h"

#include <algorithm>
#include <cmath>

#include "cost/panel_rates.h"
#include "cost/rates.h"
#include "driver/compile/device_loops.h"
#include "gen/library/convolution.h"
#include "gen/library/custom_kernel.h"
#include "ir/dot_precision.h"
#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

// Microseconds: per interpreted step, per interpreted element (see interp_executable.cc), and per
// loop with an unknown trip count (chosen: longer than any short program).
constexpr double kHostStep = 5, kHostElement = 0.02, kLoop = 1000;
// Microseconds. A branch cheaper than this does not make the run time data-dependent (chosen).
constexpr double kShortBranch = 50;

double ElementsOf(const Shape& shape) {
  double count = 0;
  for (const Shape& leaf : LeavesOf(shape))
    if (leaf.IsArray()) count += static_cast<double>(leaf.ElementCount());
  return count;
}

double HostStepUs(const Instr& instr) {
  double elements = ElementsOf(instr.shape());
  for (const Instr* operand : instr.operands()) elements += ElementsOf(operand->shape());
  bool any_time =
      instr.op() == Op::kConvolution || instr.op() == Op::kCustomCall || !instr.called().empty();
  return kHostStep + kHostElement * elements + (any_time ? kLoop : 0);
}

// The work of a matrix product on a GPU: tensor cores multiply 16-bit types, and f32 in TF32 at
// half the rate (NVIDIA data sheet). All other types than f32 are counted at the f64 rate.
void AddTiles(const MatrixProduct& product, const Instr& dot, double multiplications, double cores,
              Work& work) {
  // Rows and columns of an output tile (chosen).
  constexpr double kTile = 128;
  work.threads = 256;
  work.tasks = std::ceil(static_cast<double>(product.m) / kTile) *
               std::ceil(static_cast<double>(product.n) / kTile) *
               static_cast<double>(product.BatchCount());
  bool is_narrow = BytesOf(dot.operand(0)->shape().type()) < 4;
  // Libraries split the contracted dimension of few tiles into parts of at least this many elements
  // (chosen; tensor cores need deeper ones).
  double part = kTile;
  if (product.type != MatrixType::kF32) {
    work[Pipe::kMultiply64] = multiplications;
    return;
  }
  if (is_narrow || AllowsTf32(dot.attrs<DotAttrs>())) {
    part *= 4;
    work[Pipe::kTensor] = multiplications * (is_narrow ? 1 : kTf32Products);
  } else {
    work[Pipe::kMultiply] = multiplications;
  }
  double splits = std::max(1.0, static_cast<double>(product.k) / part);
  work.tasks = std::max(work.tasks, std::min(cores, work.tasks * splits));
}

Work WorkOfProduct(const ProductCall& call, const Instr& dot, const Machine& machine) {
  if (call.convolution) return WorkOf(MatchLaidOutConvolution(dot).value(), machine);
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
    AddTiles(product, dot, multiplications, static_cast<double>(machine.cores), work);
  } else {
    work[wide ? Pipe::kMultiply64 : Pipe::kMultiply] = multiplications;
  }
  return work;
}

// A kernel of the user: its traffic, as if it read its operands and wrote its results once.
double CustomKernelUs(const Instr& instr, const Machine& machine) {
  Result<CustomKernelStep> step = CustomKernelStepOf(instr);
  Work work;
  auto bytes = [](const Shape& shape) { return static_cast<double>(shape.ByteSize()); };
  for (const Instr* operand : instr.operands()) work.reads += bytes(operand->shape());
  for (const Shape& result : ResultShapesOf(instr.shape())) work.writes += bytes(result);
  if (!step.ok()) return 0;
  const CustomKernel& kernel = step.value().kernel;
  auto product = [](const LaunchSizes& sizes) {
    return static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) *
           static_cast<double>(sizes[2]);
  };
  work.tasks = machine.is_gpu() ? product(kernel.grid) : static_cast<double>(kernel.blocks);
  if (machine.is_gpu()) work.threads = product(kernel.threads);
  return EstimateCost(work, machine).total();
}

// Loops with known trip counts are `for` statements.
bool HasOpenLoop(const StmtList& block) {
  return std::any_of(block.begin(), block.end(), [](const Stmt& stmt) {
    return stmt.kind == StmtKind::kWhile || HasOpenLoop(stmt.condition_stmts) ||
           HasOpenLoop(stmt.body) || HasOpenLoop(stmt.else_body);
  });
}

void SetMinChunksOf(std::vector<RunStep>& steps, const LoweredProgram& program,
                    const Machine& machine) {
  for (RunStep& step : steps) {
    if (step.kind == StepKind::kLaunch) {
      Work work = WorkOf(step, program, machine);
      step.min_chunk = MinChunkOf(work, machine);
      step.min_chunk_asleep = MinChunkOf(work, machine, kSleepingChunkFactor);
    }
    for (std::vector<RunStep>& block : step.blocks) SetMinChunksOf(block, program, machine);
    if (step.kind == StepKind::kHorizontal) DivideIntoUnits(step);
  }
}

}  // namespace

Work WorkOf(const RunStep& launch, const LoweredProgram& program, const Machine& machine) {
  if (launch.kind == StepKind::kLibrary)
    return WorkOfProduct(program.products[launch.target], *program.product_instrs[launch.target],
                         machine);
  return WorkOf(program.kernels[launch.target], launch.grid, machine);
}

void SetMinChunks(LoweredProgram& program, const Machine& machine) {
  SetMinChunksOf(program.steps, program, machine);
}

double EstimateStep(const RunStep& step, const LoweredProgram& program, const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  switch (step.kind) {
    case StepKind::kLaunch:
      if (step.target < program.hooked_us.size() && program.hooked_us[step.target] >= 0)
        return program.hooked_us[step.target];
      [[fallthrough]];
    case StepKind::kLibrary:
      return EstimateCost(WorkOf(step, program, machine), machine).total();
    case StepKind::kHorizontal: {
      // Replaces the launch costs of the kernels by the cost of one launch.
      double most = 0, sum = 0;
      for (const RunStep& launch : step.blocks[0]) {
        double own = EstimateCost(WorkOf(launch, program, machine), machine).launch;
        most = std::max(most, own);
        sum += own;
      }
      return most - sum;
    }
    case StepKind::kCall:
      if (const Instr* instr = program.call_instrs[step.target]; CustomKernelIn(*instr) != nullptr)
        return CustomKernelUs(*instr, machine);
      return rates.step_us + program.calls[step.target]->Micros();
    case StepKind::kHost:
      if (program.IsOnDevice(step) && CustomKernelIn(*program.host_instrs[step.target]) != nullptr)
        return CustomKernelUs(*program.host_instrs[step.target], machine);
      return HostStepUs(*program.host_instrs[step.target]);
    case StepKind::kWhile:
      return kLoop;
    case StepKind::kConditional:
      return rates.step_us;
    case StepKind::kCopy:
    case StepKind::kPoison: {
      Work work;
      work.reads = work.writes = static_cast<double>(step.bytes);
      work.tasks = std::max(1.0, work.reads / (1 << 18));
      if (machine.is_gpu()) {  // as a copy kernel would, 64 bytes per thread
        work.threads = 256;
        work.tasks = std::max(1.0, std::ceil(work.reads / (64 * work.threads)));
      }
      return EstimateCost(work, machine).total();
    }
  }
  return 0;
}

double EstimateCost(const std::vector<RunStep>& steps, const LoweredProgram& program,
                    const Machine& machine) {
  double micros = 0;
  for (const RunStep& step : steps) {
    double inside = 0;
    for (const std::vector<RunStep>& block : step.blocks)
      inside = std::max(inside, EstimateCost(block, program, machine));
    micros += EstimateStep(step, program, machine) + inside;
  }
  return micros;
}

bool TimeDependsOnData(const std::vector<RunStep>& steps, const LoweredProgram& program,
                       const Machine& machine) {
  return std::any_of(steps.begin(), steps.end(), [&](const RunStep& step) {
    if (step.kind == StepKind::kLaunch && HasOpenLoop(program.kernels[step.target].body))
      return true;
    // An interpreted step may contain a loop.
    if (step.kind == StepKind::kHost && !program.host_instrs[step.target]->called().empty() &&
        CustomKernelIn(*program.host_instrs[step.target]) == nullptr)
      return true;
    if (step.kind == StepKind::kWhile && !TripCountOf(step, program)) return true;
    return std::any_of(step.blocks.begin(), step.blocks.end(), [&](const auto& block) {
      return (step.kind == StepKind::kConditional &&
              EstimateCost(block, program, machine) > kShortBranch) ||
             TimeDependsOnData(block, program, machine);
    });
  });
}

}  // namespace tokamak
