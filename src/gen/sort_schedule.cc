#include "gen/sort_schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "cost/work.h"
#include "gen/gpu/gpu.h"
#include "gen/sorting_network.h"
#include "support/check.h"

namespace tokamak {
namespace {

// ---- sizes of kernels

// GPU merge sorts of a tile in shared memory. Elements per thread. Chosen: each repays a binary
// search per pass, and more would not stay in registers. Threads per block if lines are short:
// kBlockThreads. Maximum elements of a tile. Chosen: the positions and keys of several blocks fit
// in the shared memory of an SM. Minimum. Chosen: below, merging in memory takes over too early.
constexpr int64_t kTileItems = 8, kTileThreads = gpu::kBlockThreads, kMaxTile = 2048,
                  kMinTile = 256;
// Of sorted halves in global memory: elements and threads per block. Chosen: a thread's elements
// repay its search in global memory; small blocks even out searches of unequal length.
constexpr int64_t kHalvesItems = 16, kHalvesThreads = 128;
// Bytes of shared memory that a radix sort uses for its words. Chosen: counters and sums take the
// rest of kStaticSharedBytes.
constexpr int64_t kWordBytes = 32 << 10;

// GPU radix sorts of lines: bits per pass. Chosen: 16 digits fit a thread's packed counters; one
// more bit doubles them. Words per thread, and their minimum for short lines. Chosen: they repay
// the scan of a pass. Threads per block. Chosen: more would take longer in each of its barriers.
constexpr int kLineDigitBits = 4;
constexpr int64_t kLineItems = 16, kMinLineItems = 8, kMinLineThreads = gpu::kWarpSize,
                  kMaxLineThreads = 512;
// GPU radix sorts by segments: maximum bits per digit. Chosen: a thread of a block has one of the
// 256 digit values. Bytes of words per thread. Chosen: 16 registers, which leave an SM full.
// Minimum number of words. Chosen: fewer would not repay the counts of a segment.
constexpr int kSegmentDigitBits = 8;
constexpr int64_t kSegmentThreads = int64_t{1} << kSegmentDigitBits, kSegmentItemBytes = 64,
                  kMinSegmentItems = 4;

// GPU sorting networks: registers for all lines of a thread (a single line may need more). Chosen:
// with the temporaries of an exchange, an SM stays full. Maximum lines per thread. Chosen: adjacent
// lines of 4 bytes fill the widest access.
constexpr int64_t kNetworkRegisters = 32, kNetworkLines = 4;

// CPU merge sorts: elements whose positions, double-buffered, fit in local memory. Chosen: 64 KiB,
// a quarter of the stack that a kernel may use (twice kMaxCachedBytes of rows_body.cc).
constexpr int64_t kMaxCpuLength = 8192;

int LogOf(int64_t count) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1)));
}
int PassesOf(int bits, int digit_bits) {
  return static_cast<int>(CeilDiv(bits, digit_bits));
}

// ---- network

SortSchedule NetworkSchedule(const FusedRegion& region, const Machine& machine) {
  LineSort sort = LineSortOf(*region.roots[0]);
  SortSchedule schedule{.method = SortMethod::kNetwork, .tile = sort.length, .items = sort.length};
  int64_t inner = ProductOf(sort.dims, sort.along + 1, sort.dims.size());
  if (!machine.is_gpu()) {
    int64_t bytes = 1, run = inner > 1 ? inner : sort.lines;
    for (const Instr* operand : sort.instr->operands())
      bytes = std::max(bytes, BytesOf(ComputeType(operand->shape().type())));
    schedule.lines = machine.Lanes(8 * bytes);
    while (schedule.lines > run) schedule.lines /= 2;
    schedule.vector = schedule.lines;
    return schedule;
  }
  int64_t count = sort.lines * sort.length, registers = SortingNetwork::RegistersFor(sort);
  auto width = [&](int64_t contiguous) {
    return gpu::VectorWidthFor(region, machine, contiguous, count);
  };
  if (inner > 1) {
    schedule.lines = width(inner);
    while (schedule.lines > 1 && schedule.lines * registers > kNetworkRegisters)
      schedule.lines /= 2;
    schedule.vector = schedule.lines;
  } else {
    while (width(schedule.lines * sort.length) < width(count) && schedule.lines < kNetworkLines &&
           sort.lines % (2 * schedule.lines) == 0 &&
           2 * schedule.lines * registers <= kNetworkRegisters)
      schedule.lines *= 2;
    schedule.vector = width(schedule.lines * sort.length);
  }
  schedule.threads = gpu::BlockSizeFor(sort.lines / schedule.lines, gpu::kBlockThreads,
                                       gpu::kFewBlockThreads, machine);
  return schedule;
}

// ---- merge

// The longest tile that fits in shared memory, with two buffers of positions.
int64_t MaxTileOf(const SortSize& size) {
  int64_t bytes = 2 * BytesOf(ScalarType::kS32) + size.compared_bytes, tile = kMaxTile;
  while (tile > kMinTile && tile * bytes > kStaticSharedBytes) tile /= 2;
  return tile;
}

// Of lines that fit into a tile, or of their tiles.
SortSchedule TileSchedule(const SortSize& size) {
  int64_t tile = std::max(kTileItems, std::min(gpu::CeilPowerOfTwo(size.length), MaxTileOf(size)));
  int64_t threads = tile / kTileItems;
  int64_t lines = size.lines * CeilDiv(size.length, tile);
  return {
      .method = SortMethod::kMerge,
      .tile = tile,
      .threads = threads,
      .items = kTileItems,
      .lines = std::min(std::max<int64_t>(1, kTileThreads / threads), gpu::CeilPowerOfTwo(lines))};
}

SortSchedule HalvesSchedule(int64_t length) {
  return {.method = SortMethod::kMerge,
          .in_memory = true,
          .tile = length,
          .threads = kHalvesThreads,
          .items = kHalvesItems};
}

// ---- radix

std::optional<SortSchedule> LineRadixSchedule(const SortSize& size) {
  int64_t tile = std::max(gpu::CeilPowerOfTwo(size.length), kMinLineThreads * kMinLineItems);
  if (size.word_bits == 0 ||
      tile > std::min(kWordBytes / (size.word_bits / 8), kMaxLineThreads * kLineItems))
    return std::nullopt;
  int64_t threads = std::max(tile / kLineItems, kMinLineThreads);
  return SortSchedule{.method = SortMethod::kRadix,
                      .tile = tile,
                      .threads = threads,
                      .items = tile / threads,
                      .digit_bits = kLineDigitBits};
}

SortSchedule SegmentRadixSchedule(const SortSize& size, const Machine& machine) {
  int64_t items = kSegmentItemBytes / (size.word_bits / 8);
  while (items > kMinSegmentItems &&
         size.lines * size.length < items * kSegmentThreads * machine.cores)
    items /= 2;
  int digits = PassesOf(size.key_bits, kSegmentDigitBits);
  return {.method = SortMethod::kRadix,
          .by_segments = true,
          .tile = items * kSegmentThreads,
          .threads = kSegmentThreads,
          .items = items,
          .digit_bits = PassesOf(size.key_bits, digits)};
}

// Whether an instruction is the radix scatter of a segment schedule, and that schedule.
std::optional<SortSchedule> ScatterScheduleOf(const Instr& sort) {
  std::optional<RadixKey> key = RadixKeyOf(sort);
  if (!key || sort.captures() != 1 || key->bits > kSegmentDigitBits) return std::nullopt;
  const Shape &words = sort.operand(0)->shape(), &starts = sort.operand(1)->shape();
  if (words.rank() != 2 || LineSortOf(sort).along != 1 || !IsPlainArray(starts) ||
      starts.type() != ElementType::kS32 || starts.rank() != words.rank() + 1 ||
      starts.dim(0) != words.dim(0) || starts.dim(1) != int64_t{1} << key->bits)
    return std::nullopt;
  int64_t segments = starts.dim(2), segment = words.dim(1) / std::max<int64_t>(segments, 1);
  int64_t items = segment / kSegmentThreads;
  if (segments * segment != words.dim(1) || items * kSegmentThreads != segment ||
      items < kMinSegmentItems || items > kSegmentItemBytes / BytesOf(words.type()) ||
      !std::has_single_bit(static_cast<uint64_t>(items)))
    return std::nullopt;
  return SortSchedule{.method = SortMethod::kRadix,
                      .by_segments = true,
                      .tile = segment,
                      .threads = kSegmentThreads,
                      .items = items,
                      .digit_bits = key->bits};
}

// ---- cost

// Operations of the simple pipe. kTileOps: per element and merge pass of a tile. kHalvesOps: per
// step of a search or merge in global memory. kLineOps, kWideLineOps: per word of 32 or 64 bits and
// pass of a line radix sort. The others: per word, and per thread, of the two kernels of a digit of
// a segment radix sort. As the cost model (docs/cost_model.md) counts them in these kernels.
constexpr double kTileOps = 185, kHalvesOps = 67, kLineOps = 72, kWideLineOps = 96;
constexpr double kHistogramOps = 40, kHistogramThreadOps = 900;
constexpr double kScatterOps = 97, kScatterThreadOps = 350;
// Nanoseconds of an SM per element and merge pass of a tile: measured on an H200, a pass over four
// million words takes 40 to 55 us. The counted operations alone would take half of that.
constexpr double kTileNs = 1.48, kUsPerNs = 1e-3;
// Operations per exchange of a network and operand: a comparison, two selects and a move (counted).
constexpr double kExchangeOps = 4;
// Threads of the blocks of a digit's histogram and of an elementwise kernel.
constexpr double kHistogramThreads = gpu::kHistogramThreads, kSortLoopThreads = gpu::kBlockThreads;
// Block barriers per pass of a line radix sort (counted in gpu/radix_sort.cc).
constexpr double kLineBarriers = 4;

// CPU, on one core. Microseconds per element and per key or operand of the runtime's sort
// (measured: 0.015 to 0.019 for one operand, 0.023 for two), and per element and merge pass of a
// kernel (measured: 0.01, because branches are mispredicted).
constexpr double kRuntimeUs = 0.008, kMergeUs = 0.01;
// Microseconds to compile a kernel on a CPU: per operand, and for each exchange of a network
// (measured on two cores: 12 ms for 3 elements, 38 ms for 8, 95 ms for 16). Executions that are
// expected of a program: chosen, so that a network of 3 elements is compiled for 150 lines.
constexpr double kCompileUs = 10000, kCompileExchangeUs = 1300, kExecutions = 1500;

// Exchanges of the network of a line: without payload Batcher's, else odd-even transposition
// (sorting_network.cc).
double ExchangesOf(const SortSize& size) {
  auto length = static_cast<double>(size.length);
  double all = length * (length - 1) / 2, steps = std::log2(length);
  return size.operands == 1 ? std::min(all, length / 2 * (steps * (steps + 1) / 2)) : all;
}

// A kernel of one GPU launch that reads and writes `bytes` each.
double GpuKernelMicros(double tasks, double threads, double bytes, double ops, double barriers,
                       const Machine& machine) {
  Work work;
  work.tasks = std::ceil(tasks);
  work.threads = threads;
  work.reads = work.writes = bytes;
  work[Pipe::kSimple] = ops;
  work.barriers = barriers;
  return EstimateCost(work, machine).all;
}

class GpuSortCost {
 public:
  GpuSortCost(const SortSize& size, const SortSchedule& schedule, const Machine& machine)
      : schedule_(schedule),
        machine_(machine),
        size_(size),
        lines_(static_cast<double>(size.lines)),
        length_(static_cast<double>(size.length)),
        tile_(static_cast<double>(schedule.tile)),
        bytes_(lines_ * length_ * static_cast<double>(size.bytes)) {}

  double Micros() const {
    double micros = 0;
    switch (schedule_.method) {
      case SortMethod::kNetwork:
        micros = Network();
        break;
      case SortMethod::kMerge:
        micros = schedule_.in_memory ? Halves(length_) : Merge();
        break;
      case SortMethod::kRadix:
        micros = schedule_.by_segments ? Segments() : Lines();
        break;
    }
    return schedule_.packs_keys ? micros + Unpack() : micros;
  }

 private:
  double Words() const { return lines_ * length_ * size_.word_bits / 8; }
  double Threads() const { return static_cast<double>(schedule_.threads); }

  double Network() const {
    double exchanges = lines_ * ExchangesOf(size_);
    double tasks = lines_ / static_cast<double>(schedule_.lines) / Threads();
    double ops = exchanges * kExchangeOps * static_cast<double>(size_.operands);
    return GpuKernelMicros(tasks, Threads(), bytes_, ops, 0, machine_);
  }

  // Tiles, then merges of pairs of tiles.
  double Merge() const {
    double passes = LogOf(schedule_.tile), tiles = std::ceil(length_ / tile_);
    auto block_lines = static_cast<double>(schedule_.lines);
    double elements = lines_ * tiles * tile_ * passes;
    double micros = GpuKernelMicros(lines_ * tiles / block_lines, Threads() * block_lines, bytes_,
                                    elements * kTileOps, passes, machine_);
    micros = std::max(micros, elements * (kTileNs * kUsPerNs) /
                                  static_cast<double>(std::max<int64_t>(machine_.cores, 1)));
    for (double width = 2 * tile_; width < 2 * tiles * tile_ && tiles > 1; width *= 2)
      micros += Halves(width);
    return micros;
  }
  double Halves(double width) const {
    double chunks = lines_ * length_ / static_cast<double>(kHalvesItems);
    double steps = std::log2(width) + static_cast<double>(kHalvesItems);
    return GpuKernelMicros(chunks / static_cast<double>(kHalvesThreads),
                           static_cast<double>(kHalvesThreads), bytes_, chunks * steps * kHalvesOps,
                           0, machine_);
  }

  double Lines() const {
    double passes = PassesOf(size_.key_bits, schedule_.digit_bits);
    double ops = size_.word_bits <= 32 ? kLineOps : kWideLineOps;
    return GpuKernelMicros(lines_, Threads(), Words(), lines_ * tile_ * passes * ops,
                           passes * kLineBarriers, machine_);
  }

  // Per digit a histogram, two scans and the scatter pass.
  double Segments() const {
    double digits = PassesOf(size_.key_bits, schedule_.digit_bits);
    double blocks = lines_ * std::ceil(length_ / tile_), words = blocks * tile_;
    double counts = blocks * std::exp2(schedule_.digit_bits) * sizeof(uint32_t);
    double scatter_ops = words * kScatterOps + blocks * Threads() * kScatterThreadOps;
    double count_ops = words * kHistogramOps + blocks * kHistogramThreads * kHistogramThreadOps;
    double micros = GpuKernelMicros(blocks, Threads(), Words(), scatter_ops, 0, machine_);
    micros += GpuKernelMicros(blocks, kHistogramThreads, Words() / 2, count_ops, 0, machine_);
    micros += 2 * GpuKernelMicros(blocks, kSortLoopThreads, counts, 0, 0, machine_);
    return digits * micros;
  }

  // An elementwise kernel makes the operands from the words.
  double Unpack() const {
    return GpuKernelMicros(lines_ * length_ / kSortLoopThreads, kSortLoopThreads,
                           (Words() + bytes_) / 2, 0, 0, machine_);
  }

  SortSchedule schedule_;
  const Machine& machine_;
  const SortSize& size_;
  double lines_, length_, tile_, bytes_;
};

double CpuMicros(const SortSize& size, const SortSchedule& schedule, const Machine& machine) {
  auto lines = static_cast<double>(size.lines), length = static_cast<double>(size.length);
  auto operands = static_cast<double>(size.operands);
  Work work;
  work.reads = work.writes = lines * length * static_cast<double>(size.bytes);
  switch (schedule.method) {
    case SortMethod::kRadix:
      return lines * length * (operands + static_cast<double>(size.keys)) * kRuntimeUs;
    case SortMethod::kMerge:
      return lines * length * LogOf(size.length) * kMergeUs + kCompileUs / kExecutions;
    case SortMethod::kNetwork: {
      double exchanges = ExchangesOf(size);
      work.tasks = std::ceil(lines / static_cast<double>(schedule.lines));
      work[Pipe::kSimple] = work.tasks * exchanges * kExchangeOps * operands;
      double compile = operands * (kCompileUs + exchanges * kCompileExchangeUs);
      return EstimateCost(work, machine).all + compile / kExecutions;
    }
  }
  return 0;
}

}  // namespace

std::string ToString(const SortSchedule& schedule) {
  constexpr std::string_view kNames[] = {"network", "merge", "radix"};
  std::string text(kNames[static_cast<size_t>(schedule.method)]);
  if (schedule.packs_keys) text += " packed";
  if (schedule.in_memory) text += " in_memory";
  if (schedule.by_segments) text += " by_segments";
  auto add = [&](std::string_view name, int64_t value, int64_t usual) {
    if (value != usual) text += " " + std::string(name) + "=" + std::to_string(value);
  };
  add("tile", schedule.tile, 0);
  add("threads", schedule.threads, 1);
  add("items", schedule.items, 1);
  add("lines", schedule.lines, 1);
  add("vector", schedule.vector, 1);
  add("digit_bits", schedule.digit_bits, 0);
  return text;
}

SortSize SizeOf(const Instr& sort) {
  LineSort line = LineSortOf(sort);
  SortSize size{.lines = line.lines, .length = line.length};
  size.operands = static_cast<int64_t>(sort.operand_count() - sort.captures());
  for (size_t k = 0; k < sort.operand_count() - sort.captures(); ++k) {
    ElementType type = sort.operand(k)->shape().type();
    size.bytes += BytesOf(type);
    if (line.ComparatorUses(k))
      size.compared_bytes += BytesOf(ComputeType(type)) * (IsComplex(type) ? 2 : 1);
  }
  if (std::optional<std::vector<OperandKey>> keys = KeysOf(sort))
    size.keys = static_cast<int64_t>(keys->size());
  if (std::optional<RadixKey> key = RadixKeyOf(sort)) {
    size.word_bits = InfoOf(sort.operand(0)->shape().type()).bits;
    size.key_bits = key->bits;
  } else if (std::optional<PackedKey> packed = PackedKeyOf(sort)) {
    size.word_bits = InfoOf(packed->word).bits;
    size.key_bits = packed->key_bits;
  }
  return size;
}

std::vector<SortSchedule> SortKernelSchedules(const FusedRegion& region, const Machine& machine) {
  const Instr& sort = *region.roots[0];
  if (machine.is_gpu())
    if (std::optional<SortSchedule> scatter = ScatterScheduleOf(sort)) return {*scatter};
  if (WhyNoComparatorCode(sort)) return {};
  SortSize size = SizeOf(sort);
  std::vector<SortSchedule> all;
  if (IsNetworkSort(sort)) all.push_back(NetworkSchedule(region, machine));
  if (!machine.is_gpu()) {
    if (size.length <= kMaxCpuLength)
      all.push_back({.in_memory = true, .tile = size.length, .items = size.length});
    return all;
  }
  if (size.length > std::numeric_limits<int32_t>::max()) return all;
  if (std::optional<SortSchedule> radix = LineRadixSchedule(size);
      radix && radix->tile == size.length && RadixKeyOf(sort))
    all.push_back(*radix);
  if (HasSortedHalves(sort)) {
    all.push_back(HalvesSchedule(size.length));
  } else if (size.length <= MaxTileOf(size)) {
    all.push_back(TileSchedule(size));
  }
  return all;
}

std::vector<SortSchedule> WordSortSchedules(const SortSize& words, const Machine& machine) {
  std::vector<SortSchedule> all;
  if (words.compares_words && words.length > 1 && words.length <= kMaxNetworkLength)
    all.push_back({.method = SortMethod::kNetwork,
                   .tile = words.length,
                   .threads = gpu::kFewBlockThreads,
                   .items = words.length});
  if (std::optional<SortSchedule> line = LineRadixSchedule(words)) all.push_back(*line);
  all.push_back(SegmentRadixSchedule(words, machine));
  if (words.length <= std::numeric_limits<int32_t>::max() / 2) all.push_back(TileSchedule(words));
  return all;
}

std::vector<SortSchedule> SortSchedules(const Instr& sort, const Machine& machine) {
  FusedRegion region;
  region.instrs = region.roots = {&sort};
  region.inputs = {sort.operands().begin(), sort.operands().end()};
  std::vector<SortSchedule> all = SortKernelSchedules(region, machine);
  if (!HasPlainOperands(sort)) return all;
  if (!machine.is_gpu()) {
    if (KeysOf(sort)) all.push_back({.method = SortMethod::kRadix});
    return all;
  }
  SortSize size = SizeOf(sort);
  if (IsMergedLater(sort)) return all;
  if (size.lines * size.length <= std::numeric_limits<int32_t>::max() / 2 && PackedKeyOf(sort))
    for (SortSchedule schedule : WordSortSchedules(size, machine)) {
      schedule.packs_keys = true;
      if (schedule.method == SortMethod::kRadix) all.push_back(schedule);
    }
  if (size.length > MaxTileOf(size) && size.length <= std::numeric_limits<int32_t>::max() / 2 &&
      !HasSortedHalves(sort) && !WhyNoComparatorCode(sort))
    all.push_back(TileSchedule(size));
  return all;
}

double MicrosOf(const SortSize& size, const SortSchedule& schedule, const Machine& machine) {
  if (!machine.is_gpu()) return CpuMicros(size, schedule, machine);
  return GpuSortCost(size, schedule, machine).Micros();
}

SortSchedule CheapestOf(const std::vector<SortSchedule>& schedules, const SortSize& size,
                        const Machine& machine) {
  TOK_CHECK(!schedules.empty(), "a sort without a schedule");
  return *std::ranges::min_element(schedules, {}, [&](const SortSchedule& schedule) {
    return MicrosOf(size, schedule, machine);
  });
}

}  // namespace tokamak
