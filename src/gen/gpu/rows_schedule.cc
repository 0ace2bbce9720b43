#include "gen/gpu/rows_schedule.h"

#include <algorithm>

namespace tokamak::gpu {

namespace {

// Vectors per thread of a block that shares a row. Chosen: four loads in flight cover the memory
// latency; with more threads, the barriers of a reduction take longer.
constexpr int64_t kBlockSteps = 4;
// Minimum warps of such a block: with one, the row would be a warp's (structure of the choice).
constexpr int64_t kMinWarpsOfRow = 2;
// Divides kMaxThreadsPerBlock, or the registers for cached values. Chosen: a block of 1024 threads
// has 64 registers per thread (CUDA limit); one of 512 has twice as many, or two fit on an SM.
constexpr int64_t kRegisterShare = 2;
// Registers per thread for cached values; half of them in blocks of kMaxThreadsPerBlock. Chosen:
// 1024 threads have 64 registers each (CUDA limit).
constexpr int64_t kCachedRegisters = 64;
// Registers per thread for cached values and column sums, if more threads per row can reduce them
// to that. Chosen: with those of the loop, some 128 per thread, an SM still runs 512 threads.
constexpr int64_t kColumnRegisters = 96;
// Registers per thread for the accumulators of all lanes; above kFewRegisters only
// kMaxThreadsPerBlock / 2 threads share a row. Chosen: the 64 registers per thread of a full block
// must also hold the loads in flight; 48 would spill there.
constexpr int64_t kAccumulatorRegisters = 48, kFewRegisters = 24;

// Vectors in flight per thread if they are not all in registers. Chosen: as kBlockSteps. The
// maximum that a schedule may unroll bounds the choices of a tuner.
constexpr int64_t kRowsUnroll = 4, kRowsMaxUnroll = 16;
// Registers per thread for cached values that a schedule may use. Hardware: a thread has 255 (CUDA
// programming guide, compute capability 9.0); chosen: half of them.
constexpr int64_t kMaxCachedRegisters = 128;
// Online softmax: vectors that a thread has in registers, and threads per row. Chosen: several
// blocks fit on an SM.
constexpr int64_t kOnlineVectors = 8, kOnlineThreads = 512;

}  // namespace

std::vector<const Instr*> RowsTiling::LastRoots() const {
  std::vector<const Instr*> roots = region.roots;
  std::erase_if(roots, [&](const Instr* root) {
    return ResultShapesOf(root->shape())[0].ElementCount() == found.row_count;
  });
  return roots;
}

bool CanReassociate(const std::vector<Reducer>& level) {
  return std::all_of(level.begin(), level.end(),
                     [](const Reducer& reducer) { return reducer.can_reassociate; });
}

std::string RowsScheduler::Prepare(const Schedule* requested) {
  if (std::string why = Find(); !why.empty()) return why;
  if (std::string why = Prefer(); !why.empty()) return why;
  return requested == nullptr || *requested == Chosen() ? "" : Change(*requested);
}

Schedule RowsScheduler::Chosen() const {
  Schedule s{.kind = GeneratorKind::kRows};
  s.tile_rows = t_.block_rows;
  s.tile_depth = t_.threads * t_.lanes;
  s.threads = t_.block_rows * t_.threads;
  s.vector = t_.lanes;
  s.unroll = t_.unroll;
  s.staging = t_.cached_in_shared > 0   ? Staging::kShared
              : t_.cached_registers > 0 ? Staging::kRegisters
                                        : Staging::kMemory;
  return s;
}

// Finds the rows: those of the row reductions, or those of the column sums' operands.
std::string RowsScheduler::Find() {
  if (std::string why = columns_.Find(region_, t_.region); !why.empty()) return why;
  bool reduces = std::any_of(t_.region.instrs.begin(), t_.region.instrs.end(),
                             [](const Instr* instr) { return instr->op() == Op::kReduce; });
  if (columns_.empty() || reduces)
    if (std::string why = AnalyzeRowLevels(t_.region, t_.found); !why.empty()) return why;
  if (!columns_.empty()) {
    int64_t rows = columns_.outer() * columns_.reduced_rows();
    if (reduces && (t_.found.row_length != columns_.row_length() || t_.found.row_count != rows))
      return "its column sums are over other rows than its reductions";
    t_.found.row_count = rows;
    t_.found.row_length = columns_.row_length();
  }
  t_.dims = t_.found.levels.empty() ? columns_.operand(0).shape().dims()
                                    : t_.found.levels[0][0].input().dims();
  t_.split = t_.dims.size();
  for (int64_t row = 1; row < t_.found.row_length && t_.split > 0;) row *= t_.dims[--t_.split];
  if (ProductOf(t_.dims, t_.split, t_.dims.size()) != t_.found.row_length)
    return "its column sums reduce a transposed array";
  return "";
}

// Whether all roots are reductions and the region reads strided elements (one feature of each
// sample): threads then access memory closer together if each takes one element at a time.
bool RowsScheduler::ReadsStrided() const {
  auto reduces = [](const Instr* root) { return root->op() == Op::kReduce; };
  return std::all_of(region_.roots.begin(), region_.roots.end(), reduces) &&
         std::any_of(region_.instrs.begin(), region_.instrs.end(), [](const Instr* instr) {
           return instr->op() == Op::kSlice && instr->shape().dims().back() == 1 &&
                  instr->operand(0)->shape().dims().back() > 1;
         });
}

// Registers per lane for accumulators that are live at the same time.
int64_t RowsScheduler::AccumulatorRegisters() const {
  int64_t most = 0;
  for (const std::vector<Reducer>& level : t_.found.levels) {
    int64_t thread_registers = 0;
    for (const Reducer& reducer : level)
      for (size_t i = 0; i < reducer.input_count; ++i)
        thread_registers += CeilDiv(InfoOf(AccumulatorElementType(reducer.type(i))).bits, 32);
    most = std::max(most, thread_registers);
  }
  return most;
}

// Chooses the vector width and the threads of a row.
void RowsScheduler::PreferThreads(int64_t accumulator_registers) {
  widest_ = ReadsStrided() ? 1
                           : VectorWidthFor(region_, machine_, t_.found.row_length,
                                            t_.found.row_count * t_.found.row_length);
  t_.lanes = widest_;
  while (t_.lanes > 1 && accumulator_registers * t_.lanes > kAccumulatorRegisters) t_.lanes /= 2;
  t_.vectors = t_.found.row_length / t_.lanes;
  if (t_.vectors <= kWarpSize * kRowsWarpSteps) {
    t_.threads = std::min(kWarpSize, CeilPowerOfTwo(t_.vectors));
  } else {
    bool few = accumulator_registers * t_.lanes <= kFewRegisters;
    t_.threads =
        std::clamp(CeilPowerOfTwo(CeilDiv(t_.vectors, kBlockSteps)), kMinWarpsOfRow * kWarpSize,
                   few ? kMaxThreadsPerBlock : kMaxThreadsPerBlock / kRegisterShare);
  }
  while (!columns_.empty() && t_.threads < std::min(kMaxThreadsPerBlock, t_.vectors) &&
         CeilDiv(t_.vectors, t_.threads) * t_.lanes *
                 (columns_.thread_registers() + registers_of_element_) >
             kColumnRegisters)
    t_.threads *= 2;
}

// Chooses the rows that a block processes at once.
void RowsScheduler::PreferRows() {
  int64_t rows = columns_.empty() ? t_.found.row_count : columns_.reduced_rows();
  t_.block_rows = std::min(std::max<int64_t>(1, kBlockThreads / t_.threads), CeilPowerOfTwo(rows));
  while (columns_.empty() && t_.block_rows > 1 && rows < t_.block_rows * machine_.cores)
    t_.block_rows /= 2;
}

// Chooses the preferred schedule.
std::string RowsScheduler::Prefer() {
  bool can_reassociate =
      std::all_of(t_.found.levels.begin(), t_.found.levels.end(), CanReassociate);
  if (caches_ && can_reassociate)
    registers_of_element_ = cached_.Find(region_, t_.found, t_.dims, NeededLast());
  int64_t cached = registers_of_element_;
  PreferThreads(AccumulatorRegisters());
  PreferRows();
  t_.unroll = kRowsUnroll;
  bool is_long = cached > 0 && columns_.empty() && t_.threads == kMaxThreadsPerBlock;
  if (is_long && (CacheLongRows() || FindOnlineLogsumexp())) return "";
  t_.steps = CeilDiv(t_.vectors, t_.threads);
  t_.unrolled = t_.steps <= kRowsWarpSteps;
  if (t_.unrolled) t_.unroll = t_.steps;
  if (!columns_.empty() && (!t_.unrolled || !can_reassociate))
    return "its rows are too long for column sums";
  int64_t room =
      t_.threads == kMaxThreadsPerBlock ? kCachedRegisters / kRegisterShare : kCachedRegisters;
  if (cached > 0 && t_.unrolled && cached * t_.steps * t_.lanes <= room)
    t_.cached_registers = t_.steps * t_.lanes;
  return "";
}

// Changes the preferred schedule to another one. Returns why it does not fit.
std::string RowsScheduler::Change(const Schedule& to) {
  if (!columns_.empty()) return "column sums have a single schedule";
  if (std::string why = WhyNotShape(to); !why.empty()) return why;
  t_.online.reset();
  t_.lanes = to.vector;
  t_.threads = to.tile_depth / to.vector;
  t_.block_rows = to.tile_rows;
  t_.vectors = t_.found.row_length / t_.lanes;
  t_.steps = CeilDiv(t_.vectors, t_.threads);
  if (t_.threads > CeilPowerOfTwo(t_.vectors))
    return "tile: it has more threads than a row has vectors";
  if (to.unroll > std::min(t_.steps, kRowsMaxUnroll))
    return "unroll: more than the steps of a thread, or than " + std::to_string(kRowsMaxUnroll);
  t_.unroll = to.unroll;
  t_.unrolled = t_.steps <= t_.unroll;
  return ChangeStaging(to.staging);
}

std::string RowsScheduler::WhyNotShape(const Schedule& to) const {
  auto is_power = [](int64_t x) { return CeilPowerOfTwo(x) == x; };
  if (!is_power(to.vector) || to.vector > widest_)
    return "vector: not a power of two up to " + std::to_string(widest_);
  if (!is_power(to.tile_rows) || !is_power(to.tile_depth) || to.tile_depth < to.vector)
    return "tile: its sizes are powers of two, and a row has at least a vector";
  if (to.threads != to.tile_rows * (to.tile_depth / to.vector))
    return "threads: the tile has " + std::to_string(to.tile_rows * (to.tile_depth / to.vector));
  if (to.tile_rows > CeilPowerOfTwo(t_.found.row_count)) return "tile: there are fewer rows";
  return to.threads <= kMaxThreadsPerBlock
             ? ""
             : "threads: at most " + std::to_string(kMaxThreadsPerBlock);
}

std::string RowsScheduler::ChangeStaging(Staging to) {
  t_.cached_registers = t_.cached_in_shared = t_.register_steps = 0;
  if (to == Staging::kMemory) return "";
  if (registers_of_element_ == 0) return "staging: no value of a row is used in several passes";
  if (to == Staging::kShared) {
    for (const auto& [threads, thread_registers, bytes] : kLongRows)
      if (threads == t_.threads && t_.block_rows == 1 && CacheIn(threads, thread_registers, bytes))
        return "";
    return "staging: the rows do not fit in registers and shared memory, or have few threads";
  }
  if (!t_.unrolled) return "staging: not all vectors of a thread are unrolled";
  t_.cached_registers = t_.steps * t_.lanes;
  return registers_of_element_ * t_.cached_registers <= kMaxCachedRegisters
             ? ""
             : "staging: more than " + std::to_string(kMaxCachedRegisters) + " registers";
}

// Caches as much of a long row as possible in registers, the rest in shared memory. Returns
// whether it fits.
bool RowsScheduler::CacheIn(int64_t threads, int64_t thread_registers, int64_t shared_bytes) {
  int64_t steps = CeilDiv(t_.vectors, threads);
  int64_t in_registers = std::min(steps, thread_registers / (registers_of_element_ * t_.lanes));
  int64_t in_shared = (steps - in_registers) * t_.lanes;
  if (in_shared * threads * cached_.SharedBytes() > shared_bytes) return false;
  t_.threads = threads;
  t_.steps = steps;
  t_.register_steps = in_registers;
  t_.cached_registers = in_registers * t_.lanes;
  t_.cached_in_shared = in_shared * t_.threads;
  return true;
}

// Whether a long row fits in registers and shared memory. If it would need a whole SM, online
// softmax is preferred where it applies.
bool RowsScheduler::CacheLongRows() {
  for (const auto& [threads, thread_registers, bytes] : kLongRows) {
    if (threads == kMaxThreadsPerBlock && t_.LastRoots().empty() && FindOnlineLogsumexp())
      return true;
    if (CacheIn(threads, thread_registers, bytes)) return true;
  }
  return false;
}

// Whether one pass can compute both the row's maximum and the sum of exp(x - maximum).
bool RowsScheduler::FindOnlineLogsumexp() {
  const std::vector<std::vector<Reducer>>& levels = t_.found.levels;
  if (levels.size() != 2 || levels[0].size() != 1 || levels[1].size() != 1) return false;
  t_.online = OnlineSumExpOf(levels[1][0], levels[0][0]);
  if (!t_.online) return false;
  t_.threads = kOnlineThreads;
  t_.unroll = kOnlineVectors;
  t_.block_rows = 1;
  t_.steps = CeilDiv(t_.vectors, t_.threads);
  return true;
}

// Values whose elements the last pass over a row uses.
std::vector<const Instr*> RowsScheduler::NeededLast() const {
  std::vector<const Instr*> needed;
  for (const Instr* root : region_.roots)
    if (root->op() != Op::kReduce) needed.push_back(root);
  for (size_t i = 0; i < columns_.size(); ++i) needed.push_back(&columns_.operand(i));
  return needed;
}

}  // namespace tokamak::gpu
