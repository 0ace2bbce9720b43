#pragma once

// Evaluates index maps (analysis/index_map.h) on numbers, element by element.

#include <optional>
#include <vector>

#include "analysis/index_map.h"
#include "interp/value.h"

namespace tokamak {

// An instruction with values of its operands.
struct EvaluatedInstr {
  const Instr* instr;
  std::vector<Value> operands;
};

// Row-major: the next index of an array; false after the last.
bool NextOf(Dims& index, const Dims& dims);
int64_t LinearOf(const Dims& index, const Dims& dims);

// All assignments of the variables of a map at one element of the result.
std::vector<Dims> AssignmentsAt(const IndexMap& map, const Dims& at);
// The row-major index of the operand's element that one assignment reads; nullopt if it reads none.
std::optional<int64_t> ReadAt(const EvaluatedInstr& of, size_t operand, const IndexMap& map,
                              const Dims& variables);

}  // namespace tokamak
