// A program that consists of constants, as tests often do, would be evaluated by fold-constants at
// compile time, and nothing would remain to run. This pass turns its data into arguments.
//
//   before                                    after
//   c = f32[3] constant({1, 2, 3})            c = f32[3] parameter(1), with value {1, 2, 3}
//   i = (f32[2], s32[2]) call(), to_apply=inputs
//                                             i = (f32[2], s32[2]) parameter(2)
//
// Linear in the program, and in the run time of @inputs.

#include <algorithm>

#include "analysis/effects.h"
#include "interp/interp.h"
#include "passes/passes.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// A scalar is considered part of the program rather than data.
bool IsArrayConstant(const Instr& instr) {
  return instr.op() == Op::kConstant && instr.shape().IsArray() && instr.shape().rank() > 0 &&
         instr.shape().quant() == nullptr;
}

bool IsCallOfInputs(const Instr& instr) {
  return instr.op() == Op::kCall && instr.operand_count() == 0 &&
         instr.called(0)->name() == "inputs";
}

// Sizes that are constants must stay constants.
bool HasDynamicOps(const Computation& entry) {
  return std::ranges::any_of(entry.Instrs(), [](const Instr* instr) {
    return instr->info().Is(kDynamicShape) || instr->shape().HasDynamicDims();
  });
}

Instr* MakeArgument(Instr* instr) {
  Computation& entry = *instr->parent();
  Module& module = *entry.module();
  auto number = static_cast<int64_t>(entry.parameters().size());
  Instr* parameter = entry.AppendParameter(number, instr->shape().WithoutLayout(), instr->name());
  MergeOrigins(parameter, *instr);
  parameter->set_pos(instr->pos());
  if (!module.entry_parameter_layouts.empty())
    module.entry_parameter_layouts.push_back(parameter->shape());
  entry.ReplaceUses(instr, parameter);
  return parameter;
}

}  // namespace

// Turns the constant arrays of the entry, and the results of a function @inputs, into arguments.
// Appends their values to PassOptions::added, in the order of the new parameters; tuples are not
// flattened. Leaves an entry with dynamic sizes unchanged, and constants with a sharding or other
// extras.
Result<Changed> HoistConstants(Module& module, PassContext& context) {
  if (module.entry() == nullptr || HasDynamicOps(*module.entry())) return Changed::kNo;
  Computation& entry = *module.entry();
  Effects effects(module);
  Changed changed = Changed::kNo;
  for (Instr* instr : entry.Instrs()) {
    bool is_call = IsCallOfInputs(*instr) && !effects.Of(*instr);
    if ((!is_call && !IsArrayConstant(*instr)) || instr->has_extras()) continue;
    Result<Value> value =
        is_call ? InterpretComputation(*instr->called(0), {}) : EvaluateInstr(*instr, {});
    if (!value.ok()) {
      context.Rejected("entry.no-value", *instr, nullptr, value.error().message);
      continue;
    }
    context.options.added->push_back(std::move(value).value());
    context.Accepted("entry.argument", *instr, MakeArgument(instr));
    entry.Remove(instr);
    changed = Changed::kYes;
  }
  return changed;
}

}  // namespace tokamak
