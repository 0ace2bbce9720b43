// The kernel of a chain of dots by asynchronous multiplies (chain_tiling.h has the structure). With
// a first and a second dot:
//
//   producer, one thread                warpgroup
//     for each tile of the block          for each tile of the block
//       copy its rows                       wait for the rows; product = 0
//       for each tile of live columns       for each tile of live columns
//         copy the columns                    start scores = rows * columns
//         copy the values                     start product += weights * values, of the tile before
//                                             wait for the scores; reduce them, compute weights
//                                             wait for the product; rescale it
//                                           product += weights * values, of the last tile
//                                           finish the reductions, store the product's consumers
//
// Where registers do not suffice for scores beside weights, the products of a tile come before the
// scores of the next one. The copies run ahead by `stages` tiles of columns, over the ends of
// tiles. Scores, weights and product are in registers: a thread has parts of two rows
// (AccumulatorPosition), and four adjacent threads share a row. See RunningChain
// (analysis/dot_chains.h) for the reductions.

#include "gen/gpu/chain_contract.h"

#include <algorithm>

#include "gen/gpu/chain_elements.h"
#include "gen/gpu/chain_tiling.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/warp_roles.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

class ChainKernel {
 public:
  ChainKernel(const FusedRegion& region, const ChainRegion& found, const ChainTiling& tiling,
              const std::string& name)
      : region_(region),
        chain_(found.chain),
        live_(found.live),
        t_(tiling),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, region, found, tiling) {}

  BuildOutcome Build() {
    Declare();
    return BuildWarpRoles(
        b_, emitter_, region_, {t_.blocks, t_.threads()},
        [&](Scalar block, Scalar t) {
          block_ = block;
          thread_ = t;
        },
        [&](bool produces) { produces ? Produce() : Consume(); });
  }

 private:
  // An operand in shared memory, with its mbarriers.
  struct Operand {
    const ChainSide* side = nullptr;
    ArrayId input{}, tiles{}, full{}, empty{};
    int64_t stages = 1;
    bool has_rows = false;
    // Whether first or second dots multiply its columns. The last of them releases its stages.
    bool is_of_firsts = false, is_of_seconds = false;
  };
  // Tiles of columns whose weights are not all zero, in order: the first one, their count for each
  // index of outer columns, the count of all, and the number of the first one among all that the
  // block computes.
  struct ColumnTiles {
    Scalar begin, each, count, number;
  };

  void Declare() {
    auto declare = [&](const ChainSide& side) {
      std::string name = side.has_rows ? "rows" : side.is_of_product ? "values" : "columns";
      auto same = std::ranges::count_if(operands_, [&](const Operand& other) {
        return other.side->has_rows == side.has_rows &&
               other.side->is_of_product == side.is_of_product;
      });
      if (same > 0) name += std::to_string(same);
      operands_.push_back(DeclareOperand(name, side, side.has_rows ? 1 : t_.stages));
    };
    for (const ChainSide* side : t_.Operands()) declare(*side);
    for (const ChainTiling::First& first : t_.firsts) {
      OperandOf(first.rows).has_rows = true;
      OperandOf(first.columns).is_of_firsts = true;
    }
    for (const ChainTiling::Second& second : t_.seconds)
      OperandOf(second.values).is_of_seconds = true;
    elements_.Declare();
    if (HasLimits())
      tiles_before_ = b_.Local("tiles_before", ScalarType::kS32, Space::kRegisters, 1);
  }

  Operand& OperandOf(const ChainSide& side) {
    return *std::ranges::find_if(
        operands_, [&](const Operand& operand) { return side.HasElementsOf(*operand.side); });
  }

  bool HasLimits() const { return live_.first || live_.last; }

  Operand DeclareOperand(const std::string& name, const ChainSide& side, int64_t stages) {
    Operand operand;
    operand.side = &side;
    operand.stages = stages;
    operand.input = emitter_.InputOf(*side.tensor.array);
    operand.tiles = b_.Local(name, t_.type, Space::kShared, side.size() * stages,
                             MatrixMultiply::kPanelAlignment);
    operand.full = b_.Mbarriers(name + "_full", stages, 1);
    operand.empty = b_.Mbarriers(name + "_empty", stages, t_.consumers() / kWarpSize);
    return operand;
  }

  // Calls body(number of the tile of rows among those of the block, its tiles of columns).
  template <typename Body>
  void ForTiles(Body&& body) {
    if (HasLimits()) b_.Store(tiles_before_, b_.Index(0), b_.Constant(ScalarType::kS32, 0));
    Scalar count = (b_.Index(t_.tiles() + t_.blocks - 1) - block_) / b_.Index(t_.blocks);
    b_.For("i", LoopRole::kSerial, count, [&](Scalar i) {
      Scalar tile = block_ + i * b_.Index(t_.blocks);
      row_ = RowTileOf(tile) * b_.Index(t_.rows);
      elements_.SetBatch(tile / b_.Index(t_.row_tiles));
      ColumnTiles columns = ColumnTilesOf(i);
      body(i, columns);
      if (HasLimits())
        b_.Store(tiles_before_, b_.Index(0), (columns.number + columns.count).As(ScalarType::kS32));
    });
  }

  // Of its batch. With limits, tiles of rows have different numbers of columns: the order changes
  // from round to round, so that a block does not always get the same tile of rows. The order of
  // their work, with every other round reversed, was slower by 7 to 17 % (H200, heads of 128).
  Scalar RowTileOf(Scalar tile) {
    Scalar row_tiles = b_.Index(t_.row_tiles), row_tile = tile % row_tiles;
    if (!HasLimits()) return row_tile;
    Scalar round = tile / row_tiles * row_tiles / b_.Index(t_.blocks);
    return (row_tile + round) % row_tiles;
  }

  ColumnTiles ColumnTilesOf(Scalar i) {
    Scalar all = b_.Index(t_.column_tiles), zero = b_.Index(0);
    Scalar outer = b_.Index(t_.outer_columns);
    if (!HasLimits()) return {zero, all, all * outer, i * all * outer};
    Scalar begin = zero, end = all;
    if (live_.first) begin = GreaterOf(row_ + b_.Index(*live_.first), zero) / b_.Index(t_.columns);
    if (live_.last) {
      Scalar last = row_ + b_.Index(t_.rows - 1 + *live_.last);
      last = GreaterOf(LesserOf(last, b_.Index(chain_.column_count() - 1)), zero);
      end = last / b_.Index(t_.columns) + b_.Index(1);
    }
    // Rows of the last tile that do not exist have no columns.
    if (live_.first) begin = LesserOf(begin, end - b_.Index(1));
    if (live_.masked != nullptr) {
      Scalar hides = HidesDeadColumns(b_, emitter_, live_);
      begin = Choose(hides, begin, zero);
      end = Choose(hides, end, all);
    }
    int64_t most = CeilDiv(t_.tiles(), t_.blocks) * t_.column_tiles * t_.outer_columns;
    Scalar before = b_.Read(tiles_before_, zero).As(ScalarType::kIndex);
    Scalar number = LesserOf(GreaterOf(before, zero), b_.Index(most));
    return {begin, end - begin, (end - begin) * outer, number};
  }

  // Begins the j-th tile of columns, and returns its number along the columns.
  Scalar BeginColumns(const ColumnTiles& tiles, Scalar j) {
    if (t_.outer_columns == 1) return tiles.begin + j;
    elements_.SetOuterColumns(j / tiles.each);
    return tiles.begin + j % tiles.each;
  }

  PipelineStage StageOf(const Operand& operand, Scalar number) {
    return gpu::StageOf(b_, number, operand.stages);
  }

  // ---- producer

  void Produce() {
    if (t_.warpgroups() > 1) b_.LimitRegisters(kCopyRegisters);
    b_.If(thread_ == b_.Index(0), [&] {
      ForTiles([&](Scalar i, const ColumnTiles& tiles) {
        for (const Operand& operand : operands_)
          if (operand.has_rows) Fill(operand, i, row_);
        b_.For("j", LoopRole::kSerial, tiles.count, [&](Scalar j) {
          Scalar column = BeginColumns(tiles, j) * b_.Index(t_.columns);
          for (const Operand& operand : operands_)
            if (!operand.has_rows) Fill(operand, tiles.number + j, column);
          elements_.FillPackedPreds(tiles.number + j, row_, column);
        });
      });
    });
    if (!elements_.HasColumnValues()) return;
    Scalar first = b_.Index(ChainVectors::kFirstThread);
    b_.If(first <= thread_, [&] {
      ForTiles([&](Scalar, const ColumnTiles& tiles) {
        b_.For("j", LoopRole::kSerial, tiles.count, [&](Scalar j) {
          Scalar tile = BeginColumns(tiles, j);
          elements_.StoreColumnValues(thread_ - first, tile, tiles.number + j);
        });
      });
    });
  }

  // Copies the tile from row (column) `at` on to the stage of the operand's tile `number`.
  void Fill(const Operand& operand, Scalar number, Scalar at) {
    PipelineStage stage = StageOf(operand, number);
    b_.Wait(operand.empty, stage.index, b_.Index(1) - stage.parity);
    const ChainSide& side = *operand.side;
    b_.Arrive(operand.full, stage.index, side.size() * BytesOf(t_.type));
    for (int64_t p = 0; p < side.panels(); ++p) {
      TileCopy copy;
      copy.from = operand.input;
      copy.to = operand.tiles;
      copy.swizzled = true;
      copy.to_index = (stage.index * b_.Index(side.size()) + b_.Index(p * side.panel())).id();
      for (const TensorOperand::Dimension& dimension : side.tensor.dimensions)
        copy.dimensions.push_back(BoxOf(side, dimension, at, p));
      b_.Copy(operand.full, stage.index, std::move(copy));
    }
  }

  // The part of panel p along a dimension of the operand.
  TileCopy::Dimension BoxOf(const ChainSide& side, const TensorOperand::Dimension& dimension,
                            Scalar at, int64_t p) {
    using Along = TensorOperand::Dimension::Along;
    TileCopy::Dimension box{
        .size = dimension.start + dimension.size, .stride = dimension.stride, .box = 1};
    // The tile begins at `at` along the rows (columns) of the scores.
    bool is_panel = (dimension.along == Along::kDepth) == side.tensor.is_k_major;
    bool is_scores = (dimension.along == Along::kDepth) == side.is_of_product;
    Scalar begin = is_scores ? at : b_.Index(0);
    if (dimension.along == Along::kBatch) {
      begin = elements_.BatchOf(side, dimension);
    } else {
      box.box = is_panel ? side.line : side.lines();
      if (is_panel) begin = begin + b_.Index(p * side.line);
    }
    box.at = (begin + b_.Index(dimension.start)).id();
    return box;
  }

  // ---- warpgroups

  void Consume() {
    if (t_.warpgroups() > 1) b_.LimitRegisters(ConsumerRegisters(t_.consumers(), kCopyRegisters));
    consumer_ = ConsumerOf(b_, thread_);
    ForTiles([&](Scalar i, const ColumnTiles& tiles) {
      elements_.Begin(consumer_, row_);
      ForOperands(&Operand::has_rows, [&](const Operand& operand) { WaitFor(operand, i); });
      t_.overlaps ? MultiplyOverlapped(tiles) : MultiplyInTurn(tiles);
      ForOperands(&Operand::has_rows, [&](const Operand& operand) { Release(operand, i); });
      elements_.Finish();
    });
  }

  // The products of a tile accumulate while the scores of the next one are reduced.
  void MultiplyOverlapped(const ColumnTiles& tiles) {
    Scalar first = tiles.number, one = b_.Index(1);
    StartScores(first);
    WeighScores(tiles, b_.Index(0));
    elements_.Pack();
    b_.For("j", LoopRole::kSerial, tiles.count - one, [&](Scalar j) {
      StartScores(first + j + one);
      StartProduct(first + j);
      WeighScores(tiles, j + one);
      FinishProduct(first + j);
      elements_.Pack();
    });
    StartProduct(first + tiles.count - one);
    FinishProduct(first + tiles.count - one);
  }

  // While a warpgroup reduces scores, another one multiplies.
  void MultiplyInTurn(const ColumnTiles& tiles) {
    b_.For("j", LoopRole::kSerial, tiles.count, [&](Scalar j) {
      StartScores(tiles.number + j);
      WeighScores(tiles, j);
      elements_.Pack();
      StartProduct(tiles.number + j);
      FinishProduct(tiles.number + j);
    });
  }

  // Computes the weights of the j-th tile of columns.
  void WeighScores(const ColumnTiles& tiles, Scalar j) {
    Scalar tile = BeginColumns(tiles, j);
    elements_.Prepare(tile);
    FinishScores(tiles.number + j, tile);
  }

  template <typename Body>
  void ForOperands(bool Operand::*which, Body&& body) {
    for (const Operand& operand : operands_)
      if (operand.*which) body(operand);
  }
  void WaitFor(const Operand& operand, Scalar number) {
    PipelineStage stage = StageOf(operand, number);
    b_.Wait(operand.full, stage.index, stage.parity);
  }

  void StartScores(Scalar number) {
    ForOperands(&Operand::is_of_firsts, [&](const Operand& operand) { WaitFor(operand, number); });
    for (size_t i = 0; i < t_.firsts.size(); ++i) MultiplyScores(i, number);
  }
  void FinishScores(Scalar number, Scalar j) {
    for (size_t i = 0; i < t_.firsts.size(); ++i) b_.WaitMultiplies(elements_.scores(i), 0);
    ForOperands(&Operand::is_of_firsts, [&](const Operand& operand) {
      if (!operand.is_of_seconds) Release(operand, number);
    });
    elements_.Weigh(j, number);
  }
  void StartProduct(Scalar number) {
    ForOperands(&Operand::is_of_seconds, [&](const Operand& operand) {
      if (!operand.is_of_firsts) WaitFor(operand, number);
    });
    for (size_t i = 0; i < t_.seconds.size(); ++i) MultiplyValues(i, number);
  }
  void FinishProduct(Scalar number) {
    for (size_t i = 0; i < t_.seconds.size(); ++i) b_.WaitMultiplies(elements_.product(i), 0);
    ForOperands(&Operand::is_of_seconds, [&](const Operand& operand) { Release(operand, number); });
  }

  // All threads of the warp have waited for the multiplies that read the stage.
  void Release(const Operand& operand, Scalar number) {
    b_.Barrier(BarrierScope::kWarp);
    b_.If(consumer_ % b_.Index(kWarpSize) == b_.Index(0),
          [&] { b_.Arrive(operand.empty, StageOf(operand, number).index); });
  }

  MatrixMultiply ProductOf(int64_t columns, int64_t depth) {
    MatrixMultiply product{.async = true};
    product.rows = kWarpgroupRows;
    product.columns = product.warp_columns = columns;
    product.warp_rows = MatrixMultiply::kFragmentRows;
    product.depth = b_.Index(depth).id();
    return product;
  }

  void SetRhs(MatrixMultiply& product, const ChainSide& side, Scalar number) {
    const Operand& operand = OperandOf(side);
    product.rhs = operand.tiles;
    product.rhs_index = (StageOf(operand, number).index * b_.Index(side.size())).id();
    product.rhs_row_stride = side.tensor.is_k_major ? 1 : side.line;
    product.rhs_column_stride = side.tensor.is_k_major ? side.line : 1;
    product.rhs_panel = side.panel();
  }

  void MultiplyScores(size_t i, Scalar number) {
    const ChainSide& rows = t_.firsts[i].rows;
    MatrixMultiply product = ProductOf(t_.columns, t_.firsts[i].depth);
    product.overwrite = true;
    product.lhs = OperandOf(rows).tiles;
    // 64 rows further: 64 lines of a K-major panel, or the next panel.
    int64_t step = rows.tensor.is_k_major ? kWarpgroupRows * rows.line : rows.panel();
    product.lhs_index = (consumer_ / b_.Index(kWarpgroupThreads) * b_.Index(step)).id();
    product.lhs_row_stride = rows.tensor.is_k_major ? rows.line : 1;
    product.lhs_column_stride = rows.tensor.is_k_major ? 1 : rows.line;
    product.lhs_panel = rows.panel();
    SetRhs(product, t_.firsts[i].columns, number);
    b_.Multiply(elements_.scores(i), b_.Index(0), product);
  }

  void MultiplyValues(size_t i, Scalar number) {
    for (ArrayId weights : elements_.weights(i)) {
      MatrixMultiply product = ProductOf(t_.seconds[i].width, t_.columns);
      product.lhs = weights;
      product.lhs_index = b_.Index(0).id();
      SetRhs(product, t_.seconds[i].values, number);
      b_.Multiply(elements_.product(i), b_.Index(0), product);
    }
  }

  const FusedRegion& region_;
  const DotChain& chain_;
  const LiveColumns& live_;
  const ChainTiling& t_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ChainElements elements_;
  std::vector<Operand> operands_;
  ArrayId tiles_before_{};  // registers, if columns have limits
  Scalar block_, thread_, consumer_, row_;
};

}  // namespace

BuildOutcome BuildChain(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
                        const std::string& name) {
  ChainRegion found;
  if (std::string why = FindChain(region, found); !why.empty()) return {std::nullopt, why};
  std::vector<Schedule> all;
  if (schedule == nullptr) all = ChainSchedules(region, machine);
  if (schedule != nullptr) all = {*schedule};
  if (all.empty()) return {std::nullopt, "no tiles of the chain fit"};
  ChainTiling tiling;
  if (std::string why = ExpandChainSchedule(region, found, all[0], machine, tiling); !why.empty())
    return {std::nullopt, why};
  BuildOutcome outcome = ChainKernel(region, found, tiling, name).Build();
  if (outcome.built) outcome.built->schedule = all[0];
  return outcome;
}

}  // namespace tokamak::gpu
