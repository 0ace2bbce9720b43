#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// The simulator's bytecode: a flat list of operations over slots (virtual registers). A
// lane-divergent value has one slot per lane, all others have one slot.

struct SimOp;
using SimCompute = void (*)(const SimOp& op, Bits* slots);

enum class SimKind : uint8_t {
  kCompute,  // calls `compute`
  kChecked,  // an integer division or a 32-bit index: may fail
  kLoad,     // to: result, a: index
  kRead,     // as kLoad, but ordered
  kStore,    // a: index, b: value
  kShuffle,  // to: result, a: value, b: xor mask; for a match: number of bits
  kBarrier,
  kMultiply,       // a: to, b: lhs, c: rhs, to: the slot of the depth; product
  kAsyncMultiply,  // as kMultiply
  // async; a: index of the mbarrier, b: parity, or index of the destination of a copy, c.at: the
  // first of its coordinates
  kAsync,
  kLoop,    // to: variable, a: extent; target: after the loop
  kNext,    // as kLoop; target: the first operation of the body
  kVector,  // starts an execution of a vector loop
  kVectorEnd,
  kJump,
  kUnless,    // a: condition; jumps if it is false
  kMaskIf,    // a: per-lane condition; jumps if no lane is active
  kMaskElse,  // activates the lanes that kMaskIf deactivated
  kMaskEnd,
  kMaskBegin,  // start of a divergent while: saves the mask
  kMaskWhile,  // a: condition; jumps if no lane is active
  kEnd,
};

struct SimOperand {
  uint32_t at = 0, step = 0;  // step 1: one slot per lane
};

struct SimOp {
  SimKind kind{};
  Prim prim{};
  ScalarType type{}, from{};
  bool uniform = false;  // a branch that must be uniform in the thread block
  uint16_t lanes = 1;    // number of results
  bool under_vector = false;
  BarrierScope scope{};
  uint32_t to = 0;
  SimOperand a, b, c;
  uint32_t array = 0, target = 0;
  uint32_t decision = 0;  // index of the uniform branch
  SimCompute compute = nullptr;
  ValueId value = kNoValue;  // for error messages: the value, or the statement
  int stmt = -1;
  const MatrixMultiply* product = nullptr;
  const AsyncOp* async = nullptr;
};

struct SimProgram {
  struct Parallel {
    uint32_t slot = 0;
    ValueId extent{};
  };
  std::vector<SimOp> ops;
  std::vector<Bits> slots;             // initial contents: constants, lane numbers
  std::vector<uint32_t> extents;       // slots of the launch extents; UINT32_MAX if unused
  std::vector<Parallel> grid, thread;  // outermost first
  std::vector<uint32_t> copies;        // per array: the number of private lane copies, or 1
  uint32_t decisions = 0;
  std::vector<uint32_t> coordinates;  // slots of the coordinates of copies
};

// Requires a verified kernel.
SimProgram DecodeKernel(const Kernel& kernel);

// The function that computes a primitive whose operands have type `from`, for all lanes.
SimCompute ComputeOf(Prim prim, ScalarType type, ScalarType from);

}  // namespace tokamak
