#pragma once

#include <map>
#include <string>
#include <vector>

#include "gen/gpu/gpu.h"
#include "gen/reducer.h"

namespace tokamak::gpu {

// Reductions of a region along the columns of what its rows are made of: of an array of `parts`
// times `folded` rows, each gives a row for every part. They are roots that nothing else needs.
class ColumnSums {
 public:
  ColumnSums(KernelBuilder& b, ElementEmitter& emitter) : b_(b), emitter_(emitter) {}

  // Takes them out of a region: `rest` is the region without them. Why they do not go together, in
  // words; "" when they do, or there are none.
  std::string Find(const Region& region, Region& rest);
  bool empty() const { return reducers_.empty(); }
  int64_t parts() const { return parts_; }
  int64_t folded() const { return folded_; }
  int64_t row() const { return row_; }
  // What a column is the sum of, below reshapes: dimensions of rows, and one of them.
  const Instr& operand(size_t i) const { return *operands_[i]; }
  size_t size() const { return reducers_.size(); }
  // Registers of a thread for one element of a row.
  int64_t words() const;

  // A thread has `count` elements of each row.
  void Begin(int64_t count);
  // Folds element `number` of a thread, the one at `linear` (row-major) of all rows and `at` in
  // arrays of dimensions `dims`; only where `valid` holds.
  void Fold(Scalar number, const Coordinates& at, const Dims& dims, Scalar linear, Scalar valid);
  // Joins the sums of all rows that a block has at a time, through team memory in a fixed tree,
  // and writes them. `for_elements` runs a body(element of the row, number) for all of a thread.
  template <typename ForElements>
  void Finish(Scalar part, Scalar block_row, int64_t block_rows, ForElements&& for_elements) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      for (int64_t half = block_rows / 2; half > 0; half /= 2) {
        NewShared(i, half);
        b_.If((b_.Index(half) <= block_row) & (block_row < b_.Index(2 * half)), [&] {
          for_elements([&](Scalar element, Scalar number) {
            Share(i, (block_row - b_.Index(half)) * b_.Index(row_) + element, number);
          });
        });
        b_.Barrier(Scope::kBlock);
        b_.If(block_row < b_.Index(half), [&] {
          for_elements([&](Scalar element, Scalar number) {
            Join(i, block_row * b_.Index(row_) + element, number);
          });
        });
        // The same memory is used again.
        b_.Barrier(Scope::kBlock);
      }
    }
    b_.If(block_row == b_.Index(0), [&] {
      for_elements([&](Scalar element, Scalar number) {
        for (size_t i = 0; i < sums_.size(); ++i) Store(i, part * b_.Index(row_) + element, number);
      });
    });
  }

 private:
  void NewShared(size_t i, int64_t rows);
  // The sum of a thread's element, to and from a place of team memory; to the result.
  void Share(size_t i, Scalar place, Scalar number);
  void Join(size_t i, Scalar place, Scalar number);
  void Store(size_t i, Scalar linear, Scalar number);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  std::vector<Reducer> reducers_;
  std::vector<const Instr*> operands_;
  std::vector<Accumulators> sums_;
  std::map<ScalarType, ArrayId> shared_;  // large enough for all
  int64_t parts_ = 1, folded_ = 1, row_ = 1, team_bytes_ = 0;
};

// Whether a reduction is one of columns: of reals or integers, along dimensions side by side, with
// others behind them.
bool FoldsColumns(const Reducer& reducer);

}  // namespace tokamak::gpu
