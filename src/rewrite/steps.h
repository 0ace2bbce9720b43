#pragma once

// Equal steps of a computation, checked: what each takes from itself, from those before it and from
// outside, and what of it others use. What re-rolling needs to know before it changes anything.

#include <optional>
#include <vector>

#include "analysis/repeats.h"

namespace tokamak {

// `count` steps of `period` instructions of a line, from `begin` on.
struct StepRange {
  const StepLine* line = nullptr;
  size_t begin = 0, period = 0, count = 0;

  Instr* At(size_t step, size_t offset) const {
    return line->instrs()[begin + step * period + offset];
  }
  // The same instruction of all steps.
  std::vector<Instr*> All(size_t offset) const;
  struct Place {
    size_t step, offset;
  };
  std::optional<Place> PlaceOf(const Instr* instr) const;
};

// Where an operand of a step comes from.
struct StepOperand {
  bool is_outside = true;  // anything but a step
  size_t offset = 0;       // else: this instruction of the step `distance` before; 0: of the same
  size_t distance = 0;
};

// n values of the steps, in order, are operands of a concatenate from `first` on: themselves, or
// each with a dimension of one more, which is the one that is concatenated.
struct Collected {
  Instr* concatenate = nullptr;
  size_t first = 0, offset = 0;
  bool is_new_dimension = false;
};

struct Steps {
  StepRange range;
  std::vector<std::vector<StepOperand>> operands;  // [offset][slot]
  // [offset][d - 1]: what stands for the value of the step d before the first.
  std::vector<std::vector<Instr*>> history;
  std::vector<Collected> collected;
  // Steps of which something else outside uses the value: [offset], ascending.
  std::vector<std::vector<size_t>> used;
  // [offset]: a view of what is outside. Others may go on using those of the steps.
  std::vector<char> is_view;

  bool IsCollected(size_t offset) const;
};

// How far back a step may look.
inline constexpr size_t kMostHistory = 4;

// Nothing when the instructions of the steps are not the same ones, or take their operands
// differently. Linear in the steps and their uses.
std::optional<Steps> CheckSteps(const StepRange& range);

// Where a step is best taken to begin, from 0 to `most` instructions later: with the fewest values
// handed from step to step.
size_t BestPhase(const StepRange& range, size_t most);

}  // namespace tokamak
