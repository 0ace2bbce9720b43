#pragma once

#include <map>
#include <string>
#include <vector>

#include "gen/gpu/gpu.h"
#include "gen/reducer.h"

// Column sums inside a GPU row kernel: bias gradients, for example, whose inputs the row kernel
// computes anyway. (The reductions of column kernels are in column_reductions.h.)

namespace tokamak::gpu {

// Reductions of a region over the middle dimension of [outer, reduced, row]: sums, or any other
// reduction that may be reassociated. A result has one element per outer index and element of a
// row. They are roots without users inside the region.
//
// A thread block processes all `reduced` rows of one outer index, `block_rows` of them at a time. A
// thread accumulates its elements of the rows that it takes part in; Finish combines the threads of
// the concurrent rows.
class ColumnSums {
 public:
  ColumnSums(KernelBuilder& b, ElementEmitter& emitter) : b_(b), emitter_(emitter) {}

  // Splits them off a region; `rest` is the region without them. Returns why they cannot share a
  // kernel, an empty string if they can or there are none.
  std::string Find(const FusedRegion& region, FusedRegion& rest);
  bool empty() const { return reducers_.empty(); }
  // The sizes of [outer, reduced, row].
  int64_t outer() const { return outer_; }
  int64_t reduced_rows() const { return reduced_rows_; }
  int64_t row_length() const { return row_length_; }
  // The operand of reduction i, looking through reshapes inside the region.
  const Instr& operand(size_t i) const { return *operands_[i]; }
  size_t size() const { return reducers_.size(); }
  // Registers per thread for one element of a row.
  int64_t thread_registers() const;

  // Declares accumulators for `count` elements per thread.
  void Begin(int64_t count);
  // Accumulates the thread's element with index `element_index` (below Begin's count), which is at
  // row-major index `linear` of all rows and at coordinates `at` of arrays of dimensions `dims`, if
  // the pred `valid` holds.
  void Accumulate(Scalar element_index, const Coordinates& at, const Dims& dims, Scalar linear,
                  Scalar valid);
  // Combines the sums of the rows that a thread block processes concurrently, through shared memory
  // with a fixed reduction tree, and stores the results of outer index `outer_index`. `block_row`:
  // which of the `block_rows` concurrent rows, a power of two, the thread belongs to.
  // `for_elements` calls body(element of the row, element_index) for all elements of a thread, the
  // same for every block_row. Contains block barriers: all threads of the block must execute it,
  // outside of divergent branches. Shared memory is reused from step to step, hence two barriers
  // per step.
  template <typename ForElements>
  void Finish(Scalar outer_index, Scalar block_row, int64_t block_rows,
              ForElements&& for_elements) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      for (int64_t half = block_rows / 2; half > 0; half /= 2) {
        AddSharedArray(i, half);
        b_.If((b_.Index(half) <= block_row) & (block_row < b_.Index(2 * half)), [&] {
          for_elements([&](Scalar element, Scalar element_index) {
            StoreShared(i, (block_row - b_.Index(half)) * b_.Index(row_length_) + element,
                        element_index);
          });
        });
        b_.Barrier(BarrierScope::kBlock);
        b_.If(block_row < b_.Index(half), [&] {
          for_elements([&](Scalar element, Scalar element_index) {
            CombineShared(i, block_row * b_.Index(row_length_) + element, element_index);
          });
        });
        // The next step reuses the shared memory.
        b_.Barrier(BarrierScope::kBlock);
      }
    }
    b_.If(block_row == b_.Index(0), [&] {
      for_elements([&](Scalar element, Scalar element_index) {
        for (size_t i = 0; i < sums_.size(); ++i)
          Store(i, outer_index * b_.Index(row_length_) + element, element_index);
      });
    });
  }

 private:
  void AddSharedArray(size_t i, int64_t rows);
  // Stores the sum of a thread's element to shared memory, at `index`.
  void StoreShared(size_t i, Scalar index, Scalar element_index);
  // Combines the sum of a thread's element with that at `index` of shared memory.
  void CombineShared(size_t i, Scalar index, Scalar element_index);
  // Stores the result of a thread's element, at row-major index `linear` of the result.
  void Store(size_t i, Scalar linear, Scalar element_index);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  std::vector<Reducer> reducers_;
  std::vector<const Instr*> operands_;
  std::vector<Accumulators> sums_;
  std::map<ScalarType, ArrayId> shared_;  // large enough for all reductions
  int64_t outer_ = 1, reduced_rows_ = 1, row_length_ = 1, shared_bytes_ = 0;
};

// Whether ColumnSums can compute the reduction: it has one input, which is not complex, the reduced
// dimensions are adjacent with other dimensions after them, and it may be reassociated. Find
// requires more of the region.
bool IsColumnSum(const Reducer& reducer);

}  // namespace tokamak::gpu
