#include "driver/report/stored_values.h"

namespace tokamak {
namespace {

bool IsName(const Instr& instr) {
  return instr.op() == Op::kBitcast || instr.op() == Op::kReshape ||
         instr.op() == Op::kGetTupleElement || instr.op() == Op::kCopy;
}

}  // namespace

StoredValues::StoredValues(const CompileReport& report) {
  for (size_t i = 0; i < report.steps.size(); ++i)
    for (const Instr* value : report.steps[i].made) producers_[value] = i;
}

const Instr* StoredValues::StoredAs(const Instr* value) const {
  while (!producers_.contains(value) && value->operand_count() == 1 && IsName(*value))
    value = value->operand(0);
  return value;
}

std::optional<size_t> StoredValues::StepOf(const Instr* stored) const {
  auto found = producers_.find(stored);
  return found == producers_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tokamak
