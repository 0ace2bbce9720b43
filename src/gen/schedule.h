#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gen/generator_kind.h"
#include "support/result.h"

// A schedule says how a generator maps a region to loops, threads and memory. It is plain data:
// Schedules (generator.h) lists those that fit a region, BuildRegion emits the kernel of one, and
// the text form is what explain prints, --schedule reads and a tuner would exchange. Any schedule
// that fits a region computes the same values, up to the order of floating-point additions.
//
// kContract, kRows, kColumns and kLoop have schedules. Fields of kContract, for a dot of
// batch x (m x k) * (k x n):
//
//   field            CPU                                       GPU
//   tile             rows, columns and panel depth of a task   of a thread block
//   inner            rows and columns of one multiply          of a warp; with split_k > 1 of
//                    statement of kernel IR                    a thread
//   threads          1                                         threads per block
//   vector           lanes of a vector of sums                 elements per access of an operand
//   unroll           vectors per iteration of the epilogue     1
//   stages           1                                         panels in shared memory at once
//   split_k          1                                         slices of a panel along K, each
//                                                              summed by its own threads
//   tiles_per_task   row tiles of a chain's task, which        1
//                    share one packed rhs
//   group            1                                         row tiles whose blocks are adjacent
//                                                              in the grid: while they run, they
//                                                              share panels of rhs in the L2 cache
//   staging          memory, shared                            shared
//
// Tiles of a CPU dot with column groups have tile.columns columns of every group.
//
// Fields of kRows:
//
//   field            CPU                                       GPU
//   tile             rows per task, 1, elements of a row per   rows of a block at once, 1, elements
//                    iteration                                 of a row that its threads access per
//                                                              step
//   threads          1                                         threads per block, of all rows
//   vector           lanes of a 32-bit vector                  elements per access
//   unroll           vectors per iteration                     vectors in flight per thread; if a
//                                                              thread has no more, all are unrolled
//   staging          memory, registers                         memory, registers, shared
//
// Fields of kColumns, where a row is a range of adjacent results:
//
//   field            CPU                                       GPU
//   tile             1, results per task, 1                    1, results per block, threads of a
//                                                              result
//   inner            1, adjacent results of a row that are     1, vectors of a thread
//                    computed together
//   threads          1                                         threads per block
//   vector           lanes of a vector of results              elements per access
//   unroll           reduced elements per iteration, of a      reduced elements in flight per
//                    row with several vectors                  thread
//   staging          memory                                    memory
//
// Fields of kLoop. With a tile larger than 1, it is a tile of a transposed input:
//
//   field            CPU                                       GPU
//   tile             rows and columns of a task; 1, 1          rows and columns of a block, a
//                                                              square; 1, 1
//   threads          1                                         threads per block
//   vector           lanes of a vector                         elements per access
//   unroll           vectors per iteration; 1 with a tile      vectors of a thread in flight; 1
//                                                              with a tile
//   staging          memory; with a tile also registers: it    memory; with a tile shared: it is
//                    is squares of vector x vector, which      copied to shared memory
//                    are transposed in registers

namespace tokamak {

// Where a kernel reads operands or row elements from.
enum class Staging : uint8_t {
  // In place if the layout of the operand allows it, else as kShared. kRows: values are not cached
  // between passes over a row.
  kMemory,
  kRegisters,  // kRows, kLoop on CPUs: cached or transposed in registers
  kShared,     // copied to a panel: shared memory of a block, on CPUs memory of the
               // task. kRows: cached in registers and shared memory
  kBulk,       // kContract on GPUs: copied in bulk to shared memory, for asynchronous multiplies
};

// Defaults: 1 of each size and count, the structure of a kernel that is not divided in that way.
struct Schedule {
  GeneratorKind kind = GeneratorKind::kContract;
  int64_t tile_rows = 1, tile_columns = 1, tile_depth = 1;
  int64_t inner_rows = 1, inner_columns = 1;
  int64_t threads = 1;
  int64_t vector = 1;
  int64_t unroll = 1;
  int64_t stages = 1;
  int64_t split_k = 1;
  int64_t tiles_per_task = 1;
  int64_t group = 1;
  Staging staging = Staging::kShared;

  bool operator==(const Schedule&) const = default;
};

uint64_t HashOf(const Schedule& schedule);
// One line: "contract tile=128x128x16 inner=64x32 threads=256 vector=4 stages=2 staging=shared".
// Fields whose numbers are all 1 are omitted.
std::string ToString(const Schedule& schedule);
// The inverse of ToString; fields may be in any order. Returns TK6107 for an unknown or repeated
// field, and for a number that is not between 1 and kMaxScheduleNumber.
Result<Schedule> ParseSchedule(std::string_view text);
// Those of `near` that fit, without repetitions, after the preferred schedule `first`.
template <typename Fits>
std::vector<Schedule> FittingSchedules(const Schedule& first, const std::vector<Schedule>& near,
                                       Fits&& fits) {
  std::vector<Schedule> all = {first};
  for (const Schedule& schedule : near)
    if (std::find(all.begin(), all.end(), schedule) == all.end() && fits(schedule))
      all.push_back(schedule);
  return all;
}
// Whether a generator has schedules.
bool HasSchedules(GeneratorKind kind, bool is_gpu);
// Names a field that the generator does not use and that is not 1; empty if there is none.
std::string WhyNotFields(const Schedule& schedule, bool is_gpu);
// Chosen: far above any useful size, and products of three such numbers fit into 64 bits.
inline constexpr int64_t kMaxScheduleNumber = 1 << 20;

}  // namespace tokamak
