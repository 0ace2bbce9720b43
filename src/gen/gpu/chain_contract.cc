// The kernel of a chain of two dots by asynchronous multiplies (chain_tiling.h has the structure):
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
// The copies run ahead by `stages` tiles of columns, over the ends of tiles. Scores, weights and
// product are in registers: a thread has parts of two rows (AccumulatorPosition), and four adjacent
// threads share a row. See RunningChain (analysis/dot_chains.h) for the reductions.

#include "gen/gpu/chain_contract.h"

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
  };
  // The stage of a tile of an operand, and the parity of its phase.
  struct Stage {
    Scalar index, parity;
  };
  // Tiles of columns whose weights are not all zero, in order: the first one, their count, and the
  // number of the first one among all that the block computes.
  struct ColumnTiles {
    Scalar begin, count, number;
  };

  void Declare() {
    rows_ = DeclareOperand("rows", t_.rows_side, 1);
    columns_ = DeclareOperand("columns", t_.columns_side, t_.stages);
    values_ = DeclareOperand("values", t_.values_side, t_.stages);
    elements_.Declare();
    if (HasLimits())
      tiles_before_ = b_.Local("tiles_before", ScalarType::kS32, Space::kRegisters, 1);
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
      row_ = tile % b_.Index(t_.row_tiles) * b_.Index(t_.rows);
      elements_.SetBatch(tile / b_.Index(t_.row_tiles));
      ColumnTiles columns = ColumnTilesOf(i);
      body(i, columns);
      if (HasLimits())
        b_.Store(tiles_before_, b_.Index(0), (columns.number + columns.count).As(ScalarType::kS32));
    });
  }

  ColumnTiles ColumnTilesOf(Scalar i) {
    Scalar all = b_.Index(t_.column_tiles), zero = b_.Index(0);
    if (!HasLimits()) return {zero, all, i * all};
    Scalar begin = zero, end = all;
    if (live_.first) begin = GreaterOf(row_ + b_.Index(*live_.first), zero) / b_.Index(t_.columns);
    if (live_.last) {
      Scalar last = row_ + b_.Index(t_.rows - 1 + *live_.last);
      end =
          LesserOf(last, b_.Index(chain_.column_count() - 1)) / b_.Index(t_.columns) + b_.Index(1);
    }
    // Rows of the last tile that do not exist have no columns.
    if (live_.first) begin = LesserOf(begin, end - b_.Index(1));
    int64_t most = CeilDiv(t_.tiles(), t_.blocks) * t_.column_tiles;
    Scalar before = b_.Read(tiles_before_, zero).As(ScalarType::kIndex);
    return {begin, end - begin, LesserOf(GreaterOf(before, zero), b_.Index(most))};
  }

  Stage StageOf(const Operand& operand, Scalar number) {
    return {number % b_.Index(operand.stages), number / b_.Index(operand.stages) % b_.Index(2)};
  }

  // ---- producer

  void Produce() {
    if (t_.warpgroups() > 1) b_.LimitRegisters(kCopyRegisters);
    b_.If(thread_ == b_.Index(0), [&] {
      ForTiles([&](Scalar i, const ColumnTiles& tiles) {
        Fill(rows_, i, row_);
        b_.For("j", LoopRole::kSerial, tiles.count, [&](Scalar j) {
          Scalar column = (tiles.begin + j) * b_.Index(t_.columns);
          Fill(columns_, tiles.number + j, column);
          Fill(values_, tiles.number + j, column);
        });
      });
    });
  }

  // Copies the tile from row (column) `at` on to the stage of the operand's tile `number`.
  void Fill(const Operand& operand, Scalar number, Scalar at) {
    Stage stage = StageOf(operand, number);
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
    consumer_ = thread_ - b_.Index(kWarpgroupThreads);
    ForTiles([&](Scalar i, const ColumnTiles& tiles) {
      elements_.Begin(consumer_, row_);
      Stage rows = StageOf(rows_, i);
      b_.Wait(rows_.full, rows.index, rows.parity);
      Scalar first = tiles.number, one = b_.Index(1);
      StartScores(first);
      FinishScores(first, tiles.begin);
      elements_.Pack();
      b_.For("j", LoopRole::kSerial, tiles.count - one, [&](Scalar j) {
        Scalar next = first + j + one;
        StartScores(next);
        StartProduct(first + j);
        FinishScores(next, tiles.begin + j + one);
        FinishProduct(first + j);
        elements_.Pack();
      });
      StartProduct(first + tiles.count - one);
      FinishProduct(first + tiles.count - one);
      Release(rows_, rows);
      elements_.Finish();
    });
  }

  // The scores of a tile of columns are reduced while the product of the tile before accumulates.
  void StartScores(Scalar number) {
    Stage columns = StageOf(columns_, number);
    b_.Wait(columns_.full, columns.index, columns.parity);
    MultiplyScores(columns);
  }
  void FinishScores(Scalar number, Scalar j) {
    b_.WaitMultiplies(elements_.scores(), 0);
    Release(columns_, StageOf(columns_, number));
    elements_.Weigh(j);
  }
  void StartProduct(Scalar number) {
    Stage values = StageOf(values_, number);
    b_.Wait(values_.full, values.index, values.parity);
    MultiplyValues(values);
  }
  void FinishProduct(Scalar number) {
    b_.WaitMultiplies(elements_.product(), 0);
    Release(values_, StageOf(values_, number));
  }

  // All threads of the warp have waited for the multiplies that read the stage.
  void Release(const Operand& operand, const Stage& stage) {
    b_.Barrier(BarrierScope::kWarp);
    b_.If(consumer_ % b_.Index(kWarpSize) == b_.Index(0),
          [&] { b_.Arrive(operand.empty, stage.index); });
  }

  MatrixMultiply ProductOf(int64_t columns, int64_t depth) {
    MatrixMultiply product{.async = true};
    product.rows = kWarpgroupRows;
    product.columns = product.warp_columns = columns;
    product.warp_rows = MatrixMultiply::kFragmentRows;
    product.depth = b_.Index(depth).id();
    return product;
  }

  void SetRhs(MatrixMultiply& product, const Operand& operand, const Stage& stage) {
    const ChainSide& side = *operand.side;
    product.rhs = operand.tiles;
    product.rhs_index = (stage.index * b_.Index(side.size())).id();
    product.rhs_row_stride = side.tensor.is_k_major ? 1 : side.line;
    product.rhs_column_stride = side.tensor.is_k_major ? side.line : 1;
    product.rhs_panel = side.panel();
  }

  void MultiplyScores(const Stage& columns) {
    const ChainSide& rows = *rows_.side;
    MatrixMultiply product = ProductOf(t_.columns, t_.depth);
    product.overwrite = true;
    product.lhs = rows_.tiles;
    // 64 rows further: 64 lines of a K-major panel, or the next panel.
    int64_t step = rows.tensor.is_k_major ? kWarpgroupRows * rows.line : rows.panel();
    product.lhs_index = (consumer_ / b_.Index(kWarpgroupThreads) * b_.Index(step)).id();
    product.lhs_row_stride = rows.tensor.is_k_major ? rows.line : 1;
    product.lhs_column_stride = rows.tensor.is_k_major ? 1 : rows.line;
    product.lhs_panel = rows.panel();
    SetRhs(product, columns_, columns);
    b_.Multiply(elements_.scores(), b_.Index(0), product);
  }

  void MultiplyValues(const Stage& values) {
    MatrixMultiply product = ProductOf(t_.width, t_.columns);
    product.lhs = elements_.weights();
    product.lhs_index = b_.Index(0).id();
    SetRhs(product, values_, values);
    b_.Multiply(elements_.product(), b_.Index(0), product);
  }

  const FusedRegion& region_;
  const DotChain& chain_;
  const LiveColumns& live_;
  const ChainTiling& t_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ChainElements elements_;
  Operand rows_, columns_, values_;
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
