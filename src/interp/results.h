#pragma once

// Helpers for the results of evaluators: shapes, size limits, errors.

#include <string>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// The shape of the instruction (or of one element of its tuple) with the actual dimensions of the
// value: keeps type and quantization, drops the layout.
inline Shape ResultShape(const Shape& written, Dims dims) {
  return written.WithDims(std::move(dims));
}
inline Shape ResultShape(const Instr& instr, Dims dims) {
  return ResultShape(instr.shape(), std::move(dims));
}

// A run-time error located at the instruction: "gather: ...".
Error RunError(ErrorCode code, const Instr& instr, const std::string& what);
// Rejects (TK5002) an array over kMaxTensorBytes before it is allocated.
Status CheckFits(const Instr& instr, ElementType type, const Dims& dims);

// The elements of a value as another storage type: numbers are converted, not
// rounded. A complex value becomes real by its real part.
template <typename T>
std::vector<T> ElementsAs(const Value& value);

// The elements of a 1-D integer operand.
Dims IntsOf(const Value& value);

}  // namespace tokamak
