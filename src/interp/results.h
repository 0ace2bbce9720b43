#pragma once

// What evaluators say about their results: shapes, limits, faults.

#include <string>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// The shape of the instruction (or of one element of its tuple) with the
// dimensions that the value really has: type and quantization stay, layout goes.
inline Shape ResultShape(const Shape& written, Dims dims) {
  return written.WithDims(std::move(dims));
}
inline Shape ResultShape(const Instr& instr, Dims dims) {
  return ResultShape(instr.shape(), std::move(dims));
}

// A fault at run time, at the place of the instruction: "gather: ...".
Error RunError(ErrorCode code, const Instr& instr, const std::string& what);
// Refuses (TK5002) an array over kMaxTensorBytes, before it is allocated.
Status CheckFits(const Instr& instr, ElementType type, const Dims& dims);

// The elements of a value as another storage type: numbers are converted, not
// rounded. A complex value becomes real by its real part.
template <typename T>
std::vector<T> ElementsAs(const Value& value);

// The elements of a 1-D integer operand.
Dims IntsOf(const Value& value);

}  // namespace tokamak
