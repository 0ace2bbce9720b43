#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gen/gpu/cached_values.h"
#include "gen/gpu/column_sums.h"
#include "gen/gpu/gpu.h"
#include "gen/online_sum_exp.h"
#include "gen/row_levels.h"

// How a GPU row kernel (rows.cc) maps rows to threads, from a schedule (gen/schedule.h).

namespace tokamak::gpu {

struct RowsTiling {
  FusedRegion region;  // without column sums
  RowLevels found;
  Dims dims;         // of the arrays that rows consist of
  size_t split = 0;  // dims before it enumerate rows
  // Lanes of a vector; vectors and threads of a row; rows of a block at once; vectors of a thread,
  // and how many of them it has in flight.
  int64_t lanes = 1, vectors = 1, threads = 1, block_rows = 1, steps = 1, unroll = 1;
  bool unrolled = false;  // all vectors of a thread
  // Cached elements of a thread in registers, and of a block in shared memory.
  int64_t cached_registers = 0, cached_in_shared = 0;
  // Steps before it are cached in registers, the others in shared memory.
  int64_t register_steps = 0;
  std::optional<OnlineSumExp> online;

  // Roots with more than one element per row.
  std::vector<const Instr*> LastRoots() const;
};

// Whether all reductions of a level may be reassociated.
bool CanReassociate(const std::vector<Reducer>& level);

// Finds the rows of a region and chooses how threads process them.
class RowsScheduler {
 public:
  // `caches`: values may be cached between the passes over a row.
  RowsScheduler(const FusedRegion& region, const Machine& machine, CachedValues& cached,
                ColumnSums& columns, bool caches)
      : region_(region), machine_(machine), cached_(cached), columns_(columns), caches_(caches) {}

  // Sets the tiling to that of the schedule; null: of the preferred one. Returns why there is no
  // kernel, as far as that is known before code is emitted; empty if there may be one.
  std::string Prepare(const Schedule* requested);
  const RowsTiling& tiling() const { return t_; }
  // The schedule that the tiling has. A tile is some rows, and of each as many elements as its
  // threads access in one step.
  Schedule Chosen() const;

 private:
  std::string Find();
  bool ReadsStrided() const;
  int64_t AccumulatorRegisters() const;
  std::string Prefer();
  void PreferThreads(int64_t accumulator_registers);
  void PreferRows();
  std::string Change(const Schedule& to);
  std::string WhyNotShape(const Schedule& to) const;
  std::string ChangeStaging(Staging to);
  bool CacheIn(int64_t threads, int64_t thread_registers, int64_t shared_bytes);
  bool CacheLongRows();
  bool FindOnlineLogsumexp();
  std::vector<const Instr*> NeededLast() const;

  const FusedRegion& region_;
  const Machine& machine_;
  CachedValues& cached_;
  ColumnSums& columns_;
  bool caches_;
  RowsTiling t_;
  int64_t widest_ = 1;                // lanes of the widest vector that the arrays allow
  int64_t registers_of_element_ = 0;  // that the cached values of an element take
};

}  // namespace tokamak::gpu
