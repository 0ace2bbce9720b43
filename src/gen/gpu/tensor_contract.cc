// The kernel of a dot by asynchronous multiplies (tensor_tiling.h has the structure and the terms):
//
//   producer, one thread                      warpgroup
//     for each tile of the block                for each tile of the block
//       for each panel along K                    sums = 0
//         wait empty[stage]                       for each panel along K
//         expect the bytes of both operands         wait full[stage]
//         copy both to the stage                    start sums += lhs * rhs of the stage
//                                                   wait for the multiply of the panel before
//                                                   arrive at empty of that panel's stage
//                                                 for each 32 columns, by warp
//                                                   exchange sums with the adjacent thread
//                                                   compute and store the consumers
//
// Warpgroups that alternate have every second tile each. One waits for its `turn` before it waits
// for panels: the phases of `full` are numbered modulo two, so it must not be two phases behind.
// The copies run ahead by `stages` panels, over the ends of tiles, so while the warpgroups store
// the results of a tile, the panels of the next one are already coming. Panels beyond the operands
// are zeros.

#include "gen/gpu/tensor_contract.h"

#include "gen/dot_operand.h"
#include "gen/gpu/dot_panel.h"
#include "gen/gpu/dot_results.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/warp_roles.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

constexpr int64_t kWarpsOfGroup = kWarpgroupThreads / kWarpSize;
// Rows and columns of the results that the warp of a multiply has at once.
constexpr int64_t kWarpResultRows = MatrixMultiply::kFragmentRows,
                  kWarpResultColumns = MatrixMultiply::kFragmentColumns;
// Fragments of a chunk of results, and the sums that a thread has of them.
constexpr int64_t kFragmentsOfChunk = kResultColumns / kWarpResultColumns,
                  kSumsOfChunk = kResultColumns * kWarpResultRows / kWarpSize;
// Adjacent sums of a thread in a row of a fragment, its rows in a fragment, and the threads of such
// a row (PTX ISA, fragments of mma).
constexpr int64_t kPairOfSums = 2, kRowsOfThread = 2, kThreadsOfRow = 4;
// Sums of a thread in a fragment.
constexpr int64_t kSumsOfFragment = kRowsOfThread * kPairOfSums;
// Bits of a thread's number in the warp: the lowest one tells columns of a fragment, and from this
// one on, its row (PTX ISA).
constexpr int64_t kColumnBit = 0, kRowBit = 2;
// Results that a thread stores at once, at most. Chosen: rows of a pair of fragments then fill a
// sector of 32 bytes if elements have 2 bytes.
constexpr int64_t kMaxStoreLanes = 2 * kPairOfSums;
// Registers per thread of a producer that computes operands. Chosen: 16 chunks of 16 bytes are in
// flight.
constexpr int64_t kComputingRegisters = 104;
// Bytes of a chunk, the unit in which panels are swizzled (SwizzledByte).
constexpr int64_t kChunkBytes = 16;

class TensorContract {
 public:
  TensorContract(const FusedRegion& region, const Instr& dot, const TensorTiling& tiling,
                 const std::string& name)
      : region_(region),
        dot_(dot),
        dot_dims_(dot),
        t_(tiling),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        panels_(b_, emitter_, region, dot_dims_, tiling.type, /*tf32=*/false) {}

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
  struct Side {
    const TensorOperand* tensor = nullptr;
    DotOperand operand;
    bool is_lhs = false;
    ArrayId input{}, stages{};
    int64_t along = 0;  // rows (columns) of a tile
    int64_t size = 0;   // elements of a stage
  };

  void Declare() {
    lhs_ = DeclareSide("lhs_tiles", t_.lhs, 0, t_.rows);
    rhs_ = DeclareSide("rhs_tiles", t_.rhs, 1, t_.LoadedColumns());
    chunk_ = b_.Local("chunk", ScalarType::kF32, Space::kRegisters, kSumsOfChunk);
    store_lanes_ =
        std::min(VectorWidthFor(region_, GpuMachine(), dot_dims_.n, dot_dims_.m * dot_dims_.n),
                 kMaxStoreLanes);
    sums_ = b_.Local("sums", ScalarType::kF32, Space::kRegisters, t_.AccumulatorsPerThread());
    full_ = b_.Mbarriers("full", t_.stages, Arrivals() + (CopiesBeside() ? 1 : 0));
    empty_ = b_.Mbarriers("empty", t_.stages, t_.WarpgroupsOfTile() * kWarpsOfGroup);
    if (t_.Alternates()) turn_ = b_.Mbarriers("turn", t_.warpgroups, kWarpsOfGroup);
  }

  Side DeclareSide(const char* name, const TensorOperand& tensor, size_t operand, int64_t along) {
    Side side;
    side.tensor = &tensor;
    side.operand = DotOperand(dot_, dot_dims_, operand);
    side.is_lhs = operand == 0;
    side.along = along;
    side.size = along * t_.depth;
    if (tensor.IsBulk()) side.input = emitter_.InputOf(*tensor.array);
    side.stages = b_.Local(name, t_.type, Space::kShared, side.size * t_.stages,
                           MatrixMultiply::kPanelAlignment);
    return side;
  }

  // Calls body(number of the tile among those of the block) for each tile of the block, with its
  // position set; for every `step`-th tile from `first` on.
  template <typename Body>
  void ForTiles(Scalar first, int64_t step, Body&& body) {
    Scalar count = (b_.Index(t_.tiles() + t_.blocks - 1) - block_) / b_.Index(t_.blocks);
    if (step > 1) count = (count + b_.Index(step - 1) - first) / b_.Index(step);
    b_.For("i", LoopRole::kSerial, count, [&](Scalar j) {
      Scalar i = step > 1 ? j * b_.Index(step) + first : j;
      SetTile(block_ + i * b_.Index(t_.blocks));
      body(i, j);
    });
  }

  // Tiles go down the rows of a group of row tiles first, then on to the next column. The last
  // group may have fewer row tiles.
  void SetTile(Scalar tile) {
    Scalar of_matrix = tile % b_.Index(t_.row_tiles * t_.column_tiles);
    position_.batch = tile / b_.Index(t_.row_tiles * t_.column_tiles);
    Scalar in_group = of_matrix % b_.Index(t_.group * t_.column_tiles);
    Scalar first = of_matrix / b_.Index(t_.group * t_.column_tiles) * b_.Index(t_.group);
    Scalar rows = b_.Index(t_.group);
    // The minimum tells the range of quotients and remainders.
    if (t_.row_tiles % t_.group != 0)
      rows = GreaterOf(LesserOf(rows, b_.Index(t_.row_tiles) - first), b_.Index(1));
    position_.row = (first + in_group % rows) * b_.Index(t_.rows);
    position_.column = in_group / rows * b_.Index(t_.columns);
    position_.batch_at = Delinearized(b_, position_.batch,
                                      SizesAlong(dot_dims_.lhs_dims, dot_dims_.attrs.lhs_batch));
    panels_.SetBatch(position_.batch_at);
  }

  // The stage of panel k of the block's i-th tile, and the parity of its phase.
  struct Stage {
    Scalar index, parity;
  };
  Stage StageOf(Scalar i, Scalar k) {
    Scalar number = i * b_.Index(t_.panels) + k;
    return {number % b_.Index(t_.stages), number / b_.Index(t_.stages) % b_.Index(2)};
  }

  // ---- producer

  // One thread starts all copies. If operands are computed, all threads store their elements of a
  // stage, and the first one starts the other operand's copy.
  void Produce() {
    if (t_.warpgroups > 1) b_.LimitRegisters(ProducerRegisters());
    if (!Computes()) return b_.If(thread_ == b_.Index(0), [&] { FillStages(); });
    FillStages();
  }

  bool Computes() const { return !t_.lhs.IsBulk() || !t_.rhs.IsBulk(); }
  int64_t ProducerRegisters() const { return Computes() ? kComputingRegisters : kCopyRegisters; }
  // Whether one operand is computed and the other one copied.
  bool CopiesBeside() const { return t_.lhs.IsBulk() != t_.rhs.IsBulk(); }
  // Arrivals at `full`: of one thread, or of all warps of the producer.
  int64_t Arrivals() const { return Computes() ? kWarpsOfGroup : 1; }

  void FillStages() {
    ForTiles(b_.Index(0), 1, [&](Scalar i, Scalar) {
      b_.For("k", LoopRole::kSerial, b_.Index(t_.panels), [&](Scalar k) {
        Stage stage = StageOf(i, k);
        b_.Wait(empty_, stage.index, b_.Index(1) - stage.parity);
        if (Computes()) {
          if (CopiesBeside()) {
            b_.If(thread_ == b_.Index(0), [&] {
              b_.Arrive(full_, stage.index, CopiedBytes());
              StartCopies(stage, k);
            });
          }
          for (const Side* side : {&lhs_, &rhs_})
            if (!side->tensor->IsBulk()) Compute(*side, stage, k);
          b_.AsyncFence();
          b_.Barrier(BarrierScope::kWarp);
          b_.If(thread_ % b_.Index(kWarpSize) == b_.Index(0),
                [&] { b_.Arrive(full_, stage.index, 0); });
        } else {
          b_.Arrive(full_, stage.index, CopiedBytes());
          StartCopies(stage, k);
        }
      });
    });
  }

  int64_t CopiedBytes() const {
    int64_t elements = 0;
    for (const Side* side : {&lhs_, &rhs_}) elements += side->tensor->IsBulk() ? side->size : 0;
    return elements * BytesOf(t_.type);
  }

  void StartCopies(const Stage& stage, Scalar k) {
    if (lhs_.tensor->IsBulk()) Copy(lhs_, position_.row, k, stage);
    if (rhs_.tensor->IsBulk()) Copy(rhs_, position_.column, k, stage);
  }

  // Stores this thread's elements of a panel, where a swizzled copy would put them.
  void Compute(const Side& side, const Stage& stage, Scalar k) {
    const DotOperand& operand = side.operand;
    Scalar begin = side.is_lhs ? position_.row : position_.column;
    int64_t total = side.is_lhs ? dot_dims_.m : dot_dims_.n;
    int64_t lanes = ProducerLanes(operand, BytesOf(t_.type));
    int64_t of_line = t_.line() / lanes, vectors = side.size / lanes;
    b_.For("u", LoopRole::kUnrolled, b_.Index(vectors / kWarpgroupThreads), [&](Scalar u) {
      Scalar vector = u * b_.Index(kWarpgroupThreads) + thread_;
      Scalar line = vector / b_.Index(of_line),
             in_line = vector % b_.Index(of_line) * b_.Index(lanes);
      // Lines of panels along the free dimension are K, panel after panel.
      Scalar along = line, depth = in_line;
      if (!operand.k_is_minor) {
        along = line / b_.Index(t_.depth) * b_.Index(t_.line()) + in_line;
        depth = line % b_.Index(t_.depth);
      }
      PanelElements elements{.along = begin + along, .depth = k * b_.Index(t_.depth) + depth};
      elements.lanes = lanes;
      int64_t of_tile = side.is_lhs ? t_.rows : t_.columns;
      elements.checks_along = RoundUp(total, of_tile) - of_tile + side.along > total;
      elements.checks_depth = t_.panels * t_.depth != dot_dims_.k;
      Scalar to = stage.index * b_.Index(side.size) + SwizzledIndex(line, in_line);
      panels_.ForElements(operand, total, elements, [&](Scalar lane, Scalar value) {
        b_.Store(side.stages, to + lane, value);
      });
    });
  }

  int64_t ChunkElements() const { return kChunkBytes / BytesOf(t_.type); }

  // SwizzledByte, in elements of a line.
  Scalar SwizzledIndex(Scalar line, Scalar in_line) {
    Scalar chunk = in_line / b_.Index(ChunkElements());
    Scalar swizzled = chunk ^ (line % b_.Index(MatrixMultiply::kPanelBytes / kChunkBytes));
    return line * b_.Index(t_.line()) + swizzled * b_.Index(ChunkElements()) +
           in_line % b_.Index(ChunkElements());
  }

  // A K-major panel is one box; otherwise there is a box for each 128 bytes of rows (columns).
  void Copy(const Side& side, Scalar free, Scalar k, const Stage& stage) {
    int64_t boxes = side.tensor->is_k_major ? 1 : side.along / t_.line();
    Scalar begin = stage.index * b_.Index(side.size);
    for (int64_t i = 0; i < boxes; ++i) {
      TileCopy copy;
      copy.from = side.input;
      copy.to = side.stages;
      copy.swizzled = true;
      copy.to_index = (begin + b_.Index(i * t_.line() * t_.depth)).id();
      for (const TensorOperand::Dimension& dimension : side.tensor->dimensions)
        copy.dimensions.push_back(BoxOf(side, dimension, free + b_.Index(i * t_.line()), k));
      b_.Copy(full_, stage.index, std::move(copy));
    }
  }

  TileCopy::Dimension BoxOf(const Side& side, const TensorOperand::Dimension& dimension,
                            Scalar free, Scalar k) {
    TileCopy::Dimension box{
        .size = dimension.start + dimension.size, .stride = dimension.stride, .box = 1};
    Scalar at;
    switch (dimension.along) {
      case TensorOperand::Dimension::Along::kDepth:
        box.box = t_.depth;
        at = k * b_.Index(t_.depth);
        break;
      case TensorOperand::Dimension::Along::kFree:
        box.box = side.tensor->is_k_major ? side.along : t_.line();
        at = free;
        break;
      case TensorOperand::Dimension::Along::kBatch:
        at = dimension.is_all ? position_.batch : position_.batch_at[dimension.batch];
        break;
    }
    box.at = (at + b_.Index(dimension.start)).id();
    return box;
  }

  // ---- warpgroups

  void Consume() {
    if (t_.warpgroups > 1)
      b_.LimitRegisters(ConsumerRegisters(t_.consumers(), ProducerRegisters()));
    consumer_ = thread_ - b_.Index(kWarpgroupThreads);
    lane_ = consumer_ % b_.Index(kWarpSize);
    group_ = consumer_ / b_.Index(kWarpgroupThreads);
    bool alternates = t_.Alternates();
    ForTiles(alternates ? group_ : b_.Index(0), alternates ? t_.warpgroups : 1,
             [&](Scalar i, Scalar j) {
               // The turn for tile j is the phase j of group 1, and j - 1 of group 0.
               if (alternates)
                 b_.Wait(turn_, group_, (j + b_.Index(1) - group_) % b_.Index(t_.warpgroups));
               MakeSums(i);
               if (emitter_.failure().empty()) StoreTile();
             });
  }

  void MakeSums(Scalar i) {
    b_.For("s", LoopRole::kUnrolled, b_.Index(t_.AccumulatorsPerThread()),
           [&](Scalar s) { b_.Store(sums_, s, b_.Constant(ScalarType::kF32, 0)); });
    b_.For("k", LoopRole::kSerial, b_.Index(t_.panels), [&](Scalar k) {
      Stage stage = StageOf(i, k);
      b_.Wait(full_, stage.index, stage.parity);
      for (int64_t j = 0; j < t_.Multiplies(); ++j) Multiply(stage, j);
      b_.WaitMultiplies(sums_, t_.Multiplies());
      b_.If(
          b_.Index(0) < k, [&] { Release(StageOf(i, k - b_.Index(1))); }, /*uniform=*/false);
    });
    if (t_.Alternates()) ArriveOfWarp(turn_, b_.Index(t_.warpgroups - 1) - group_);
    b_.WaitMultiplies(sums_, 0);
    Release(StageOf(i, b_.Index(t_.panels - 1)));
  }

  // The j-th 64 rows of the warpgroup.
  void Multiply(const Stage& stage, int64_t j) {
    Scalar rows = GroupOfTile() * b_.Index(t_.Multiplies()) + b_.Index(j);
    MatrixMultiply product{.lhs = lhs_.stages, .rhs = rhs_.stages, .async = true};
    product.rows = kWarpgroupRows;
    product.columns = product.warp_columns = t_.columns;
    product.warp_rows = kWarpResultRows;
    product.depth = b_.Index(t_.depth).id();
    // 64 rows further: 64 lines of a K-major panel, or the next panel.
    int64_t step = (lhs_.tensor->is_k_major ? kWarpgroupRows : t_.depth) * t_.line();
    product.lhs_index = (stage.index * b_.Index(lhs_.size) + rows * b_.Index(step)).id();
    product.rhs_index = (stage.index * b_.Index(rhs_.size)).id();
    product.lhs_row_stride = lhs_.tensor->is_k_major ? t_.line() : 1;
    product.lhs_column_stride = lhs_.tensor->is_k_major ? 1 : t_.line();
    product.rhs_row_stride = rhs_.tensor->is_k_major ? 1 : t_.line();
    product.rhs_column_stride = rhs_.tensor->is_k_major ? t_.line() : 1;
    product.lhs_panel = PanelOf(lhs_);
    product.rhs_panel = PanelOf(rhs_);
    b_.Multiply(sums_, b_.Index(j * product.AccumulatorsPerThread()), product);
  }

  // The number of the warpgroup among those that share the tile.
  Scalar GroupOfTile() { return t_.Alternates() ? b_.Index(0) : group_; }

  int64_t PanelOf(const Side& side) const {
    return (side.tensor->is_k_major ? side.along : t_.depth) * t_.line();
  }

  // All threads of the warp have waited for the multiplies that read the stage.
  void Release(const Stage& stage) { ArriveOfWarp(empty_, stage.index); }

  void ArriveOfWarp(ArrayId mbarriers, Scalar index) {
    b_.Barrier(BarrierScope::kWarp);
    b_.If(lane_ == b_.Index(0), [&] { b_.Arrive(mbarriers, index); });
  }

  // ---- results

  // A warp has 16 rows of each 64 of its warpgroup. Its results are stored 16 x 32 at a time, a
  // chunk. Shared memory is left to the multiplies: they need all of its bandwidth.
  void StoreTile() {
    int64_t chunks = t_.columns / kResultColumns;
    Scalar warp = consumer_ / b_.Index(kWarpSize);
    Scalar in_group = warp % b_.Index(kWarpsOfGroup) * b_.Index(kWarpResultRows);
    Scalar of_group = GroupOfTile() * b_.Index(t_.inner_rows);
    // A loop, although the registers of sums must be named: the consumers' code is emitted once.
    b_.For("c", LoopRole::kSerial, b_.Index(t_.Multiplies() * chunks), [&](Scalar c) {
      b_.For("u", LoopRole::kUnrolled, b_.Index(t_.Multiplies() * chunks), [&](Scalar u) {
        b_.If(
            u == c, [&] { TakeSums(u); }, /*uniform=*/false);
      });
      ExchangePairs();
      Scalar row = of_group + c / b_.Index(chunks) * b_.Index(kWarpgroupRows) + in_group;
      StoreChunk(position_.row + row,
                 position_.column + c % b_.Index(chunks) * b_.Index(kResultColumns));
    });
  }

  bool StoresVectors() const { return store_lanes_ == kMaxStoreLanes; }

  // A thread has two adjacent sums of each fragment in the rows lane / 4 and lane / 4 + 8
  // (AccumulatorPosition): sum (2 f + h) * 2 + l of the chunk is in fragment f, column 2 (lane % 4)
  // + l, and the higher row if h = 1.
  void TakeSums(Scalar u) {
    b_.For("s", LoopRole::kUnrolled, b_.Index(kSumsOfChunk),
           [&](Scalar s) { b_.Store(chunk_, s, b_.Read(sums_, u * b_.Index(kSumsOfChunk) + s)); });
  }

  // Without it, a warp stores 8 rows of 8 columns, as fragments are. Pairs of threads exchange sums
  // so that it stores fewer rows and more columns: fuller sectors of 32 bytes. Thread t has the
  // pairs of sums (f, h), f < 4 being a fragment. Exchanging a bit of t and one of f means that the
  // thread whose bit is 0 sends the pair whose bit is 1, and gets the other thread's pair whose
  // bit is 0.
  // With vectors of 4, bit 0 of t (columns) and of f change places: a thread has 4 columns, a row
  // 16. Otherwise bits 2 and 3 of t (rows) and bits 0 and 1 of f: 2 rows of 32 columns.
  void ExchangePairs() {
    if (StoresVectors()) return Exchange(kColumnBit, 0);
    Exchange(kRowBit, 0);
    Exchange(kRowBit + 1, 1);
  }

  void Exchange(int64_t thread_bit, int64_t fragment_bit) {
    Scalar is_high = lane_ / b_.Index(int64_t{1} << thread_bit) % b_.Index(2) == b_.Index(1);
    for (int64_t f = 0; f < kFragmentsOfChunk; ++f)
      for (int64_t i = 0; i < kSumsOfFragment && (f >> fragment_bit & 1) == 0; ++i) {
        Scalar low_at = b_.Index(f * kSumsOfFragment + i),
               high_at = b_.Index((f + (1 << fragment_bit)) * kSumsOfFragment + i);
        Scalar low = b_.Read(chunk_, low_at), high = b_.Read(chunk_, high_at);
        Scalar received =
            b_.Shuffle(Choose(is_high, low, high), b_.Index(int64_t{1} << thread_bit));
        b_.Store(chunk_, low_at, Choose(is_high, received, low));
        b_.Store(chunk_, high_at, Choose(is_high, high, received));
      }
  }

  // Stores `store_lanes_` adjacent results at a time.
  void StoreChunk(Scalar row, Scalar column) {
    b_.For("g", LoopRole::kUnrolled, b_.Index(kSumsOfChunk / store_lanes_), [&](Scalar g) {
      Scalar pair = StoresVectors() ? g : g * b_.Index(store_lanes_) / b_.Index(kPairOfSums);
      Scalar high = pair % b_.Index(kRowsOfThread), fragment = pair / b_.Index(kRowsOfThread);
      Scalar in_row = lane_ % b_.Index(kThreadsOfRow), in_column = lane_ / b_.Index(kThreadsOfRow);
      Scalar i, j;
      if (StoresVectors()) {
        i = in_column;
        j = (fragment * b_.Index(2) + in_row % b_.Index(2)) * b_.Index(kWarpResultColumns) +
            in_row / b_.Index(2) * b_.Index(kMaxStoreLanes);
      } else {
        Scalar of_row = b_.Index(kFragmentsOfChunk);  // exchanged with the row of the thread
        i = fragment + in_column / of_row * of_row;
        j = in_column % of_row * b_.Index(kWarpResultColumns) + in_row * b_.Index(kPairOfSums);
        if (store_lanes_ == 1) j = j + g % b_.Index(kPairOfSums);
      }
      i = i + high * b_.Index(kWarpResultRows / kRowsOfThread);
      Scalar inside = b_.ConstantBits(ScalarType::kPred, 1);
      if (dot_dims_.m % t_.rows != 0) inside = inside & (row + i < b_.Index(dot_dims_.m));
      if (dot_dims_.n % t_.columns != 0) inside = inside & (column + j < b_.Index(dot_dims_.n));
      b_.If(inside, [&] {
        ForLanes(b_, store_lanes_, [&](Scalar l) {
          DotPosition at = position_;
          at.row = row + i;
          at.column = column + j + l;
          Scalar sum = store_lanes_ == 1 ? g % b_.Index(kPairOfSums) : l % b_.Index(kPairOfSums),
                 from = pair;
          if (StoresVectors())
            from = (fragment * b_.Index(2) + l / b_.Index(kPairOfSums)) * b_.Index(kRowsOfThread) +
                   high;
          StoreDotResult(emitter_, region_, dot_, dot_dims_, at,
                         b_.Read(chunk_, from * b_.Index(kPairOfSums) + sum));
        });
      });
    });
  }

  const FusedRegion& region_;
  const Instr& dot_;
  DotDimensions dot_dims_;
  const TensorTiling& t_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  DotPanels panels_;
  Side lhs_, rhs_;
  int64_t store_lanes_ = 1;  // adjacent results that a thread stores at once
  ArrayId chunk_{}, sums_{}, full_{}, empty_{}, turn_{};
  DotPosition position_;
  Scalar block_, thread_, consumer_, group_, lane_;
};

}  // namespace

BuildOutcome BuildTensorContract(const FusedRegion& region, const Instr& dot,
                                 const TensorTiling& tiling, const std::string& name) {
  return TensorContract(region, dot, tiling, name).Build();
}

}  // namespace tokamak::gpu
