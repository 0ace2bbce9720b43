#include "gen/gpu/tensor_tiling.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "cost/panel_rates.h"
#include "cost/rates.h"
#include "cost/units.h"
#include "gen/dot_operand.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/tensor_epilogue.h"
#include "gen/library/dot.h"

namespace tokamak::gpu {
namespace {

struct TileChoice {
  int64_t rows, columns, inner_rows, warpgroups, stages;
};
// Tiles of preferred schedules: rows and columns of results, warpgroups, panels in shared memory.
// Larger tiles take less of its bandwidth. Elements. Chosen: what the accumulators and shared
// memory of an SM hold (128 x 256, with 4 panels), and the steps down to fewer results that fill
// the SMs with the tiles of a smaller dot.
constexpr std::array kTileChoices = {
    TileChoice{128, 256, 64, 2, 4},  TileChoice{128, 192, 64, 2, 5},
    TileChoice{128, 160, 64, 2, 5},  TileChoice{256, 128, 128, 2, 4},
    TileChoice{128, 128, 128, 2, 6}, TileChoice{64, 256, 64, 2, 5},
    TileChoice{128, 128, 64, 2, 6},  TileChoice{64, 128, 64, 2, 8},
    TileChoice{128, 64, 128, 2, 8},  TileChoice{128, 64, 64, 2, 8},
    TileChoice{64, 64, 64, 2, 8},    TileChoice{64, 64, 64, 1, 8},
    TileChoice{64, 32, 64, 1, 8}};
// K of about this size is lost while a block stores the results of a tile. Measured on H200: 2.5 us
// for a tile of 128 x 256 (8192 x 3072 x 768 bf16, K of 230), of which the adjacent tiles hide
// some.
constexpr double kTileOverheadDepth = 200;
// Minimum rows, columns and K. Chosen: below, most of a 64 x 32 tile or of a panel is padding.
constexpr int64_t kMinTensorRows = 33, kMinTensorColumns = 17, kMinTensorDepth = 33;
// Of 8-bit factors. Chosen: other kernels multiply them as 32-bit ones, so that a tile which is
// mostly padding is faster. A matrix of fewer rows is read by a kernel that reduces its rows.
constexpr int64_t kMinByteSide = 9;
// Row tiles that are walked together, so that their rows of rhs are read from L2 once. Chosen: at
// 128 rows per tile, 8 of them and their columns fit L2 for K up to 8192.
constexpr int64_t kTensorGroup = 8;
// Registers of a warpgroup's thread that hold sums. Hardware: 232 are available; the rest is for
// addresses and the results' consumers.
constexpr int64_t kMaxTensorSums = 128;
// The same if as many registers hold the sums of a panel. Hardware: both fit beside the addresses;
// the sums of a panel are not live beside the results' consumers.
constexpr int64_t kMaxPartialSums = 96;
// Warpgroups that have tiles of their own: one multiplies, the other one stores.
constexpr int64_t kAlternatingWarpgroups = 2;

// Stages that are not given up for arrays that results are combined with. Chosen: two panels come
// while one is multiplied.
constexpr int64_t kStagesBesideResults = 3;
// Results of a thread for which it loads such an array at once (TensorResults).
constexpr int64_t kResultsOfLoad = 4;
// Raw panels at least and at most. Chosen: one is copied while another one is converted; with two
// copies in flight, their latency does not show.
constexpr int64_t kMinRawStages = 2, kMaxRawStages = 3;
// Elements that a producer's thread moves in the time of one f32 that is transposed. 16-bit
// elements that become f32, measured on H200: 4096 x 4096 x 4096 takes 1020 us, with f32 677.
// Factors that are split: two stores; not measured.
constexpr double kWidenedHalves = 0.5, kSplitFactors = 0.5;
// Panels in shared memory at least: one is multiplied while another one is filled (definition).
constexpr int64_t kLeastStages = 2;
// Bytes of an mbarrier (PTX ISA).
constexpr int64_t kMbarrierBytes = 8;

int64_t StageBytes(const TensorTiling& t) {
  return (t.rows * t.form.parts[0] + t.LoadedColumns() * t.form.parts[1]) * t.depth *
         t.form.bytes();
}

// Bytes of the raw panels of all converted operands.
int64_t RawStageBytes(const TensorTiling& t) {
  int64_t bytes = 0;
  for (const TensorOperand* operand : {&t.lhs, &t.rhs})
    if (operand->source == PanelSource::kConverted)
      bytes +=
          (operand == &t.lhs ? t.rows : t.LoadedColumns()) * t.depth * BytesOf(operand->stored);
  return bytes;
}

int64_t SharedBytes(const TensorTiling& t) {
  // Mbarriers: two per stage, one per warpgroup.
  return MatrixMultiply::kPanelAlignment + t.stages * StageBytes(t) +
         t.raw_stages * RawStageBytes(t) +
         (2 * (t.stages + t.raw_stages) + t.warpgroups) * kMbarrierBytes;
}

std::string WhyNotSizes(const TensorTiling& t, const Schedule& s) {
  if (t.rows % t.inner_rows != 0 || t.inner_rows % kWarpgroupRows != 0)
    return "inner: not a multiple of the 64 rows of a warpgroup that divides the tile";
  if (t.Alternates() && t.WarpgroupsOfTile() > 1)
    return "threads: only warpgroups that have a whole tile alternate";
  if (s.inner_columns != t.columns) return "inner: a warpgroup has all columns of the tile";
  if (t.columns % kResultColumns != 0 || t.columns > TileCopy::kMaxBox ||
      t.rows > TileCopy::kMaxBox)
    return "tile: not a multiple of 32 columns up to 256, or more than 256 rows";
  if (t.depth != t.line()) return "tile: its depth is not 128 bytes";
  if (!t.lhs.panels_are_k_major && t.rows % t.line() != 0)
    return "tile: its rows are not full panels";
  for (const TensorOperand* operand : {&t.lhs, &t.rhs})
    if (operand->source == PanelSource::kConverted && !operand->is_k_major &&
        (operand == &t.lhs ? t.rows : t.LoadedColumns()) % operand->RawLine() != 0)
      return "tile: its rows or columns are not full panels of an array that is converted";
  int64_t sums = t.form.HasPartialSums() ? kMaxPartialSums : kMaxTensorSums;
  if (t.AccumulatorsPerThread() > sums)
    return "inner: a thread's sums take more than " + std::to_string(sums) + " registers";
  if (t.threads() != s.threads || t.warpgroups < t.WarpgroupsOfTile() ||
      t.warpgroups > std::max<int64_t>(t.WarpgroupsOfTile(), kAlternatingWarpgroups))
    return "threads: not those of the producer and the tile's warpgroups, or of two that alternate";
  if (t.threads() > kMaxThreadsPerBlock) return "threads: a block has at most 1024";
  return t.stages >= kLeastStages ? "" : "stages: at least 2";
}

// Bytes of shared memory that copies and conversions write and read, and that multiplies read, per
// K of a tile.
double PanelBytesPerDepth(const TileChoice& choice, const TensorTiling& t) {
  int64_t bytes = 0;
  for (const TensorOperand* operand : {&t.lhs, &t.rhs}) {
    bool is_lhs = operand == &t.lhs;
    int64_t along = is_lhs                        ? choice.rows
                    : operand->panels_are_k_major ? choice.columns
                                                  : RoundUp(choice.columns, t.line());
    bytes += along * t.form.parts[is_lhs ? 0 : 1] * t.form.bytes();
    if (operand->source == PanelSource::kConverted) bytes += 2 * along * BytesOf(operand->stored);
  }
  int64_t multiplied = choice.rows / kWarpgroupRows * (kWarpgroupRows + choice.columns);
  return static_cast<double>(bytes + t.form.Products() * multiplied * t.form.bytes());
}

// Nanoseconds of an SM per K of a tile: of tensor cores or shared memory, and of the threads that
// convert (kPanelMoveNs).
double NsPerDepth(const TileChoice& choice, const TensorTiling& t, const Rates& rates) {
  auto moves_of = [&](const TensorOperand& operand, int64_t along, int64_t parts) {
    if (operand.source != PanelSource::kConverted) return 0.0;
    bool is_half = BytesOf(operand.stored) == 2;
    double at_once = parts > 1 ? kSplitFactors : is_half && t.form.tf32 ? kWidenedHalves : 1;
    return static_cast<double>(along) / kWarpgroupThreads / at_once;
  };
  double moves = moves_of(t.lhs, choice.rows, t.form.parts[0]) +
                 moves_of(t.rhs, choice.columns, t.form.parts[1]);
  double multiplies = static_cast<double>(choice.rows * choice.columns) * t.form.RelativeTime();
  int64_t copied = (choice.rows * BytesOf(t.lhs.stored) + choice.columns * BytesOf(t.rhs.stored));
  return moves * kPanelMoveNs + std::max({multiplies * rates.ns[static_cast<size_t>(Pipe::kTensor)],
                                          PanelBytesPerDepth(choice, t) * rates.panel_byte_ns,
                                          static_cast<double>(copied) * rates.copied_byte_ns});
}

DotSizes SizesOf(const DotDimensions& dot_dims) {
  return {dot_dims.batch, dot_dims.m, dot_dims.n, dot_dims.k};
}

// The sizes of a dot whose rows and K are padded to the boxes of tiles with this many rows.
DotSizes BoxedSizes(const TensorTiling& t, const DotSizes& dot_sizes, int64_t rows) {
  DotSizes sizes = dot_sizes;
  if (!t.window) return sizes;
  WindowTiling window = *t.window;
  if (SetRowBoxes(window, rows, t.line())) sizes.m = window.RowTiles() * rows;
  sizes.k = window.Panels() * t.line();
  return sizes;
}

// Nanoseconds in which the warpgroups of a block compute the consumers of a tile's results: by the
// throughput of the SM, or by the latency of their threads.
double ConsumerNs(const TileChoice& choice, const TensorTiling& t, const Rates& rates) {
  auto threads = static_cast<double>(choice.warpgroups * kWarpgroupThreads);
  return static_cast<double>(choice.rows * choice.columns) * t.result_flops *
         std::max(rates.ns[static_cast<size_t>(Pipe::kSimple)],
                  rates.latency_ns / (threads * kIndependentResults));
}

// Nanoseconds of the SM with the most tiles. Warpgroups that alternate multiply while results are
// computed and stored; one of them alone stores those of the last tile.
double TimeOf(const TileChoice& choice, const TensorTiling& t, const DotSizes& sizes,
              const Machine& machine) {
  const Rates& rates = RatesOf(machine);
  int64_t tiles = sizes.batch * CeilDiv(sizes.m, choice.rows) * CeilDiv(sizes.n, choice.columns);
  auto waves = static_cast<double>(CeilDiv(tiles, machine.cores));
  // Results take the same time whatever the factors are.
  TensorTiling simple;
  simple.form = FormOf(ScalarType::kBF16);
  double of_tile = NsPerDepth(choice, t, rates) * static_cast<double>(sizes.k),
         store = NsPerDepth(choice, simple, rates) * kTileOverheadDepth;
  double consumers = ConsumerNs(choice, t, rates);
  if (choice.inner_rows < choice.rows || choice.warpgroups == 1)
    return waves * (of_tile + store + consumers);
  return waves * std::max({of_tile, store, of_tile / 2 + consumers}) + 2 * (store + consumers);
}

// With the loads of the producer's threads for computed operands (`lanes` as in TensorTime).
double TimeWithLoads(const TileChoice& choice, const TensorTiling& t, const DotSizes& dot_sizes,
                     const Machine& machine, const std::array<int64_t, 2>& lanes) {
  DotSizes sizes = BoxedSizes(t, dot_sizes, choice.rows);
  double multiplies = TimeOf(choice, t, sizes, machine);
  int64_t tiles = sizes.batch * CeilDiv(sizes.m, choice.rows) * CeilDiv(sizes.n, choice.columns);
  double loads = 0;  // of a producer's thread, for all panels
  for (int64_t i : {0, 1})
    if (int64_t of_one = lanes[static_cast<size_t>(i)]; of_one > 0)
      loads += static_cast<double>((i == 0 ? choice.rows : choice.columns) * sizes.k) /
               static_cast<double>(of_one * kWarpgroupThreads);
  loads *= static_cast<double>(CeilDiv(tiles, machine.cores));
  return std::max(multiplies, loads * RatesOf(machine).panel_load_ns);
}

// Nanoseconds in which a thread loads the arrays that results are combined with and that have no
// place in shared memory beside the tiling's stages.
double ResultLoadsNs(const TensorTiling& t, const Machine& machine) {
  int64_t loaded = 0, of_tile = t.AccumulatorsPerThread() / kResultsOfLoad;
  while (loaded < t.result_operands &&
         SharedBytes(t) + ResultOperandBytes(t.result_operands - loaded, t.consumers(), 0) >
             kMaxSharedBytes)
    ++loaded;
  int64_t tiles = CeilDiv(t.tiles(), machine.cores);
  return static_cast<double>(loaded * of_tile * tiles) * RatesOf(machine).result_load_ns;
}

// Those of its stages that leave shared memory for the arrays that results are combined with, and
// for the results of all roots or at least of one.
int64_t StagesBesideResults(TensorTiling t) {
  const int64_t stages = t.stages;
  for (int64_t boxes : {t.result_boxes, int64_t{1}}) {
    int64_t bytes = ResultOperandBytes(t.result_operands, t.consumers(), boxes);
    auto fits = [&] { return SharedBytes(t) + bytes <= kMaxSharedBytes; };
    for (t.stages = stages; t.stages > kStagesBesideResults && !fits();) --t.stages;
    if (fits()) break;
  }
  return t.stages;
}

// The schedule of a choice of tiles for this form and these operands, with as many of its stages as
// fit.
Schedule ScheduleOf(const TileChoice& choice, const TensorTiling& tiling) {
  Schedule s;
  s.tile_rows = choice.rows;
  s.tile_columns = choice.columns;
  s.tile_depth = tiling.line();
  s.inner_rows = choice.inner_rows;
  s.inner_columns = choice.columns;
  s.threads = (choice.warpgroups + 1) * kWarpgroupThreads;
  s.stages = choice.stages;
  s.group = kTensorGroup;
  s.staging = Staging::kBulk;
  TensorTiling t = tiling;
  t.rows = choice.rows;
  t.columns = choice.columns;
  t.depth = s.tile_depth;
  t.warpgroups = choice.warpgroups;
  t.raw_stages = t.Converts() ? kMinRawStages : 0;
  t.stages = s.stages;
  while (s.stages > kLeastStages && SharedBytes(t) > kMaxSharedBytes) t.stages = --s.stages;
  s.stages = StagesBesideResults(t);
  return s;
}

// Whether the producer's threads can convert raw panels of the operand.
bool CanConvert(const TensorOperand& operand, const TensorForm& form) {
  return !operand.is_k_major || form.line() % operand.RawLine() == 0;
}

// The elements of an access of the producer's threads to computed operands.
std::array<int64_t, 2> LanesOf(const TensorDot& tensor, const TensorTiling& tiling) {
  std::array<int64_t, 2> lanes{};
  for (size_t i : {0, 1})
    if ((i == 0 ? tiling.lhs : tiling.rhs).source == PanelSource::kComputed)
      lanes[i] = ProducerLanes(DotOperand(tensor.dot, tensor.dot_dims, i), tiling.form, i);
  return lanes;
}

// Sets the sizes of tiles and their threads. Returns why they do not fit.
std::string SetSizes(TensorTiling& t, const Schedule& schedule) {
  t.rows = schedule.tile_rows;
  t.columns = schedule.tile_columns;
  t.depth = schedule.tile_depth;
  t.inner_rows = schedule.inner_rows;
  t.warpgroups = schedule.threads / kWarpgroupThreads - 1;
  t.stages = schedule.stages;
  t.group = schedule.group;
  t.raw_stages = t.Converts() ? kMaxRawStages : 0;
  while (t.raw_stages > kMinRawStages && SharedBytes(t) > kMaxSharedBytes) --t.raw_stages;
  return WhyNotSizes(t, schedule);
}

// Sets what the schedule says of a tiling that has its type and operands. Returns why it does not
// fit.
std::string SetSchedule(TensorTiling& t, const DotDimensions& dot_dims, const Schedule& schedule,
                        const Machine& machine) {
  if (std::string why = SetSizes(t, schedule); !why.empty()) return why;
  if (schedule.vector != 1 || schedule.split_k != 1) return "vector, split_k: 1 for bulk copies";
  if (int64_t bytes = SharedBytes(t); bytes > kMaxSharedBytes)
    return "stages: they take " + std::to_string(bytes) +
           " bytes of shared memory, and a block has " + std::to_string(kMaxSharedBytes);
  if (t.window && !SetRowBoxes(*t.window, t.rows, t.line()))
    return "tile: its rows are no box of the result";
  t.panels = t.window ? t.window->Panels() : CeilDiv(dot_dims.k, t.depth);
  t.row_tiles = t.window ? t.window->RowTiles() : CeilDiv(dot_dims.m, t.rows);
  t.column_tiles = CeilDiv(dot_dims.n, t.columns);
  t.batch = dot_dims.batch;
  t.blocks = std::min(t.tiles(), machine.cores);
  return "";
}

}  // namespace

void SetForm(TensorTiling& tiling, const TensorForm& form) {
  tiling.form = form;
  for (size_t i : {0, 1}) {
    TensorOperand& operand = i == 0 ? tiling.lhs : tiling.rhs;
    operand.panels_are_k_major = form.IsKMajorOnly() || operand.is_k_major;
    bool is_same = operand.stored == form.types[i] && form.parts[i] == 1 && !operand.IsTransposed();
    operand.source = !operand.IsBulk()           ? PanelSource::kComputed
                     : is_same                   ? PanelSource::kCopied
                     : CanConvert(operand, form) ? PanelSource::kConverted
                                                 : PanelSource::kComputed;
  }
}

TensorDot TensorDotOf(const FusedRegion& region, const Instr& dot, const DotDimensions& dot_dims) {
  std::array views = {OperandViewOf(region, *dot.operand(0)),
                      OperandViewOf(region, *dot.operand(1))};
  std::array affine = {AffineViewOf(region, *dot.operand(0)),
                       AffineViewOf(region, *dot.operand(1))};
  auto result_operands = static_cast<int64_t>(ResultOperandsOf(region, dot, dot_dims).size());
  return {dot,
          dot_dims,
          {views[0].array != nullptr, views[1].array != nullptr},
          views,
          affine,
          result_operands,
          ResultBoxesOf(region),
          ResultFlopsOf(region, dot)};
}

namespace {

// Sets operands that are affine views of 16-bit or f32 factors; false if the bulk copy engine
// cannot read both.
bool SetWindow(const TensorDot& tensor, TensorTiling& tiling) {
  std::array<ScalarType, 2> stored{};
  for (size_t i : {0, 1}) stored[i] = StorageType(tensor.dot.operand(i)->shape().type());
  int64_t bytes = BytesOf(stored[0]);
  WindowTiling window;
  bool has_panels = stored[0] == ScalarType::kBF16 || stored[0] == ScalarType::kF16 ||
                    stored[0] == ScalarType::kF32;
  if (stored[0] != stored[1] || !has_panels ||
      !FindWindow(tensor.dot_dims, tensor.affine, bytes, MatrixMultiply::kPanelBytes / bytes,
                  window)
           .empty())
    return false;
  for (size_t i : {0, 1}) {
    TensorOperand& operand = i == 0 ? tiling.lhs : tiling.rhs;
    operand = {};
    for (const WindowDimension& d : window.tensors[i])
      operand.dimensions.push_back({.size = d.size, .stride = d.stride, .start = d.start});
    operand.array = window.arrays[i];
    operand.stored = stored[i];
    operand.is_k_major = operand.panels_are_k_major = window.is_k_major[i];
  }
  tiling.window = std::move(window);
  return true;
}

// Sets the operands of the dot. The contracted dimensions have one order for both.
void SetOperands(const TensorDot& tensor, TensorTiling& tiling) {
  const auto& [dot, dot_dims, is_input, views, affine, result_operands, result_boxes,
               result_flops] = tensor;
  auto operand_of = [&](size_t i, const Dims& contracting) {
    DotOperand side(dot, dot_dims, i);
    ElementType element = side.instr->shape().type();
    ScalarType stored = StorageType(element);
    bool has_bytes = InfoOf(element).bits >= 8;
    if (views[i].array == nullptr)
      return TensorOperandOf(side, contracting, is_input[i] && has_bytes, stored);
    return TensorOperandOf(side, contracting, has_bytes ? views[i] : OperandView{}, stored);
  };
  auto set_operands = [&](const Dims& left, const Dims& right) {
    tiling.lhs = operand_of(0, left);
    tiling.rhs = operand_of(1, right);
    return tiling.lhs.IsBulk() && tiling.rhs.IsBulk();
  };
  for (const auto& [left, right] : ContractingOrders(dot_dims.attrs))
    if (set_operands(left, right)) return;
  if (SetWindow(tensor, tiling)) return;
  // An operand that is computed has the given order, which may be neither of those.
  set_operands(dot_dims.attrs.lhs_contracting, dot_dims.attrs.rhs_contracting);
}

// A tiling with the operands of the dot.
TensorTiling WithOperands(const TensorDot& tensor) {
  TensorTiling tiling;
  tiling.result_operands = tensor.result_operands;
  tiling.result_boxes = tensor.result_boxes;
  tiling.result_flops = tensor.result_flops;
  SetOperands(tensor, tiling);
  return tiling;
}

// The tiling in this form, from WithOperands. An operand whose panels the producer cannot convert
// is computed, in the order of its instruction.
TensorTiling TilingOf(const TensorDot& tensor, const TensorForm& form, TensorTiling tiling) {
  SetForm(tiling, form);
  std::optional<TensorDot> computed;
  for (size_t i : {0, 1}) {
    const TensorOperand& operand = i == 0 ? tiling.lhs : tiling.rhs;
    if (!operand.IsBulk() || operand.source != PanelSource::kComputed) continue;
    if (!computed) computed.emplace(tensor);
    computed->is_input[i] = false;
    computed->views[i] = {};
    computed->affine[i] = {};
  }
  return computed ? TilingOf(*computed, form, WithOperands(*computed)) : tiling;
}

// Whether most of a tile or of a panel would be padding.
bool IsTooSmall(const DotDimensions& sizes, const TensorForm& form) {
  bool are_bytes = form.bytes() == 1;
  return sizes.m < (are_bytes ? kMinByteSide : kMinTensorRows) ||
         sizes.n < (are_bytes ? kMinByteSide : kMinTensorColumns) || sizes.k < kMinTensorDepth;
}

// Why no dot can have asynchronous multiplies, else the tilings of all forms without sizes.
std::string WhyNoForms(const TensorDot& tensor, const Machine& machine,
                       std::vector<TensorTiling>& tilings) {
  if (!machine.async_multiply) return "staging: the machine has no asynchronous multiplies";
  std::vector<TensorForm> forms = FormsOf(tensor.dot, machine);
  if (forms.empty())
    return "staging: asynchronous multiplies are for bf16, f16, 8-bit types and what TF32 may "
           "approximate";
  std::erase_if(forms, [&](const TensorForm& form) { return IsTooSmall(tensor.dot_dims, form); });
  if (forms.empty()) return "staging: the dot is too small for the tiles of tensor cores";
  const TensorTiling operands = WithOperands(tensor);
  for (const TensorForm& form : forms) {
    TensorTiling tiling = TilingOf(tensor, form, operands);
    // The panels of windows have the lines in which their elements are copied.
    if (tiling.window && form.line() != tiling.lhs.RawLine()) continue;
    tilings.push_back(std::move(tiling));
  }
  return tilings.empty() ? "staging: windows of f32 are multiplied in TF32" : "";
}

}  // namespace

std::string WhyNoTensorDot(const TensorDot& tensor, const Machine& machine, TensorTiling& tiling) {
  std::vector<TensorTiling> tilings;
  if (std::string why = WhyNoForms(tensor, machine, tilings); !why.empty()) return why;
  tiling = *std::ranges::min_element(tilings, {}, [&](const TensorTiling& t) {
    return TensorTime(t, tensor.dot_dims, machine, LanesOf(tensor, t));
  });
  return "";
}

std::vector<Schedule> TensorSchedules(const TensorDot& tensor, const Machine& machine) {
  std::vector<TensorTiling> tilings;
  if (!WhyNoForms(tensor, machine, tilings).empty()) return {};
  struct Timed {
    double ns;
    Schedule schedule;
  };
  std::vector<Timed> timed;
  for (const TensorTiling& tiling : tilings) {
    std::array<int64_t, 2> lanes = LanesOf(tensor, tiling);
    for (const TileChoice& choice : kTileChoices) {
      Schedule next = ScheduleOf(choice, tiling);
      TensorTiling expanded = tiling;
      if (SetSchedule(expanded, tensor.dot_dims, next, machine).empty())
        timed.push_back({TimeWithLoads(choice, tiling, SizesOf(tensor.dot_dims), machine, lanes) +
                             ResultLoadsNs(expanded, machine),
                         next});
    }
  }
  // Where the producer's loads take the time, all tiles of these rows do: the smallest one comes
  // first.
  std::ranges::stable_sort(timed, {}, [](const Timed& each) {
    return std::pair(each.ns, each.schedule.tile_rows * each.schedule.tile_columns);
  });
  std::vector<Schedule> all;
  for (const Timed& each : timed) all.push_back(each.schedule);
  return all;
}

std::string ExpandTensorSchedule(const TensorDot& tensor, const Schedule& schedule,
                                 const Machine& machine, TensorTiling& tiling) {
  std::vector<TensorTiling> tilings;
  if (std::string why = WhyNoForms(tensor, machine, tilings); !why.empty()) return why;
  // The depth of a panel tells the size of its elements.
  auto found = std::ranges::find(tilings, schedule.tile_depth, &TensorTiling::line);
  if (found == tilings.end()) return "tile: its depth is not 128 bytes";
  std::string why = SetSchedule(*found, tensor.dot_dims, schedule, machine);
  if (why.empty()) tiling = std::move(*found);
  return why;
}

TensorTiling KMajorTiling(const TensorTiling& tiling, const TensorForm& form,
                          const std::array<bool, 2>& operands) {
  TensorTiling t = tiling;
  for (size_t i : {0, 1}) {
    if (!operands[i]) continue;
    TensorOperand& operand = i == 0 ? t.lhs : t.rhs;
    operand.dimensions.resize(std::max<size_t>(operand.dimensions.size(), 1));
    operand.is_k_major = true;
    operand.stored = form.types[i];
  }
  SetForm(t, form);
  return t;
}

double TensorTime(const TensorTiling& tiling, const DotDimensions& dot_dims, const Machine& machine,
                  const std::array<int64_t, 2>& lanes) {
  return TensorTime(tiling, SizesOf(dot_dims), machine, lanes);
}

double TensorTime(const TensorTiling& tiling, const DotSizes& dot_sizes, const Machine& machine,
                  const std::array<int64_t, 2>& lanes) {
  DotSizes sizes = dot_sizes;
  sizes.k = RoundUp(sizes.k, tiling.line());
  double least = std::numeric_limits<double>::infinity();
  // Some choices are for copied operands and whole sums only.
  bool fits_all = !tiling.Converts() && !tiling.form.HasPartialSums();
  auto fits = [&](const TileChoice& choice) {
    TensorTiling t = tiling;
    return SetSizes(t, ScheduleOf(choice, tiling)).empty();
  };
  for (const TileChoice& choice : kTileChoices)
    if (fits_all || fits(choice))
      least = std::min(least, TimeWithLoads(choice, tiling, sizes, machine, lanes));
  return least / kNsPerUs;
}

int64_t ProducerLanes(const DotOperand& side, const TensorForm& form, size_t operand) {
  // Both parts of a factor follow from one f32.
  int64_t bytes = form.parts[operand] > 1 ? BytesOf(ScalarType::kF32) : form.bytes();
  int64_t lanes = TileCopy::kAlignment / bytes;
  const Dims& along = side.k_is_minor ? *side.contracting : *side.free;
  // If the dimensions are not adjacent, the contiguous elements are those of the innermost one.
  int64_t adjacent =
      LinearizedStride(*side.dims, along) ? SizeAlong(*side.dims, along) : side.dims->back();
  while (adjacent % lanes != 0) lanes /= 2;
  return lanes;
}

}  // namespace tokamak::gpu
