#include "gen/top_k_schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "cost/work.h"
#include "gen/gpu/gpu.h"

namespace tokamak {
namespace {

// Maximum reductions of a top-k: they become one kernel. Chosen: bounds its size.
constexpr int64_t kMaxReductions = 8;
// Minimum elements of a group: a vector of 128 bits of 16-bit elements (hardware).
constexpr int64_t kMinGroup = 8;
// Operations per element of a reduction of 64-bit words (half as many for 32 bits): in registers,
// and in shared memory, which longer rows use from kRegisterRowBytes on. Operations of a gathered
// element. As the cost model (docs/cost_model.md) counts them. kRegisterRowBytes: 1024 threads with
// 32 registers for cached values hold the 64-bit words of 16 K elements of 4 bytes (counted).
constexpr double kReduceOps = 8, kSharedReduceOps = 16, kGatherOps = 55;
constexpr double kRegisterRowBytes = 64 << 10;
// Bytes of a line that a kernel keeps in shared memory and registers between reductions; longer
// lines are read again.
constexpr double kCachedBytes = gpu::kLongRows[1].Bytes();
// Threads of a block of gpu/rows.cc, maximum and for several short rows.
constexpr double kReduceThreads = kMaxThreadsPerBlock, kWarpBlock = gpu::kBlockThreads;
// Elements per thread: four vectors of four (kBlockSteps of gpu/rows_schedule.cc, structure).
constexpr double kElementsPerThread = 16;
// Bytes of an access (hardware), and those that a warp reads in the iterations of a short row,
// which it does not cache.
constexpr int64_t kAccessBytes = 16;
constexpr double kWarpRowBytes = gpu::kRowsWarpSteps * gpu::kWarpSize * kAccessBytes;

class TopKCost {
 public:
  explicit TopKCost(const Machine& machine) : machine_(machine) {}

  double MicrosOf(const TopKSize& size, const TopKSchedule& schedule) {
    switch (schedule.method) {
      case TopKMethod::kReductions:
        return Reductions(size.words, static_cast<double>(size.k), !size.in_order);
      case TopKMethod::kSort: {
        SortSize words = WordsToSort(size);
        SortSchedule sort = CheapestOf(WordSortSchedules(words, machine_), words, machine_);
        return tokamak::MicrosOf(words, sort, machine_);
      }
      case TopKMethod::kGroups:
        break;
    }
    TopKSize least = size, elements = size;
    least.words.length = CeilDiv(size.words.length, schedule.group);
    least.words.bytes = size.words.word_bits / 8;
    elements.words.length = size.k * schedule.group;
    elements.in_order = false;
    return Reductions(size.words, 1, false) + Cheapest(least).micros + Cheapest(elements).micros;
  }

  struct Choice {
    TopKSchedule schedule;
    double micros = 0;
  };
  Choice Cheapest(const TopKSize& size) {
    auto [known, is_new] = choices_.try_emplace({size.words.length, size.in_order});
    if (!is_new) return known->second;
    std::optional<Choice> best;
    for (const TopKSchedule& schedule : TopKSchedules(size))
      if (double micros = MicrosOf(size, schedule); !best || micros < best->micros)
        best = {schedule, micros};
    return choices_[{size.words.length, size.in_order}] = *best;
  }

 private:
  // `gathered`: elements are gathered, again for each reduction if they are not cached.
  double Reductions(const SortSize& words, double count, bool gathered) const {
    auto lines = static_cast<double>(words.lines), length = static_cast<double>(words.length);
    double row_bytes = length * static_cast<double>(words.bytes);
    bool one_warp = row_bytes <= kWarpRowBytes;
    Work work;
    work.threads =
        one_warp ? std::min<double>(kWarpBlock, lines * gpu::kWarpSize)
                 : std::clamp<double>(length / kElementsPerThread, gpu::kWarpSize, kReduceThreads);
    work.tasks = one_warp ? std::ceil(lines * gpu::kWarpSize / kWarpBlock) : lines;
    work.reads = lines * row_bytes;
    if (row_bytes > kCachedBytes) work.memory_rereads = work.reads * (count - 1);
    double ops = count * (row_bytes > kRegisterRowBytes ? kSharedReduceOps : kReduceOps);
    if (words.word_bits <= 32) ops /= 2;
    if (gathered) ops += kGatherOps * (one_warp ? count : 1);
    work[Pipe::kSimple] = lines * length * ops;
    // A few long lines are split over the SMs (split-reductions), one reduction after another.
    double blocks = std::floor(std::min(static_cast<double>(machine_.cores) / lines,
                                        length / kReduceThreads / kElementsPerThread));
    if (blocks < 2) return EstimateCost(work, machine_).all;
    work.tasks *= blocks;
    Work combine{.tasks = lines};
    return EstimateCost(work, machine_).all + (2 * count - 1) * EstimateCost(combine, machine_).all;
  }

  const Machine& machine_;
  std::map<std::pair<int64_t, bool>, Choice> choices_;  // by length and in_order
};

}  // namespace

SortSize WordsToSort(const TopKSize& size) {
  SortSize words = size.words;
  words.compares_words = true;
  if (!size.in_order) words.key_bits += size.index_bits;
  return words;
}

std::string ToString(const TopKSchedule& schedule) {
  if (schedule.method == TopKMethod::kReductions) return "reductions";
  if (schedule.method == TopKMethod::kSort) return "sort";
  return "groups of " + std::to_string(schedule.group);
}

std::vector<TopKSchedule> TopKSchedules(const TopKSize& size) {
  std::vector<TopKSchedule> all;
  if (size.k <= kMaxReductions) all.push_back({TopKMethod::kReductions});
  all.push_back({TopKMethod::kSort});
  // The parts are at most half as long.
  for (int64_t group = kMinGroup; size.in_order && 2 * size.k * group <= size.words.length;
       group *= 2)
    all.push_back({TopKMethod::kGroups, group});
  return all;
}

double MicrosOf(const TopKSize& size, const TopKSchedule& schedule, const Machine& machine) {
  return TopKCost(machine).MicrosOf(size, schedule);
}

TopKSchedule ChooseTopK(const TopKSize& size, const Machine& machine) {
  return TopKCost(machine).Cheapest(size).schedule;
}

}  // namespace tokamak
