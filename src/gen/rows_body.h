#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "gen/row_cache.h"
#include "gen/row_levels.h"

// The code for one row of a CPU row kernel: reductions over the minor dimensions, level by level,
// then the elementwise code that uses their results.

namespace tokamak {

// A row of an array of the region in kernel-local memory: element e is at `begin + e`.
struct RowLocation {
  const Instr* instr = nullptr;
  ElementType held{};  // element type in that memory
  ArrayId array{};
  Scalar begin{};
  bool is_written = false;  // sink only: also store it to the root's array
};

class RowsBody {
 public:
  RowsBody(const FusedRegion& region, const Machine& machine, KernelBuilder& b,
           ElementEmitter& emitter)
      : region_(region), machine_(machine), b_(b), emitter_(emitter) {}

  // Returns why the region has no row form, empty if it has. Call it first.
  std::string Find();
  int64_t rows() const { return rows_; }
  int64_t row() const { return row_; }
  // Dimensions of the arrays that the reductions read.
  const Dims& dims() const { return levels_[0][0].input().dims(); }

  // Reduces and writes row `row`. `source`: an array whose row is already in local memory; `sink`:
  // a root whose row is put in local memory.
  void Emit(Scalar row, const RowLocation& source = {}, const RowLocation& sink = {});

  // Rows that are reduced concurrently: their dependence chains overlap, and values that they share
  // are loaded once.
  int64_t RowsAtATime() const;
  void EmitSeveral(Scalar first, int64_t count);

 private:
  void FindLoops();
  void LoadCached(const RowLoop& loop, Scalar element);
  void Cache(const RowLoop& loop, Scalar element);
  int64_t LanesBeside() const;
  Coordinates InputAt(const Reducer& reducer, Scalar element);
  // Accumulators of several rows, reduced in one loop.
  std::vector<std::vector<Accumulators>> Accumulate(const std::vector<Reducer>& level,
                                                    const RowLoop& loop,
                                                    const std::vector<Scalar>& rows);
  void BindResults(std::vector<Accumulators>& sums);
  void StoreRows();
  void StoreElements();
  void PutInSink(Scalar element, Element value);

  template <typename Body>
  void ForLanes(int64_t lanes, Body&& body) {
    if (lanes == 1) return body(b_.Index(0));
    b_.For("l", LoopRole::kVector, b_.Index(lanes), body);
  }

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder& b_;
  ElementEmitter& emitter_;
  std::vector<std::vector<Reducer>> levels_;
  std::vector<RowLoop> loops_;  // one per level, then the loop that writes
  std::unordered_map<const Instr*, ArrayId> cached_;
  int64_t rows_ = 0, row_ = 0;
  Scalar row_at_;
  RowLocation source_, sink_;
};

}  // namespace tokamak
