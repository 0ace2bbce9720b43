#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cost/machine.h"
#include "ir/element_type.h"

namespace tokamak {

class Instr;
struct Kernel;

// Machine operations that go at one rate. On a CPU a vector register counts once, on a GPU every
// element of every thread.
enum class Pipe : uint8_t {
  kSimple,   // add, multiply, compare, select, logic, shift, min; bits as another type cost nothing
  kInteger,  // products of integers, counts of bits
  kDivide,   // quotients of 32 bits
  kDivide64,  // of 64
  kRoot,      // square roots
  kRoot64,
  kConvert,  // between widths, between integers and reals
  kScalar,   // what no vector does, one by one: quotients of integers
  kIndex,    // numbers that are one for all lanes
  kLoad,     // of neighbours, or of one for all lanes
  kStore,
  kGather,    // elements that lie anywhere, one by one
  kScatter,   // the same, written
  kTurn,      // rounds of loops, decisions
  kMultiply,  // products and sums of a `multiply`, in multiply-adds: of f32 and of 32-bit integers
  kMultiply64,  // of f64
  kMultiply16,  // of bf16 and of narrow integers, two or more side by side
};
inline constexpr size_t kPipes = 17;

// What a kernel does, counted from its kernel form, or from the instructions of a region before
// there is a kernel. Planners fill in tasks, reads, writes and AddElementOp's counts.
struct Work {
  double tasks = 1;                  // iterations of the grid
  double reads = 0, writes = 0;      // bytes of arrays, each element once
  double rereads = 0;                // bytes that are read again, from the second cache
  double far_rereads = 0;            // the same from the last cache, or memory
  std::array<double, kPipes> ops{};  // of all tasks
  double registers = 0;              // vectors that live at a time, at most
  double grain = 0;                  // tasks that a thread takes at least; 0: as GrainOf says
  double lines = 0;                  // parts of far arrays that are touched one apart from another
  // Operations that wait for one another, of all tasks: sums of reals, and all others.
  double sums = 0, chain = 0;
  // Of GPUs: threads of a team, 32-bit registers of a thread, barriers that a team meets, bytes of
  // its memory.
  double threads = 1, words = 0, barriers = 0, team_bytes = 0;

  double& operator[](Pipe pipe) { return ops[static_cast<size_t>(pipe)]; }
  double operator[](Pipe pipe) const { return ops[static_cast<size_t>(pipe)]; }
};

// Microseconds, by term.
struct Price {
  double launch = 0, memory = 0, compute = 0;
  // "launch", "memory", "compute": what decides.
  std::string_view binding = "launch";
  // What it takes: launch and the greater of the others, softly. Never less than the sum of launch
  // and either.
  double all = 0;
  double threads = 1;  // that it is worth

  double total() const { return all; }
};

Price PriceOf(const Work& work, const Machine& machine);
// Iterations of the grid that are worth a thread's while, or so many times as much.
int64_t GrainOf(const Work& work, const Machine& machine, int64_t times = 1);

// What a kernel does, counted from its statements. Of a verified kernel; `grid`: iterations of its
// grid, 0: as many as it says.
Work WorkOf(const Kernel& kernel, int64_t grid, const Machine& machine);

// Adds what it takes to compute `elements` elements of an instruction from elements of its
// operands: of a reduction, elements of its operand that are folded; of a dot, elements of its
// result. Memory is not counted: whoever knows what is loaded and stored adds that.
void AddElementOp(Work& work, const Instr& instr, double elements, const Machine& machine);
// Adds elements that are loaded or stored as neighbours, as they are kept in memory; their bytes
// are not counted.
void AddLoads(Work& work, double elements, ElementType type, const Machine& machine);
void AddStores(Work& work, double elements, ElementType type, const Machine& machine);

}  // namespace tokamak
