// The GPU contract generator: a dot with the elementwise code that produces its operands and uses
// its results.
//
//   for each batch and tile of the result (a block)
//     for each panel along K
//       each thread computes its elements of both operands' next panel in registers
//       sums += lhs * rhs of this panel          (the block-wide multiply of kernel IR)
//       the elements are stored to the other half of shared memory (double buffering)
//     sums are stored to shared memory; each thread takes adjacent elements of a row, computes
//     their consumers, and stores them
//
// A narrow tiling (contract_tiling.h) has all or much of K in shared memory at once; each thread
// multiplies a few rows and columns along its slice of K, four elements at a time.
//
// A panel in shared memory has the layout of its operand in memory: contiguous along K, or along
// the rows (columns) of the result. Along K, panels are padded with zeros; rows and columns beyond
// the result are duplicates of others and not stored.

#include "gen/contract.h"

#include <algorithm>

#include "gen/dot_operand.h"
#include "gen/gpu/chain_contract.h"
#include "gen/gpu/chain_tiling.h"
#include "gen/gpu/contract_tiling.h"
#include "gen/gpu/dot_panel.h"
#include "gen/gpu/dot_results.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/tensor_contract.h"
#include "gen/gpu/tensor_epilogue.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

class BlockContract {
 public:
  BlockContract(const FusedRegion& region, const Instr& dot, const GpuDotTiling& tiling,
                const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        dot_(dot),
        dot_dims_(dot),
        t_(tiling),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        panels_(b_, emitter_, region, dot_dims_, tiling.type, tiling.tf32) {
    if (t_.is_split_k()) return;
    product_.rows = t_.rows;
    product_.columns = t_.columns;
    product_.warp_rows = t_.inner_rows;
    product_.warp_columns = t_.inner_columns;
    product_.tf32 = t_.tf32;
    product_.depth = b_.Index(t_.panel_depth).id();
  }

  BuildOutcome Build() {
    lhs_ = MakeOperand(0);
    rhs_ = MakeOperand(1);
    sums_ = b_.Local("sums", SumType(), Space::kRegisters,
                     t_.is_split_k() ? NarrowSums() * t_.vector : product_.AccumulatorsPerThread());
    if (t_.is_split_k())
      partial_sums_ =
          b_.Local("partial_sums", SumType(), Space::kShared, t_.k_slices * t_.rows * t_.columns);
    results_pitch_ = ResultsPitchOf(t_);
    results_ = b_.Local("results", SumType(), Space::kShared, t_.rows * results_pitch_);
    int64_t grid_blocks = dot_dims_.batch * t_.row_tiles * t_.column_tiles;
    b_.For("tile", LoopRole::kGrid, b_.Index(grid_blocks), [&](Scalar tile) {
      SetTile(tile);
      batch_at_ =
          Delinearized(b_, batch_, SizesAlong(dot_dims_.lhs_dims, dot_dims_.attrs.lhs_batch));
      panels_.SetBatch(batch_at_);
      b_.For("t", LoopRole::kThread, b_.Index(Threads()), [&](Scalar t) {
        thread_ = t;
        lhs_.begin = row_;
        rhs_.begin = column_;
        if (t_.is_split_k())
          MakeNarrowSums();
        else
          MakeSums();
        if (emitter_.failure().empty()) Finish();
      });
    });
    BuildOutcome outcome =
        FinishRegionKernel(b_, emitter_, region_, grid_blocks, /*writes_once=*/false);
    if (!outcome.built) return outcome;
    FinalizeGpuKernel(outcome.built->kernel);
    FindResultAliases(region_, dot_, *outcome.built);
    return outcome;
  }

 private:
  // One operand, in shared-memory panels.
  struct TileOperand : DotOperand, PanelLayout {
    ArrayId block{}, next{};  // panels, one per stage; a thread's elements of the next one
    Scalar begin;
  };

  // Blocks of a group go down its row tiles first, then on to the next column tile.
  void SetTile(Scalar tile) {
    int64_t groups = t_.row_tiles / t_.group;
    Scalar rest = tile / b_.Index(t_.column_tiles * t_.group);
    if (t_.group == 1) {
      column_ = tile % b_.Index(t_.column_tiles) * b_.Index(t_.columns);
      row_ = rest % b_.Index(t_.row_tiles) * b_.Index(t_.rows);
    } else {
      Scalar in_group = tile % b_.Index(t_.column_tiles * t_.group);
      Scalar first = rest % b_.Index(groups) * b_.Index(t_.group);
      column_ = in_group / b_.Index(t_.group) * b_.Index(t_.columns);
      row_ = (first + in_group % b_.Index(t_.group)) * b_.Index(t_.rows);
    }
    batch_ = rest / b_.Index(groups);
  }

  ScalarType SumType() const { return *AccumulatorScalarType(t_.type); }
  int64_t Threads() const { return t_.threads; }
  // Narrow: results of a thread, each kept as `vector` partial sums.
  int64_t NarrowSums() const { return t_.inner_rows * t_.inner_columns; }
  bool IsDoubleBuffered() const { return t_.stages > 1; }

  TileOperand MakeOperand(size_t operand) {
    TileOperand side;
    static_cast<DotOperand&>(side) = DotOperand(dot_, dot_dims_, operand);
    bool left = operand == 0;
    static_cast<PanelLayout&>(side) = PanelLayoutOf(t_, dot_dims_, left, side.k_is_minor);
    side.block = b_.Local(left ? "lhs" : "rhs", t_.type, Space::kShared, side.size * t_.stages);
    if (t_.is_split_k()) return side;
    side.next = b_.Local(left ? "lhs_next" : "rhs_next", t_.type, Space::kRegisters,
                         CeilDiv(side.inner * side.outer, side.lanes * Threads()));
    return side;
  }

  // ---- sums

  void MakeSums() {
    b_.For("s", LoopRole::kUnrolled, b_.Index(product_.AccumulatorsPerThread()),
           [&](Scalar s) { b_.Store(sums_, s, b_.Constant(SumType(), 0)); });
    if (t_.panels > 1 && !IsDoubleBuffered()) return MakeSumsInOneStage();
    Scalar blocks = b_.Index(t_.panels);
    // Iteration i loads panel i and multiplies panel i - 1.
    b_.For("i", LoopRole::kSerial, b_.Index(t_.panels + 1), [&](Scalar i) {
      Scalar more = i < blocks;
      b_.If(
          more,
          [&] {
            for (TileOperand* side : {&lhs_, &rhs_}) Fetch(*side, i);
          },
          /*uniform=*/true);
      b_.If(
          b_.Index(0) < i, [&] { Multiply((i + b_.Index(1)) % b_.Index(2)); }, /*uniform=*/true);
      b_.If(
          more,
          [&] {
            for (TileOperand* side : {&lhs_, &rhs_}) Put(*side, i % b_.Index(2));
          },
          /*uniform=*/true);
      b_.Barrier(BarrierScope::kBlock);
    });
  }

  // A panel is loaded when all threads have multiplied the one before.
  void MakeSumsInOneStage() {
    b_.For("i", LoopRole::kSerial, b_.Index(t_.panels), [&](Scalar i) {
      for (TileOperand* side : {&lhs_, &rhs_}) Fetch(*side, i);
      for (TileOperand* side : {&lhs_, &rhs_}) Put(*side, b_.Index(0));
      b_.Barrier(BarrierScope::kBlock);
      Multiply(b_.Index(0));
      b_.Barrier(BarrierScope::kBlock);
    });
  }

  // Calls body(index of the vector, line, position in the line) for each vector of a panel that
  // belongs to a thread.
  template <typename Body>
  void ForVectors(const TileOperand& side, Body&& body) {
    int64_t of_line = side.inner / side.lanes, all = of_line * side.outer;
    int64_t threads = Threads();
    b_.For("u", LoopRole::kUnrolled, b_.Index(CeilDiv(all, threads)), [&](Scalar u) {
      Scalar vector = u * b_.Index(threads) + thread_;
      auto at = [&] {
        Scalar line = vector / b_.Index(of_line);
        body(u, line, vector % b_.Index(of_line) * b_.Index(side.lanes));
      };
      if (all % threads == 0) return at();
      b_.If(vector < b_.Index(all), at);
    });
  }

  void Fetch(const TileOperand& side, Scalar i) {
    FetchEach(side, i, [&](Scalar u, Scalar, Scalar, Scalar, Scalar value) {
      b_.Store(side.next, u, value);
    });
  }

  // Calls body(index of the vector, line, position in the line, lane, value) for each element of
  // panel i that belongs to a thread.
  template <typename Body>
  void FetchEach(const TileOperand& side, Scalar i, Body&& body) {
    ForVectors(side, [&](Scalar u, Scalar line, Scalar index) {
      Scalar along = side.begin + (side.k_is_minor ? line : index);
      Scalar depth = i * b_.Index(t_.panel_depth) + (side.k_is_minor ? index : line);
      PanelElements elements{.along = along, .depth = depth, .lanes = side.lanes};
      elements.checks_along = side.total % side.along != 0;
      elements.checks_depth = t_.panels * t_.panel_depth != dot_dims_.k;
      panels_.ForElements(side, side.total, elements,
                          [&](Scalar lane, Scalar value) { body(u, line, index, lane, value); });
    });
  }

  Scalar Half(const TileOperand& side, Scalar half) {
    return IsDoubleBuffered() ? half * b_.Index(side.size) : b_.Index(0);
  }

  void Put(const TileOperand& side, Scalar half) {
    ForVectors(side, [&](Scalar u, Scalar line, Scalar index) {
      Scalar at = Half(side, half) + line * b_.Index(side.pitch) + index;
      ForLanes(b_, side.lanes,
               [&](Scalar lane) { b_.Store(side.block, at + lane, b_.Read(side.next, u)); });
    });
  }

  void Multiply(Scalar half) {
    product_.lhs = lhs_.block;
    product_.rhs = rhs_.block;
    product_.lhs_index = Half(lhs_, half).id();
    product_.rhs_index = Half(rhs_, half).id();
    product_.lhs_row_stride = lhs_.k_is_minor ? lhs_.pitch : 1;
    product_.lhs_column_stride = lhs_.k_is_minor ? 1 : lhs_.pitch;
    product_.rhs_column_stride = rhs_.k_is_minor ? rhs_.pitch : 1;
    product_.rhs_row_stride = rhs_.k_is_minor ? 1 : rhs_.pitch;
    b_.Multiply(sums_, b_.Index(0), product_);
  }

  // ---- narrow tilings

  void MakeNarrowSums() {
    Scalar zero = b_.Constant(SumType(), 0);
    b_.For("s", LoopRole::kUnrolled, b_.Index(NarrowSums() * t_.vector),
           [&](Scalar s) { b_.Store(sums_, s, zero); });
    b_.For("i", LoopRole::kSerial, b_.Index(t_.panels), [&](Scalar i) {
      for (TileOperand* side : {&lhs_, &rhs_}) {
        FetchEach(*side, i, [&](Scalar, Scalar line, Scalar index, Scalar lane, Scalar value) {
          Scalar along = side->k_is_minor ? line : index + lane;
          Scalar depth = side->k_is_minor ? index + lane : line;
          b_.Store(side->block, along * b_.Index(side->pitch) + depth, value);
        });
      }
      b_.Barrier(BarrierScope::kBlock);
      MultiplyNarrow();
      if (t_.panels > 1) b_.Barrier(BarrierScope::kBlock);
    });
  }

  // Rows and columns of a thread are strided by the number of threads along them.
  Scalar NarrowRow(int64_t i) {
    int64_t side_tiles = t_.rows / t_.inner_rows;
    return thread_ % b_.Index(t_.ThreadsPerSlice()) % b_.Index(side_tiles) +
           b_.Index(i * side_tiles);
  }
  Scalar NarrowColumn(int64_t j) {
    int64_t side_tiles = t_.rows / t_.inner_rows;
    return thread_ % b_.Index(t_.ThreadsPerSlice()) / b_.Index(side_tiles) +
           b_.Index(j * (t_.columns / t_.inner_columns));
  }

  void MultiplyNarrow() {
    Scalar slice = thread_ / b_.Index(t_.ThreadsPerSlice());
    b_.For("u", LoopRole::kSerial, b_.Index(t_.panel_depth / (t_.k_slices * t_.vector)),
           [&](Scalar u) {
             Scalar depth = (u * b_.Index(t_.k_slices) + slice) * b_.Index(t_.vector);
             ForLanes(b_, t_.vector, [&](Scalar lane) { MultiplyLane(depth, lane); });
           });
  }

  void MultiplyLane(Scalar depth, Scalar lane) {
    std::vector<Scalar> left, right;
    for (int64_t i = 0; i < std::max(t_.inner_rows, t_.inner_columns); ++i) {
      if (i < t_.inner_rows)
        left.push_back(b_.Read(lhs_.block, NarrowRow(i) * b_.Index(lhs_.pitch) + depth + lane));
      if (i < t_.inner_columns)
        right.push_back(b_.Read(rhs_.block, NarrowColumn(i) * b_.Index(rhs_.pitch) + depth + lane));
    }
    for (int64_t s = 0; s < NarrowSums(); ++s) {
      Scalar at = b_.Index(s * t_.vector) + lane;
      b_.Store(sums_, at,
               Fma(left[static_cast<size_t>(s / t_.inner_columns)],
                   right[static_cast<size_t>(s % t_.inner_columns)], b_.Read(sums_, at)));
    }
  }

  // The sum of the partial sums [begin, begin + count), a power of two, added in pairs.
  Scalar AddPartialSums(int64_t begin, int64_t count) {
    if (count == 1) return b_.Read(sums_, b_.Index(begin));
    // Separate statements: the order of reads must not depend on the compiler.
    Scalar second = AddPartialSums(begin + count / 2, count / 2);
    Scalar first = AddPartialSums(begin, count / 2);
    return first + second;
  }

  // Adds the sums of all slices.
  void JoinSlices() {
    Scalar slice = thread_ / b_.Index(t_.ThreadsPerSlice());
    int64_t all = t_.rows * t_.columns;
    for (int64_t s = 0; s < NarrowSums(); ++s) {
      Scalar at = NarrowRow(s / t_.inner_columns) * b_.Index(t_.columns) +
                  NarrowColumn(s % t_.inner_columns);
      b_.Store(partial_sums_, slice * b_.Index(all) + at, AddPartialSums(s * t_.vector, t_.vector));
    }
    b_.Barrier(BarrierScope::kBlock);
    b_.For("v", LoopRole::kUnrolled, b_.Index(CeilDiv(all, Threads())), [&](Scalar v) {
      Scalar at = v * b_.Index(Threads()) + thread_;
      auto join = [&] {
        b_.Store(sums_, b_.Index(0), b_.Read(partial_sums_, at));
        b_.For("k", LoopRole::kUnrolled, b_.Index(t_.k_slices - 1), [&](Scalar k) {
          Scalar more = b_.Read(partial_sums_, (k + b_.Index(1)) * b_.Index(all) + at);
          b_.Store(sums_, b_.Index(0), b_.Read(sums_, b_.Index(0)) + more);
        });
        Scalar row = at / b_.Index(t_.columns), column = at % b_.Index(t_.columns);
        b_.Store(results_, row * b_.Index(results_pitch_) + column, b_.Read(sums_, b_.Index(0)));
      };
      if (all % Threads() == 0) return join();
      b_.If(at < b_.Index(all), join);
    });
  }

  // ---- consumers of the sums

  void Finish() {
    if (t_.is_split_k())
      JoinSlices();
    else
      PutSums();
    b_.Barrier(BarrierScope::kBlock);
    StoreResults();
  }

  void PutSums() {
    b_.For("s", LoopRole::kUnrolled, b_.Index(product_.AccumulatorsPerThread()), [&](Scalar s) {
      AccumulatorPosition<Scalar> at(product_, thread_, s, [&](int64_t x) { return b_.Index(x); });
      b_.Store(results_, at.row * b_.Index(results_pitch_) + at.column, b_.Read(sums_, s));
    });
  }

  void StoreResults() {
    int64_t lanes = std::min(
        VectorWidthFor(region_, machine_, dot_dims_.n, dot_dims_.m * dot_dims_.n), t_.columns);
    int64_t of_row = t_.columns / lanes, all = of_row * t_.rows, threads = Threads();
    b_.For("v", LoopRole::kSerial, b_.Index(CeilDiv(all, threads)), [&](Scalar v) {
      Scalar vector = v * b_.Index(threads) + thread_;
      Scalar i = vector / b_.Index(of_row), j = vector % b_.Index(of_row) * b_.Index(lanes);
      Scalar inside = b_.ConstantBits(ScalarType::kPred, 1);
      if (all % threads != 0) inside = inside & (vector < b_.Index(all));
      if (dot_dims_.m % t_.rows != 0) inside = inside & (row_ + i < b_.Index(dot_dims_.m));
      if (dot_dims_.n % t_.columns != 0) inside = inside & (column_ + j < b_.Index(dot_dims_.n));
      b_.If(inside, [&] { ForLanes(b_, lanes, [&](Scalar lane) { StoreResult(i, j + lane); }); });
    });
  }

  void StoreResult(Scalar i, Scalar j) {
    Scalar sum = b_.Read(results_, i * b_.Index(results_pitch_) + j);
    StoreDotResult(emitter_, region_, dot_, dot_dims_, {batch_at_, batch_, row_ + i, column_ + j},
                   sum);
  }

  const FusedRegion& region_;
  const Machine& machine_;
  const Instr& dot_;
  DotDimensions dot_dims_;
  GpuDotTiling t_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  DotPanels panels_;
  MatrixMultiply product_;
  TileOperand lhs_, rhs_;
  ArrayId sums_{}, results_{}, partial_sums_{};
  int64_t results_pitch_ = 0;
  Coordinates batch_at_;
  Scalar batch_, row_, column_, thread_;
};

// With asynchronous multiplies. `schedule`: if not null, exactly this one.
BuildOutcome BuildTensor(const FusedRegion& region, const Instr& dot, const DotDimensions& dot_dims,
                         const Schedule* schedule, const Machine& machine,
                         const std::string& name) {
  if (schedule != nullptr && schedule->staging != Staging::kBulk) return {};
  TensorDot tensor = TensorDotOf(region, dot, dot_dims);
  std::vector<Schedule> all;
  if (schedule == nullptr) all = TensorSchedules(tensor, machine);
  if (schedule != nullptr) all = {*schedule};
  if (all.empty()) return {std::nullopt, "staging: no tiles for bulk copies"};
  TensorTiling tiling;
  if (std::string why = ExpandTensorSchedule(tensor, all[0], machine, tiling); !why.empty())
    return {std::nullopt, why};
  BuildOutcome outcome = BuildTensorContract(region, dot, tiling, name);
  if (outcome.built) outcome.built->schedule = all[0];
  return outcome;
}

}  // namespace

BuildOutcome BuildContract(const FusedRegion& region, const Schedule* schedule,
                           const Machine& machine, const std::string& name) {
  if (HasSeveralDots(region)) return BuildChain(region, schedule, machine, name);
  const Instr* dot = nullptr;
  if (std::string why = FindDot(region, machine, dot); !why.empty()) return {std::nullopt, why};
  DotDimensions dot_dims(*dot);
  if (BuildOutcome tensor = BuildTensor(region, *dot, dot_dims, schedule, machine, name);
      tensor.built || (schedule != nullptr && schedule->staging == Staging::kBulk))
    return tensor;
  Schedule chosen = schedule == nullptr ? PreferredDotSchedule(*dot, dot_dims, machine) : *schedule;
  GpuDotTiling tiling;
  if (std::string why = ExpandDotSchedule(*dot, dot_dims, chosen, machine, tiling); !why.empty())
    return {std::nullopt, why};
  BuildOutcome outcome = BlockContract(region, *dot, tiling, machine, name).Build();
  if (outcome.built) outcome.built->schedule = chosen;
  return outcome;
}

std::vector<Schedule> ContractSchedules(const FusedRegion& region, const Machine& machine) {
  if (HasSeveralDots(region)) return ChainSchedules(region, machine);
  const Instr* dot = nullptr;
  if (!FindDot(region, machine, dot).empty()) return {};
  DotDimensions dot_dims(*dot);
  std::vector<Schedule> all = TensorSchedules(TensorDotOf(region, *dot, dot_dims), machine);
  std::ranges::copy(DotSchedules(*dot, dot_dims, machine), std::back_inserter(all));
  return all;
}

}  // namespace tokamak::gpu
