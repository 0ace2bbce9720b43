#pragma once

// Analysis for re-rolling: checks that steps of a computation are equal, and finds which operands
// each takes from the same step, from earlier steps and from outside, and which of its values are
// used elsewhere. Changes nothing.

#include <optional>
#include <vector>

#include "analysis/repeats.h"

namespace tokamak {

// `count` steps of `period` consecutive instructions of a line, starting at `begin`.
struct StepRange {
  const StepLine* line = nullptr;
  size_t begin = 0, period = 0, count = 0;

  Instr* At(size_t step, size_t offset) const {
    return line->instrs()[begin + step * period + offset];
  }
  // The instruction at this offset in all steps.
  std::vector<Instr*> All(size_t offset) const;
  struct StepPosition {
    size_t step, offset;
  };
  std::optional<StepPosition> PositionOf(const Instr* instr) const;
};

// The source of an operand of a step.
struct StepOperand {
  bool is_outside = true;  // not computed by a step
  size_t offset = 0;       // otherwise: the instruction at this offset, `distance` steps earlier;
                           // 0: the same step
  size_t distance = 0;
};

// n consecutive step values that are operands of a concatenate from index `first` on: either
// themselves, or each reshaped with an additional dimension of size 1 that is concatenated.
struct Collected {
  Instr* concatenate = nullptr;
  size_t first = 0, offset = 0;
  bool is_new_dimension = false;
};

struct Steps {
  StepRange range;
  std::vector<std::vector<StepOperand>> operands;  // [offset][slot]
  // [offset][d - 1]: the value that stands for the step d before the first step.
  std::vector<std::vector<Instr*>> history;
  std::vector<Collected> collected;
  // [offset], ascending: the steps whose value has other users outside.
  std::vector<std::vector<size_t>> used;
  // [offset]: a view of an outside value. Users outside may keep using the views of the steps.
  std::vector<char> is_view;

  bool IsCollected(size_t offset) const;
};

// Maximum dependence distance in steps. Chosen: each additional step of history is one more carried
// value.
inline constexpr size_t kMostHistory = 4;

// Null if the instructions of the steps differ, or take their operands differently. Linear in the
// steps and their uses.
std::optional<Steps> CheckSteps(const StepRange& range);

// The best start of a step, 0 to `most` instructions later: the one with the fewest values passed
// between steps.
size_t BestPhase(const StepRange& range, size_t most);

}  // namespace tokamak
