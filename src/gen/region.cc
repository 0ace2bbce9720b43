#include "gen/region.h"

#include <unordered_set>

namespace tokamak {

bool IsPlainArray(const Shape& shape) {
  return shape.IsStaticArray() && shape.quant() == nullptr;
}

bool HasControlDependencies(const Instr& instr) {
  return instr.is_control_predecessor() ||
         (instr.has_extras() && !instr.extras().control_predecessors.empty());
}

bool IsImmediate(const Instr& instr) {
  if (instr.op() != Op::kConstant || !instr.shape().IsArray()) return false;
  const Literal& literal = instr.attrs<ConstantAttrs>().literal;
  return instr.shape().ElementCount() == 1 || literal.is_splat();
}

std::vector<const Instr*> InputsOf(const std::vector<const Instr*>& instrs) {
  std::unordered_set<const Instr*> seen(instrs.begin(), instrs.end());
  std::vector<const Instr*> inputs;
  for (const Instr* instr : instrs)
    for (const Instr* operand : instr->operands())
      if (!IsImmediate(*operand) && seen.insert(operand).second) inputs.push_back(operand);
  return inputs;
}

}  // namespace tokamak
