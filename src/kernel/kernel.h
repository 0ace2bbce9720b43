#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/scalar.h"

// Kernel form: one kernel, for any machine.
//
//   * Scalars are nodes of one graph, each made once (KernelBuilder). What is pure has no place of
//     its own: a value is computed where its users need it, outside of loops that it does not
//     depend on and never outside of an `if` when that could fault (placement.h says where).
//   * Statements form a tree: loops, ifs, whiles, stores, and reads of memory that the kernel also
//     writes. Their order is the program.
//   * A loop counts from 0 to below its extent. Its role says who runs the iterations: the grid
//     (any order, in parallel), the threads of a team, one thread in order (serial, unrolled), or
//     the lanes of a vector in lockstep.
//     A team is one iteration of all grid loops, run by one thread for each iteration of all thread
//     loops. Lanes run in any order or in lockstep: none sees what another stored in the same run
//     of their loop.
//   * Memory is arrays: arguments, a team's own, or registers. An index counts elements. A team's
//     memory and registers hold nothing when the team begins.
//
// verify.h lists what every kernel keeps to.

namespace tokamak {

enum class ValueId : uint32_t {};
enum class ArrayId : uint32_t {};
enum class LoopId : uint32_t {};
enum class ExtentId : uint32_t {};

inline constexpr ValueId kNoValue{UINT32_MAX};

// A scalar. `bits` holds a constant's value, or the number of the loop, extent or array.
struct ScalarNode {
  Prim prim{};
  ScalarType type{};
  std::array<ValueId, 3> operands{kNoValue, kNoValue, kNoValue};
  Bits bits = 0;

  int arity() const { return InfoOf(prim).arity; }
  LoopId loop() const { return LoopId{static_cast<uint32_t>(bits)}; }
  ExtentId extent() const { return ExtentId{static_cast<uint32_t>(bits)}; }
  ArrayId array() const { return ArrayId{static_cast<uint32_t>(bits)}; }
  bool operator==(const ScalarNode&) const = default;
};

enum class Space : uint8_t {
  kArgument,   // given by the launch
  kTeam,       // shared by the threads of a team
  kRegisters,  // one thread's own, or one lane's own (variance.h)
};

enum class Access : uint8_t { kRead, kWrite, kReadWrite };

struct Array {
  std::string name;
  ScalarType type{};
  Space space{};
  Access access = Access::kReadWrite;
  int64_t size = 0;      // elements; arguments: at least so many
  bool distinct = true;  // an argument: overlaps no other that is written
  int64_t alignment = 16;
};

// A number that a launch brings, with what the kernel was built on.
struct Extent {
  std::string name;
  int64_t multiple_of = 1, minimum = 0, maximum = INT64_MAX;
};

enum class LoopRole : uint8_t { kGrid, kThread, kSerial, kUnrolled, kVector };

struct Loop {
  std::string name;
  LoopRole role{};
  ValueId extent{};  // a constant for kThread, kUnrolled and kVector
};

enum class Scope : uint8_t { kWarp, kBlock };

// A match is a statement of kShuffle, too.
enum class StmtKind : uint8_t { kFor, kIf, kWhile, kStore, kRead, kShuffle, kBarrier, kMultiply };

// Matrices that a statement multiplies: for all i < rows and j < columns
//   to(i, j) += sum over p < depth of lhs(i, p) * rhs(p, j)
// in any order of p; `fresh`: = in place of +=. `to` is the statement's array, from its index on;
// all three are counted from the index that they have here. Of types narrower than 32 bits, rhs
// holds groups of as many p as fill 32 bits side by side, and so does lhs, whose columns are
// neighbours.
//
// Under a thread loop it is a team's: all its threads come to it, lhs and rhs are team memory, of
// every type plain matrices, and `to` are registers that hold the part of each thread. A warp has
// warp_rows x warp_columns of the results, warps follow each other along the columns first; the
// warp's part is made of pieces of 16 x 8, likewise, of which a thread has four, as TeamSumPlace
// says. `tf32`: of lhs and rhs the last 13 bits are not looked at.
struct Multiplication {
  ArrayId lhs{}, rhs{};
  ValueId lhs_at{}, rhs_at{}, depth{};
  bool fresh = false;
  int64_t rows = 0, columns = 0;
  // Distances in elements, from row to row (of rhs: from group to group).
  int64_t lhs_row = 0, lhs_column = 1, rhs_row = 0, to_row = 0;
  // Of a team.
  int64_t rhs_column = 1, warp_rows = 0, warp_columns = 0;
  bool tf32 = false;

  bool IsTeams() const { return warp_rows > 0; }
  int64_t Threads() const { return rows / warp_rows * (columns / warp_columns) * kLanesOfWarp; }
  int64_t SumsOfThread() const { return warp_rows * warp_columns / kLanesOfWarp; }
  static constexpr int64_t kLanesOfWarp = 32, kPieceRows = 16, kPieceColumns = 8;
  // Depths are multiples of it: of what tensor cores take at once.
  static int64_t DepthUnit(ScalarType type) { return BytesOf(type) < 4 ? 16 : 8; }
};

// Where a result is whose sum is in register `sum` of a thread. T: int64_t, or the scalars of a
// builder, of which `number` makes constants.
template <typename T>
struct TeamSumPlace {
  T row, column;
  template <typename Number>
  TeamSumPlace(const Multiplication& product, T thread, T sum, Number&& number) {
    T warp = thread / number(32), lane = thread % number(32);
    int64_t across = product.columns / product.warp_columns;
    T piece = sum / number(4), of_four = sum % number(4);
    int64_t pieces = product.warp_columns / Multiplication::kPieceColumns;
    // One after the other: the order in which operands of a sum are made is the compiler's.
    row = warp / number(across) * number(product.warp_rows);
    row = row + piece / number(pieces) * number(16);
    row = row + of_four / number(2) * number(8);
    row = row + lane / number(4);
    column = warp % number(across) * number(product.warp_columns);
    column = column + piece % number(pieces) * number(8);
    column = column + lane % number(4) * number(2);
    column = column + of_four % number(2);
  }
};
// What products of this type are added up in; nothing when it is not one to multiply.
std::optional<ScalarType> SumTypeOf(ScalarType type);
// How many p stand side by side in the right matrix.
inline int64_t GroupOf(ScalarType type) {
  return BytesOf(type) < 4 ? 4 / BytesOf(type) : 1;
}

struct Stmt;
using Block = std::vector<Stmt>;

struct Stmt {
  StmtKind kind{};
  LoopId loop{};                // for
  ValueId condition{};          // if, while: a pred. A while computes it after `head`
  ArrayId array{};              // store, multiply
  ValueId index{}, value{};     // store, multiply; read, shuffle: `value` is what they define
  Scope scope{};                // barrier
  bool uniform = false;         // if, while: every thread of the team decides alike
  Multiplication product{};     // multiply
  Block head, body, otherwise;  // while; for, if, while; if
};

// The numbers that a multiply is given.
inline std::array<ValueId, 4> OperandsOf(const Stmt& multiply) {
  const Multiplication& product = multiply.product;
  return {multiply.index, product.lhs_at, product.rhs_at, product.depth};
}

struct Kernel {
  std::string name;
  int index_bits = 64;
  std::vector<ScalarNode> nodes;
  std::vector<Array> arrays;  // arguments first, in the order of the launch
  std::vector<Extent> extents;
  std::vector<Loop> loops;
  Block body;
  std::vector<std::string> notes;  // where it comes from, for readers of its text

  const ScalarNode& node(ValueId id) const { return nodes[static_cast<size_t>(id)]; }
  const Array& array(ArrayId id) const { return arrays[static_cast<size_t>(id)]; }
  const Loop& loop(LoopId id) const { return loops[static_cast<size_t>(id)]; }
  const Extent& extent(ExtentId id) const { return extents[static_cast<size_t>(id)]; }
  std::span<const ValueId> operands(ValueId id) const {
    const ScalarNode& n = node(id);
    return {n.operands.data(), static_cast<size_t>(n.arity())};
  }
  size_t ArgumentCount() const;
  // The value of a constant index, or nothing.
  bool IsConstant(ValueId id) const { return node(id).prim == Prim::kConst; }
};

}  // namespace tokamak
