#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "gen/row_cache.h"
#include "gen/row_levels.h"

// The code for one row (gen/generator.h) of a CPU row kernel: its reductions, level by level, then
// the elementwise code that uses their results.

namespace tokamak {

// A row of a value of the region in a local array: element e is at `begin + e`. The contract
// generator uses it to connect row code with dots, without a detour through memory: the sums of a
// dot are the source of a row, or the lhs of a dot is its sink. Default: none (`instr` is null).
struct RowLocation {
  const Instr* instr = nullptr;
  ElementType stored_type{};  // element type in that array
  ArrayId array{};
  Scalar begin{};
  bool is_written = false;  // sink only: also store it to the root's array
};

// Call Analyze, then Emit (or EmitRows) inside the loop over rows.
class RowsBody {
 public:
  RowsBody(const FusedRegion& region, const Machine& machine, KernelBuilder& b,
           ElementEmitter& emitter)
      : region_(region), machine_(machine), b_(b), emitter_(emitter) {}

  // Analyzes the region and, if `caches`, declares the arrays of cached values. Returns why the
  // region has no row form, an empty string if it has.
  std::string Analyze(bool caches = true);
  // The number of rows, and the elements of a row.
  int64_t row_count() const { return row_count_; }
  int64_t row_length() const { return row_length_; }
  // Dimensions of the arrays that the reductions read.
  const Dims& dims() const { return levels_[0][0].input().dims(); }

  // Reduces and writes the row with index `row`. `source`: a value whose row is already in a local
  // array; `sink`: a root whose row is stored to a local array.
  void Emit(Scalar row, const RowLocation& source = {}, const RowLocation& sink = {});

  // Whether loops over a row cache values for each other.
  bool CachesValues() const { return !cached_.empty(); }
  // Vectors that one iteration of the loop over a row processes: several hide latency.
  int64_t unroll() const { return unroll_; }
  void set_unroll(int64_t vectors) { unroll_ = vectors; }

  // Whether one iteration can reduce several rows: the region only reduces, and caches nothing.
  bool CanReduceRowsTogether() const;
  // Rows that one iteration should reduce concurrently: their dependence chains overlap, and values
  // that they share are loaded once. If more than 1, use EmitRows for rows [first, first +
  // count).
  int64_t RowsPerIteration() const;
  void EmitRows(Scalar first, int64_t count);

 private:
  void FindLoops(bool caches);
  void LoadCached(const RowLoop& loop, Scalar element);
  void Cache(const RowLoop& loop, Scalar element);
  // Vector lanes of the loop over a row.
  int64_t LanesPerIteration() const { return unroll_ * machine_.Lanes(32); }
  Coordinates InputAt(const Reducer& reducer, Scalar element);
  // Reduces several rows in one loop. Returns their accumulators: [row][reducer of the level].
  std::vector<std::vector<Accumulators>> Accumulate(const std::vector<Reducer>& level,
                                                    const RowLoop& loop,
                                                    const std::vector<Scalar>& rows);
  void BindResults(std::vector<Accumulators>& sums);
  // Store the roots with one element per row, and those with one element per row element.
  void StoreRowResults();
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
  int64_t row_count_ = 0, row_length_ = 0, unroll_ = 1;
  Scalar row_index_;
  RowLocation source_, sink_;
};

}  // namespace tokamak
