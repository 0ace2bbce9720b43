#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "gen/row_levels.h"
#include "gen/row_stash.h"

// What is done for one row: reductions over the last dimensions, level by level, and what is
// computed from them.

namespace tokamak {

// A row of an array of the region in memory of the kernel's own: element e is at `begin + e`.
struct RowPlace {
  const Instr* instr = nullptr;
  ElementType held{};  // as what it is there
  ArrayId array{};
  Scalar begin{};
  bool is_written = false;  // of a sink: to memory, too
};

class RowsBody {
 public:
  RowsBody(const Region& region, const Machine& machine, KernelBuilder& b, ElementEmitter& emitter)
      : region_(region), machine_(machine), b_(b), emitter_(emitter) {}

  // Why the region is not made of rows, in words; "" when it is. Before all else.
  std::string Find();
  int64_t rows() const { return rows_; }
  int64_t row() const { return row_; }
  // The arrays whose elements rows are made of.
  const Dims& dims() const { return levels_[0][0].input().dims(); }

  // Folds and writes row `row`. `source`: what is there already; `sink`: a root that is put there.
  void Emit(Scalar row, const RowPlace& source = {}, const RowPlace& sink = {});

  // Rows that are folded side by side: each waits for itself, and what they share is loaded once.
  int64_t RowsAtATime() const;
  void EmitSeveral(Scalar first, int64_t count);

 private:
  void FindLoops();
  void TakeKept(const RowLoop& loop, Scalar element);
  void Keep(const RowLoop& loop, Scalar element);
  int64_t LanesBeside() const;
  Coordinates InputAt(const Reducer& reducer, Scalar element);
  // Sums of some rows, side by side.
  std::vector<std::vector<Accumulators>> Fold(const std::vector<Reducer>& level,
                                              const RowLoop& loop, const std::vector<Scalar>& rows);
  void BindResults(std::vector<Accumulators>& sums);
  void StoreRows();
  void StoreElements();
  void PutInSink(Scalar element, Element value);

  template <typename Body>
  void ForLanes(int64_t lanes, Body&& body) {
    if (lanes == 1) return body(b_.Index(0));
    b_.For("l", LoopRole::kVector, b_.Index(lanes), body);
  }

  const Region& region_;
  const Machine& machine_;
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  std::vector<std::vector<Reducer>> levels_;
  std::vector<RowLoop> loops_;  // one for each level, and the one that writes
  std::unordered_map<const Instr*, ArrayId> kept_;
  int64_t rows_ = 0, row_ = 0;
  Scalar row_at_;
  RowPlace source_, sink_;
};

}  // namespace tokamak
