#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// A kernel as the simulator runs it: a flat list of operations over slots. A value that varies by
// lane has a slot a lane, all others have one.

struct SimOp;
using SimCompute = void (*)(const SimOp& op, Bits* slots);

enum class SimKind : uint8_t {
  kCompute,  // `compute`
  kChecked,  // an integer division, an index of 32 bits: may fault
  kLoad,     // to, a: index
  kRead,     // likewise, in order
  kStore,    // a: index, b: value
  kShuffle,  // to, a: value, b: xor; of a match: how many bits
  kBarrier,
  kMultiply,  // a: to, b: lhs, c: rhs, to: the slot of the depth; product
  kLoop,      // to: variable, a: extent; target: behind the loop
  kNext,      // likewise; target: the first operation of the body
  kVector,    // begins a run of the lanes
  kVectorEnd,
  kJump,
  kUnless,    // a: condition; jumps when it is false
  kMaskIf,    // the same for each lane; jumps when no lane is left
  kMaskElse,  // the lanes that kMaskIf left out
  kMaskEnd,
  kMaskBegin,  // of a while: remembers who is live
  kMaskWhile,  // a: condition; jumps when no lane is live
  kEnd,
};

struct SimOperand {
  uint32_t at = 0, step = 0;  // step 1: a slot a lane
};

struct SimOp {
  SimKind kind{};
  Prim prim{};
  ScalarType type{}, from{};
  bool uniform = false;  // a decision that all threads share
  uint16_t lanes = 1;    // how many results
  bool under_vector = false;
  Scope scope{};
  uint32_t to = 0;
  SimOperand a, b, c;
  uint32_t array = 0, target = 0;
  uint32_t decision = 0;  // which of the uniform decisions
  SimCompute compute = nullptr;
  ValueId value = kNoValue;  // for reports: the value, or the statement
  int stmt = -1;
  const Multiplication* product = nullptr;
};

struct SimProgram {
  struct Parallel {
    uint32_t slot = 0;
    ValueId extent{};
  };
  std::vector<SimOp> ops;
  std::vector<Bits> slots;             // as a thread begins: constants, numbers of lanes
  std::vector<uint32_t> extents;       // slots of the launch's extents; UINT32_MAX: not used
  std::vector<Parallel> grid, thread;  // outermost first
  std::vector<uint32_t> copies;        // per array: lanes that have their own, or 1
  uint32_t decisions = 0;
};

// Of a verified kernel.
SimProgram DecodeKernel(const Kernel& kernel);

// How a primitive of operands of type `from` is computed, lane by lane.
SimCompute ComputeOf(Prim prim, ScalarType type, ScalarType from);

}  // namespace tokamak
