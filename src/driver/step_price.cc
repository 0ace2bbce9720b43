#include "driver/step_price.h"

#include <algorithm>

namespace tokamak {
namespace {

// A step; a piece of work that is worth a thread's while; bytes that are copied in a microsecond;
// the interpreter's step and element; a loop.
constexpr double kStep = 0.2, kPiece = 20, kCopied = 8000, kHostStep = 5, kHostElement = 0.02,
                 kLoop = 1000;

double Pieces(int64_t count, int64_t grain) {
  return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(grain, 1));
}

double ElementsOf(const Shape& shape) {
  double count = 0;
  for (const Shape& leaf : LeavesOf(shape))
    if (leaf.IsArray()) count += static_cast<double>(leaf.ElementCount());
  return count;
}

double HostPrice(const Instr& instr) {
  double elements = ElementsOf(instr.shape());
  for (const Instr* operand : instr.operands()) elements += ElementsOf(operand->shape());
  bool any_time =
      instr.op() == Op::kConvolution || instr.op() == Op::kCustomCall || !instr.called().empty();
  return kHostStep + kHostElement * elements + (any_time ? kLoop : 0);
}

double PriceOfStep(const RunStep& step, const LoweredProgram& program) {
  double inside = 0;
  for (const std::vector<RunStep>& block : step.blocks)
    inside = std::max(inside, PriceOf(block, program));
  switch (step.kind) {
    case StepKind::kLaunch:
      return kStep + kPiece * Pieces(step.grid, step.grain);
    case StepKind::kLibrary: {
      const ProductBlocks& blocks = program.products[step.target].blocks;
      return kStep + kPiece * Pieces(blocks.count, blocks.grain);
    }
    case StepKind::kCall:
      return kStep + program.calls[step.target]->Micros();
    case StepKind::kHost:
      return HostPrice(*program.host_instrs[step.target]);
    case StepKind::kWhile:
      return kLoop + inside;
    case StepKind::kConditional:
      return kStep + inside;
    case StepKind::kCopy:
    case StepKind::kPoison:
      return static_cast<double>(step.bytes) / kCopied;
  }
  return 0;
}

}  // namespace

double PriceOf(const std::vector<RunStep>& steps, const LoweredProgram& program) {
  double micros = 0;
  for (const RunStep& step : steps) micros += PriceOfStep(step, program);
  return micros;
}

}  // namespace tokamak
