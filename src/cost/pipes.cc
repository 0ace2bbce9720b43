#include "cost/pipes.h"

#include <algorithm>
#include <cmath>

#include "kernel/narrow_arithmetic.h"

namespace tokamak {
namespace {

// Cost, as a fraction, of a scalar division or square root relative to a vector one. Chosen: the
// unit takes a vector of 4 to 8 lanes in steps of two or four.
constexpr double kOneOfVector = 0.25;

int WidthOf(ScalarType type) {
  // A mask covers as many lanes as the compared values.
  return type == ScalarType::kPred ? 32 : InfoOf(type).bits;
}

Pipe PipeOfReal(Prim prim, int bits) {
  switch (prim) {
    case Prim::kDiv:
      return bits > 32 ? Pipe::kDivide64 : Pipe::kDivide;
    case Prim::kSqrt:
      return bits > 32 ? Pipe::kRoot64 : Pipe::kRoot;
    default:
      return Pipe::kSimple;
  }
}

// Whether it is a division by a constant, which becomes a multiplication and shifts. Sets `power`
// for a power of two: a shift only.
bool IsByConstant(const Kernel& kernel, const ScalarNode& node, bool& power) {
  if (node.prim != Prim::kDiv && node.prim != Prim::kRem) return false;
  if (!kernel.IsConstant(node.operands[1])) return false;
  const ScalarNode& by = kernel.node(node.operands[1]);
  int64_t value = IntOfBits(by.type, by.bits);
  power = value > 0 && (value & (value - 1)) == 0;
  return true;
}
// Simple operations of a division by a constant that is not a power of two: a high product, two
// shifts and an addition (counted).
constexpr double kOpsOfQuotient = 4;

Pipe PipeOfInteger(Prim prim) {
  switch (prim) {
    case Prim::kDiv:
    case Prim::kRem:
      return Pipe::kScalar;
    case Prim::kMul:
    case Prim::kMulHigh:
    case Prim::kPopCount:
    case Prim::kLeadingZeros:
      return Pipe::kInteger;
    default:
      return Pipe::kSimple;
  }
}

}  // namespace

double VectorsOf(double lanes, int bits, const Machine& machine) {
  if (machine.is_gpu()) return lanes;
  return lanes * std::max(bits, 8) / static_cast<double>(machine.vector_bits);
}

void AddPrim(Work& work, const Kernel& kernel, ValueId id, double times, double lanes,
             const Machine& machine) {
  const ScalarNode& node = kernel.node(id);
  if (node.arity() == 0 || node.prim == Prim::kBitcast) return;
  // One operation of 16 bits: its f32 operation counts.
  if (machine.is_gpu() && NarrowOperation(kernel, id)) return;
  ScalarType from = kernel.node(node.operands[0]).type;
  int bits = std::max(WidthOf(node.type), WidthOf(from));
  bool real = IsFloat(node.type) || IsFloat(from);
  Pipe pipe = Pipe::kSimple;
  // On a GPU, widening a float of 16 bits is a shift or less.
  bool widens = node.type == ScalarType::kF32 && IsFloat(from) && InfoOf(from).bits == 16;
  if (node.prim == Prim::kConvert && !(widens && machine.is_gpu())) {
    pipe = Pipe::kConvert;
  } else if (real) {
    pipe = PipeOfReal(node.prim, bits);
  } else {
    pipe = PipeOfInteger(node.prim);
  }
  if (bool power = false; pipe == Pipe::kScalar && IsByConstant(kernel, node, power)) {
    pipe = Pipe::kSimple;
    if (!power) times *= kOpsOfQuotient;
  }
  if (pipe == Pipe::kScalar) {
    work[pipe] += times * lanes;
    return;
  }
  if (lanes == 1 && !machine.is_gpu()) {
    // A scalar operation costs as much as a vector operation, except in units that process a vector
    // in several passes.
    bool by_parts = pipe == Pipe::kDivide || pipe == Pipe::kDivide64 || pipe == Pipe::kRoot ||
                    pipe == Pipe::kRoot64;
    Pipe own = real || pipe == Pipe::kInteger ? pipe : Pipe::kIndex;
    work[own] += times * (by_parts ? kOneOfVector : 1);
    return;
  }
  work[pipe] += times * VectorsOf(lanes, bits, machine);
}

}  // namespace tokamak
