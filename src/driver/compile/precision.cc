#include "driver/compile/precision.h"

#include "ir/dot_precision.h"

namespace tokamak {
namespace {

template <typename AttrsOfOp>
void Ask(Instr& instr) {
  AttrsOfOp attrs = instr.attrs<AttrsOfOp>();
  if (!AreAllDefault(attrs.precision)) return;
  attrs.precision = {Precision::kHighest, Precision::kHighest};
  instr.set_attrs(std::move(attrs));
}

}  // namespace

void AskForPrecision(Module& module) {
  for (const auto& computation : module.computations())
    for (Instr* instr : computation->Instrs()) {
      if (instr->op() == Op::kDot && !instr->attrs<DotAttrs>().algorithm) Ask<DotAttrs>(*instr);
      if (instr->op() == Op::kConvolution) Ask<ConvolutionAttrs>(*instr);
    }
}

}  // namespace tokamak
