#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/gpu_limits.h"
#include "kernel/scalar.h"

// Kernel IR: the body of one kernel, independent of the target. Generators build it (builder.h),
// the verifier checks it (verify.h lists the rules), and three consumers run it: the LLVM emitter
// for CPUs, the CUDA C++ writer, and the race-checking simulator (simulate.h).
//
//   kernel row_sums {
//     argument x: f32[65536] read          // global memory, passed by the launch
//     argument y: f32[1024] write
//     registers acc: f32[1]                // private to a thread
//     grid row < 1024 {                    // blockIdx: one thread block per row
//       v0: index = row * 64               // pure: placement.h hoists it out of the loop
//       store acc[0] = f32(0)
//       serial k < 64 {
//         v1: index = v0 + k
//         v2: f32 = load x[v1]             // load: pure, the kernel never writes x
//         v3: f32 = read acc[0]            // read: a statement, ordered with the stores
//         v4: f32 = v2 + v3
//         store acc[0] = v4
//       }
//       v5: f32 = read acc[0]
//       store y[row] = v5
//     }
//   }
//
//   * Scalars are nodes of one DAG, hash-consed by KernelBuilder. A pure node has no position in
//     the program. Placement (placement.h) schedules it near its users, outside of the loops that
//     it does not depend on; a node that can fault is never speculated out of an `if`.
//   * Statements form a tree: for, if, while, store, shuffle, barrier, matrix multiply, reads of
//     memory that the kernel also writes, and operations on asynchronous work (AsyncOp). Their
//     order is the program order.
//   * A loop counts from 0 to its extent (exclusive) with step 1. Its role says who runs the
//     iterations: the grid (blockIdx), the threads of a block (threadIdx), one thread in sequence
//     (serial, unrolled), or the lanes of a SIMD vector (vector).
//   * A thread block is one iteration of all grid loops. It has one thread per iteration of all
//     thread loops. Thread blocks are independent and run in any order.
//   * A thread block of more than 1024 threads is launched as a thread-block cluster (cluster.h).
//     Its shared memory and its block barriers then span the cluster.
//   * The lanes of a vector loop run in lockstep or in any order. A generator must therefore not
//     let a lane read what another lane stores in the same execution of the loop. The simulator
//     reports that as a data race (simulate.h).
//   * Memory is a set of arrays: arguments (global memory), shared memory of the thread block, or
//     registers. Indices count elements. Shared memory and registers are uninitialized when a
//     thread block starts.
//
// There is no fourth memory space. A "local array" of a generator is in Space::kShared or
// Space::kRegisters. On CPUs a thread block is one task that one thread runs: registers are its
// stack, and shared memory is its stack or, if large, scratch memory of the thread.

namespace tokamak {

enum class ValueId : uint32_t {};
enum class ArrayId : uint32_t {};
enum class LoopId : uint32_t {};
enum class LaunchExtentId : uint32_t {};

inline constexpr ValueId kNoValue{UINT32_MAX};

// A scalar value (SSA). `bits` holds the bits of a constant, or the id of a loop, extent or array.
struct ScalarNode {
  Prim prim{};
  ScalarType type{};
  std::array<ValueId, 3> operands{kNoValue, kNoValue, kNoValue};
  Bits bits = 0;

  int arity() const { return InfoOf(prim).arity; }
  LoopId loop() const { return LoopId{static_cast<uint32_t>(bits)}; }
  LaunchExtentId extent() const { return LaunchExtentId{static_cast<uint32_t>(bits)}; }
  ArrayId array() const { return ArrayId{static_cast<uint32_t>(bits)}; }
  bool operator==(const ScalarNode&) const = default;
};

enum class Space : uint8_t {
  kArgument,  // global memory, passed by the launch
  kShared,    // shared by the threads of a thread block; on CPUs, by all lanes of a task
  kMbarrier,  // mbarriers of a thread block (AsyncOp). Only AsyncOps access them
  // Private to a thread: one copy of the array per thread, which the lanes of its vector loops
  // share. The exception is an array with one copy per lane: under a vector loop of two or more
  // lanes, a store to an index that is the same for all lanes has a value, or is under a condition,
  // that differs between lanes (divergence.h).
  kRegisters,
};

enum class Access : uint8_t { kRead, kWrite, kReadWrite };

struct Array {
  std::string name;
  ScalarType type{};
  Space space{};
  Access access = Access::kReadWrite;
  int64_t size = 0;        // elements; for an argument, the minimum the launch must pass
  bool distinct = true;    // argument only: it overlaps no other written argument (noalias)
  int64_t alignment = 16;  // bytes; of an argument, or of shared memory that a tile copy writes
  int64_t arrivals = 0;    // mbarriers only: number of arrivals that complete a phase
};

// An integer argument of the launch, with the facts that the kernel may assume about it: the size
// of a dynamic dimension, say. The trip count of a loop (Loop::extent) is a value that may be
// computed from it.
struct LaunchExtent {
  std::string name;
  int64_t multiple_of = 1, minimum = 0, maximum = INT64_MAX;
};

enum class LoopRole : uint8_t { kGrid, kThread, kSerial, kUnrolled, kVector };

struct Loop {
  std::string name;
  LoopRole role{};
  ValueId extent{};  // a constant for kThread, kUnrolled and kVector
};

// The threads that a barrier synchronizes.
enum class BarrierScope : uint8_t { kWarp, kBlock };

// kShuffle: the warp exchanges, Prim::kShuffle (shfl.xor) and Prim::kMatch (match.any).
// kMatMul: a matrix multiply. kAsync: an operation on asynchronous work (AsyncOp).
enum class StmtKind : uint8_t {
  kFor,
  kIf,
  kWhile,
  kStore,
  kRead,
  kShuffle,
  kBarrier,
  kMatMul,
  kAsync
};

// The numbers whose bits the u8 elements of an operand of an asynchronous multiply are.
enum class Float8 : uint8_t { kNone, kE4M3Fn, kE5M2 };
constexpr std::string_view TextOf(Float8 format) {
  return format == Float8::kE4M3Fn ? "f8e4m3fn" : format == Float8::kE5M2 ? "f8e5m2" : "";
}

// Operands of a matrix multiply statement: for all i < rows and j < columns,
//   result(i, j) += sum over p < depth of lhs(i, p) * rhs(p, j)
// with the sum over p in any order. With `overwrite` the statement stores (=) instead of
// accumulating (+=). `result` is the statement's array. Each matrix starts at its own index: the
// statement's index, `lhs_index`, `rhs_index`.
//
// There are three forms.
//   * Per thread (warp_rows == 0): one thread multiplies. If an element is narrower than 32 bits,
//     rhs is interleaved (VNNI layout): VnniGroupSize(type) consecutive p fill 32 bits and are
//     contiguous for each column. lhs_column_stride must then be 1.
//   * Block-wide (warp_rows > 0): all threads of the thread block take part, as in mma.sync. lhs
//     and rhs are plain row- or column-major matrices in shared memory, whatever their type;
//     `result` is an array of registers that holds the accumulators of each thread. Each warp
//     computes a tile of warp_rows x warp_columns; consecutive warps cover the columns first. A
//     warp tile consists of 16 x 8 mma fragments, also columns first, and a thread holds four
//     accumulators of each fragment (AccumulatorPosition). With `tf32` the low 13 mantissa bits of
//     f32 operands are ignored.
//   * Asynchronous (async): a warpgroup, 128 threads whose first one is a multiple of 128,
//     multiplies 64 x columns, as in wgmma. All its threads reach the statement together. The
//     operation reads its operands and writes its accumulators at any time until a
//     AsyncKind::kWaitMultiplies of every thread; until then no thread may store to the operands or
//     access the accumulators. rhs is in shared memory; lhs too, or in registers. A matrix in
//     shared memory consists of panels of rows of 128 bytes (kPanelBytes) with a 128-byte swizzle
//     (SwizzledByte), and starts at a multiple of 1024 bytes. It is K-major (a row is one i or j,
//     and a panel holds 128 bytes along p; its column, resp. row stride is 1) or not (a row is one
//     p, and a panel holds 128 bytes along i or j; 16-bit types only). `lhs_panel` and `rhs_panel`
//     are the elements from panel to panel. An lhs in registers has the layout of accumulators of
//     64 x depth (AccumulatorPosition). Accumulators have the layout of the block-wide form with
//     warp_rows = 16, warp_columns = columns. s8 and u8 accumulate s32, which wraps. With `float8`,
//     both operands are u8 and accumulate f32; tensor cores keep 14 significant bits of these sums.
struct MatrixMultiply {
  ArrayId lhs{}, rhs{};
  ValueId lhs_index{}, rhs_index{}, depth{};
  bool overwrite = false;
  int64_t rows = 0, columns = 0;
  // Strides in elements, from row to row and from column to column. For a per-thread rhs in VNNI
  // layout, rhs_row_stride is the stride between groups of p. In the per-thread form the column
  // stride of `result` is 1.
  int64_t lhs_row_stride = 0, lhs_column_stride = 1, rhs_row_stride = 0, result_row_stride = 0;
  // Block-wide form only.
  int64_t rhs_column_stride = 1, warp_rows = 0, warp_columns = 0;
  bool tf32 = false;
  // Asynchronous form only.
  bool async = false;
  int64_t lhs_panel = 0, rhs_panel = 0;
  std::array<Float8, 2> float8{};  // of lhs and rhs

  bool IsFloat8() const { return float8[0] != Float8::kNone; }
  bool IsBlockWide() const { return warp_rows > 0 && !async; }
  bool LhsIsKMajor() const { return lhs_column_stride == 1; }
  bool RhsIsKMajor() const { return rhs_row_stride == 1; }
  // Block-wide form only: threads of the thread block, and accumulators that each of them holds.
  int64_t Threads() const { return rows / warp_rows * (columns / warp_columns) * kWarpSize; }
  int64_t AccumulatorsPerThread() const { return warp_rows * warp_columns / kWarpSize; }
  static constexpr int64_t kWarpSize = tokamak::kWarpSize;
  // Of the asynchronous form (PTX ISA, wgmma): rows, threads, bytes of a row of a panel, and the
  // alignment of a panel in bytes.
  static constexpr int64_t kWarpgroupRows = 64, kWarpgroupThreads = 128, kPanelBytes = 128,
                           kPanelAlignment = 1024;
  // A fragment is the m16n8 accumulator tile of mma.sync (PTX ISA).
  static constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8;
  // TF32 keeps 10 of the 23 mantissa bits of an f32 (PTX ISA): the bits that are kept.
  static constexpr Bits kTf32Mask = 0xffffe000;
  // `depth` is a multiple of this: the K of one mma instruction (m16n8k16 for 16-bit and narrower
  // types, else m16n8k8).
  static int64_t DepthUnit(ScalarType type) { return BytesOf(type) < 4 ? 16 : 8; }
};

// The row and column of the result that a thread of the block-wide form accumulates in its
// accumulator with index `accumulator`, by the accumulator layout of mma.m16n8. T is int64_t, or
// Scalar to build index expressions; `make_constant` makes a constant of type T.
template <typename T>
struct AccumulatorPosition {
  T row, column;
  template <typename MakeConstant>
  AccumulatorPosition(const MatrixMultiply& product, T thread, T accumulator,
                      MakeConstant&& make_constant) {
    T warp = thread / make_constant(MatrixMultiply::kWarpSize),
      lane = thread % make_constant(MatrixMultiply::kWarpSize);
    int64_t warps_across_columns = product.columns / product.warp_columns;
    T fragment = accumulator / make_constant(4), in_fragment = accumulator % make_constant(4);
    // The fragments across the columns of a warp tile, not all of its fragments.
    int64_t fragments = product.warp_columns / MatrixMultiply::kFragmentColumns;
    // Separate statements, because C++ does not define the evaluation order of the operands of +,
    // and the order in which nodes are created must not depend on the compiler.
    row = warp / make_constant(warps_across_columns) * make_constant(product.warp_rows);
    row = row + fragment / make_constant(fragments) * make_constant(MatrixMultiply::kFragmentRows);
    row = row + in_fragment / make_constant(2) * make_constant(MatrixMultiply::kFragmentRows / 2);
    row = row + lane / make_constant(4);
    column = warp % make_constant(warps_across_columns) * make_constant(product.warp_columns);
    column = column +
             fragment % make_constant(fragments) * make_constant(MatrixMultiply::kFragmentColumns);
    column = column + lane % make_constant(4) * make_constant(2);
    column = column + in_fragment % make_constant(2);
  }
};
// The byte of a 128-byte swizzled panel that holds the byte with this number of the same panel
// without the swizzle: in row r, the 16-byte chunk c is at chunk c ^ (r % 8). An involution.
constexpr int64_t SwizzledByte(int64_t byte) {
  return byte ^ (byte >> 3 & 0x70);
}

// The accumulator type of a matrix multiply with operands of this type. nullopt if the type cannot
// be multiplied. (Reductions accumulate element types: AccumulatorElementType in gen/element.h.)
std::optional<ScalarType> AccumulatorScalarType(ScalarType type);
// Number of consecutive p that fill 32 bits, the group size of the VNNI layout of rhs.
inline int64_t VnniGroupSize(ScalarType type) {
  return BytesOf(type) < 4 ? 4 / BytesOf(type) : 1;
}

// A copy of a box of a global tensor to shared memory or back, by the bulk copy engine (TMA). The
// tensor is the argument `from` (`to` of a copy back), seen through sizes and strides of its own.
// Elements of the box that are outside of it are zeros; copied back, they are left out. The box is
// contiguous in shared memory, its dimension 0 innermost, with a 128-byte swizzle (SwizzledByte) if
// dimension 0 of the box has 128 bytes, `swizzled`. With `tf32`, the f32 elements that a copy
// brings to shared memory are rounded to the nearest TF32.
struct TileCopy {
  struct Dimension {
    int64_t size = 0, stride = 0, box = 0;  // elements; the stride of dimension 0 is 1
    ValueId at{};                           // first coordinate of the box
    int64_t step = 1;  // from an element of the box to the next, along the dimension
  };
  ArrayId from{}, to{};
  ValueId to_index = kNoValue, from_index = kNoValue;  // of the one in shared memory
  std::vector<Dimension> dimensions;                   // innermost first
  bool swizzled = false, tf32 = false;

  int64_t Elements() const {
    int64_t elements = 1;
    for (const Dimension& dimension : dimensions) elements *= dimension.box;
    return elements;
  }
  static constexpr size_t kMaxRank = 5;  // PTX ISA, cp.async.bulk.tensor
  // Elements along a dimension that a box has or steps over, and a step (CUDA driver API).
  static constexpr int64_t kMaxBox = 256, kMaxStep = 8;
  // Bytes of the tensor and its strides (CUDA driver API), and of `at` of dimension 0 (measured: an
  // H200 ends other copies with an illegal instruction).
  static constexpr int64_t kAlignment = 16;
};

// Operations on asynchronous work of a thread block: mbarriers, bulk copies, multiplies.
//
// An mbarrier is in a phase, at first phase 0. A phase is complete when `arrivals` arrivals have
// happened and all bytes have come that copies of the phase bring (`expect`). Then the next phase
// begins. The stores of a thread before it arrived, and those of the copies, are visible to threads
// that waited for the phase.
//
// One thread of a warp starts all copies back of the warp. The other accesses of what they store
// belong to other kernels.
enum class AsyncKind : uint8_t {
  kArrive,          // one arrival at mbarrier[index], which expects `number` bytes more
  kWait,            // waits until the phase with the parity `parity` of mbarrier[index] is complete
  kCopy,            // starts `copy`; it brings its bytes to the current phase of mbarrier[index]
  kCopyBack,        // starts `copy` from shared memory, which it reads until a kWaitCopies
  kWaitCopies,      // waits until at most the last `number` of the copies back that this thread
                    // started still read shared memory
  kWaitMultiplies,  // waits until at most `number` of the warpgroup's multiplies into registers
                    // `array` are unfinished. They finish in order
  kFence,           // orders this thread's stores to shared memory before later asynchronous reads
  kRegisters,       // the warpgroup's threads use at most `number` registers from now on
};

struct AsyncOp {
  AsyncKind kind{};
  int64_t number = 0;
  ValueId parity = kNoValue;
  TileCopy copy{};
};

struct Stmt;
using StmtList = std::vector<Stmt>;

struct Stmt {
  StmtKind kind{};
  LoopId loop{};        // for
  ValueId condition{};  // if, while: a pred. A while evaluates it after running `condition_stmts`
  // Of a store or multiply; of an AsyncOp the mbarrier or the registers. A read's array is in the
  // node `value`.
  ArrayId array{};
  // `index`: of a store, of the result of a multiply, of an AsyncOp's mbarrier. `value`: the value
  // that a store stores; the node that a read or a shuffle defines.
  ValueId index{}, value{};
  BarrierScope scope{};     // barrier
  bool uniform = false;     // if, while: all threads of the thread block take the same branch
  MatrixMultiply matmul{};  // multiply
  // Asynchronous work. Shared and immutable, because few statements have one, and kernels are
  // copied.
  std::shared_ptr<const AsyncOp> async = nullptr;
  // condition_stmts: the statements that compute a while's condition. body: of a for, a while, the
  // then branch of an if. else_body: the else branch of an if.
  StmtList condition_stmts, body, else_body;
};

// The scalar operands of a multiply statement: the three start indices and the depth.
inline std::array<ValueId, 4> MatMulOperandsOf(const Stmt& multiply) {
  const MatrixMultiply& product = multiply.matmul;
  return {multiply.index, product.lhs_index, product.rhs_index, product.depth};
}

// Whether an AsyncOp accesses an mbarrier, `array`[`index`] of its statement.
constexpr bool HasMbarrier(AsyncKind kind) {
  return kind == AsyncKind::kArrive || kind == AsyncKind::kWait || kind == AsyncKind::kCopy;
}
constexpr bool HasCopy(AsyncKind kind) {
  return kind == AsyncKind::kCopy || kind == AsyncKind::kCopyBack;
}
// Whether its statement has an `array`: an mbarrier, or registers.
constexpr bool HasArray(AsyncKind kind) {
  return HasMbarrier(kind) || kind == AsyncKind::kWaitMultiplies;
}
// The scalar operands, and the arrays, of an AsyncOp statement.
std::vector<ValueId> AsyncOperandsOf(const Stmt& stmt);
std::vector<ArrayId> AsyncArraysOf(const Stmt& stmt);

struct Kernel {
  std::string name;
  int index_bits = 64;
  std::vector<ScalarNode> nodes;
  std::vector<Array> arrays;  // arguments first, in the order of the launch
  std::vector<LaunchExtent> extents;
  std::vector<Loop> loops;
  StmtList body;
  std::vector<std::string> notes;  // source locations, written as `note` lines of the kernel's text

  const ScalarNode& node(ValueId id) const { return nodes[static_cast<size_t>(id)]; }
  const Array& array(ArrayId id) const { return arrays[static_cast<size_t>(id)]; }
  const Loop& loop(LoopId id) const { return loops[static_cast<size_t>(id)]; }
  const LaunchExtent& extent(LaunchExtentId id) const { return extents[static_cast<size_t>(id)]; }
  std::span<const ValueId> operands(ValueId id) const {
    const ScalarNode& n = node(id);
    return {n.operands.data(), static_cast<size_t>(n.arity())};
  }
  size_t ArgumentCount() const;
  bool IsConstant(ValueId id) const { return node(id).prim == Prim::kConst; }
};

}  // namespace tokamak
