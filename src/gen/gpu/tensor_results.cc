#include "gen/gpu/tensor_results.h"

#include <algorithm>

namespace tokamak::gpu {
namespace {

constexpr int64_t kResultWarps = kWarpgroupThreads / kWarpSize;  // of a warpgroup
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
// Operations of the consumers, in units of ops.def, up to which their code is emitted for each
// chunk. Chosen: some instructions per result, less than the moves between registers of a loop.
constexpr int64_t kUnrolledFlops = 4;

// The dot and the instructions that depend on it.
std::vector<const Instr*> ConsumersOf(const FusedRegion& region, const Instr& dot) {
  std::vector<const Instr*> consumers = {&dot};
  auto depends = [&](const Instr* operand) {
    return std::ranges::find(consumers, operand) != consumers.end();
  };
  for (const Instr* instr : region.instrs)
    if (std::ranges::any_of(instr->operands(), depends)) consumers.push_back(instr);
  return consumers;
}

}  // namespace

void TensorResults::Declare() {
  chunk_ = b_.Local("chunk", t_.form.SumType(), Space::kRegisters, kSumsOfChunk);
  store_lanes_ =
      std::min(VectorWidthFor(region_, GpuMachine(), dot_dims_.n, dot_dims_.m * dot_dims_.n),
               kMaxStoreLanes);
  int64_t warps = t_.warpgroups * kResultWarps;
  bool stages = t_.columns % kPieceColumns == 0;
  epilogue_.Declare(stages ? staged_.LeastBytes(warps) : 0);
  if (stages) staged_.Declare(warps);
  consumers_ = ConsumersOf(region_, dot_);
  layout_ = LayoutOf();
  if (layout_ == Layout::kFragments) store_lanes_ = kPairOfSums;
}

// Shared memory takes the fragments without conflicts. Memory wants fuller sectors.
TensorResults::Layout TensorResults::LayoutOf() const {
  bool reads = AnyOperand([&](const Instr& operand) {
    return operand.shape().IsArray() &&
           operand.shape().ElementCount() == dot_.shape().ElementCount() &&
           !epilogue_.Covers(operand);
  });
  if (staged_.HasAllRoots() && !reads) return Layout::kFragments;
  return store_lanes_ == kMaxStoreLanes ? Layout::kVectors : Layout::kRows;
}

// The consumers' code is emitted once, unless it is short.
LoopRole TensorResults::ChunkLoop() const {
  int64_t flops = 0;
  for (const Instr* instr : consumers_)
    if (instr != &dot_) flops += instr->info().flops_per_element;
  return flops > kUnrolledFlops ? LoopRole::kSerial : LoopRole::kUnrolled;
}

// A warp has 16 rows of each 64 of its warpgroup. Its results are stored 16 x 32 at a time, a
// chunk. Two chunks are a piece.
DotPosition TensorResults::PositionOf(Scalar chunk) const {
  Scalar chunks = b_.Index(t_.columns / kResultColumns);
  DotPosition at = tile_.position;
  at.row = at.row + group_ * b_.Index(t_.inner_rows) + chunk / chunks * b_.Index(kWarpgroupRows) +
           warp_ % b_.Index(kResultWarps) * b_.Index(kWarpResultRows);
  at.column = at.column + chunk % chunks * b_.Index(kResultColumns);
  return at;
}

void TensorResults::Begin(const Tile& tile, Scalar consumer, Scalar group) {
  tile_ = tile;
  group_ = group;
  lane_ = consumer % b_.Index(kWarpSize);
  warp_ = consumer / b_.Index(kWarpSize);
  epilogue_.Begin({warp_, lane_, tile.number, this});
}

void TensorResults::Store(ArrayId sums) {
  int64_t of_piece = staged_.HasRoots() ? kPieceColumns / kResultColumns : 1;
  int64_t chunks = t_.columns / kResultColumns, pieces = t_.Multiplies() * chunks / of_piece;
  b_.For("p", ChunkLoop(), b_.Index(pieces), [&](Scalar p) {
    Scalar first = p * b_.Index(of_piece);
    if (staged_.HasRoots()) staged_.Begin(warp_, lane_, tile_.number * b_.Index(pieces) + p);
    b_.For("c", ChunkLoop(), b_.Index(of_piece), [&](Scalar c) {
      TakeChunk(sums, first + c, pieces * of_piece);
      ExchangePairs();
      epilogue_.Await(first + c);
      StoreChunk(PositionOf(first + c), c * b_.Index(kResultColumns));
      epilogue_.Release();
    });
    if (staged_.HasRoots()) staged_.End(lane_, PositionOf(first));
  });
}

void TensorResults::Finish(Scalar consumer) {
  if (staged_.HasRoots()) staged_.Finish(consumer % b_.Index(kWarpSize));
}

// The registers of sums must be named by constants.
void TensorResults::TakeChunk(ArrayId sums, Scalar chunk, int64_t count) {
  if (ChunkLoop() == LoopRole::kUnrolled) return TakeSums(sums, chunk);
  b_.For("u", LoopRole::kUnrolled, b_.Index(count), [&](Scalar u) {
    b_.If(
        u == chunk, [&] { TakeSums(sums, u); }, /*uniform=*/false);
  });
}

// A thread has two adjacent sums of each fragment in the rows lane / 4 and lane / 4 + 8
// (AccumulatorPosition): sum (2 f + h) * 2 + l of the chunk is in fragment f, column 2 (lane % 4)
// + l, and the higher row if h = 1.
void TensorResults::TakeSums(ArrayId sums, Scalar u) {
  b_.For("s", LoopRole::kUnrolled, b_.Index(kSumsOfChunk),
         [&](Scalar s) { b_.Store(chunk_, s, b_.Read(sums, u * b_.Index(kSumsOfChunk) + s)); });
}

// Without it, a warp stores 8 rows of 8 columns, as fragments are. Pairs of threads exchange sums
// so that it stores fewer rows and more columns: fuller sectors of 32 bytes. Thread t has the
// pairs of sums (f, h), f < 4 being a fragment. Exchanging a bit of t and one of f means that the
// thread whose bit is 0 sends the pair whose bit is 1, and gets the other thread's pair whose
// bit is 0.
// With vectors of 4, bit 0 of t (columns) and of f change places: a thread has 4 columns, a row
// 16. Otherwise bits 2 and 3 of t (rows) and bits 0 and 1 of f: 2 rows of 32 columns.
void TensorResults::ExchangePairs() {
  if (layout_ == Layout::kFragments) return;
  if (layout_ == Layout::kVectors) return Exchange(kColumnBit, 0);
  Exchange(kRowBit, 0);
  Exchange(kRowBit + 1, 1);
}

void TensorResults::Exchange(int64_t thread_bit, int64_t fragment_bit) {
  Scalar is_high = lane_ / b_.Index(int64_t{1} << thread_bit) % b_.Index(2) == b_.Index(1);
  for (int64_t f = 0; f < kFragmentsOfChunk; ++f)
    for (int64_t i = 0; i < kSumsOfFragment && (f >> fragment_bit & 1) == 0; ++i) {
      Scalar low_at = b_.Index(f * kSumsOfFragment + i),
             high_at = b_.Index((f + (1 << fragment_bit)) * kSumsOfFragment + i);
      Scalar low = b_.Read(chunk_, low_at), high = b_.Read(chunk_, high_at);
      Scalar received = b_.Shuffle(Choose(is_high, low, high), b_.Index(int64_t{1} << thread_bit));
      b_.Store(chunk_, low_at, Choose(is_high, received, low));
      b_.Store(chunk_, high_at, Choose(is_high, high, received));
    }
}

// Stores `store_lanes_` adjacent results at a time.
void TensorResults::StoreChunk(const DotPosition& chunk, Scalar in_piece) {
  bool vectors = layout_ == Layout::kVectors;
  b_.For("g", LoopRole::kUnrolled, b_.Index(kSumsOfChunk / store_lanes_), [&](Scalar g) {
    Scalar pair = vectors ? g : g * b_.Index(store_lanes_) / b_.Index(kPairOfSums);
    Scalar high = pair % b_.Index(kRowsOfThread), fragment = pair / b_.Index(kRowsOfThread);
    Scalar in_row = lane_ % b_.Index(kThreadsOfRow), in_column = lane_ / b_.Index(kThreadsOfRow);
    Scalar i = in_column, j;
    if (vectors) {
      j = (fragment * b_.Index(2) + in_row % b_.Index(2)) * b_.Index(kWarpResultColumns) +
          in_row / b_.Index(2) * b_.Index(kMaxStoreLanes);
    } else if (layout_ == Layout::kFragments) {
      j = fragment * b_.Index(kWarpResultColumns) + in_row * b_.Index(kPairOfSums);
    } else {
      Scalar of_row = b_.Index(kFragmentsOfChunk);  // exchanged with the row of the thread
      i = fragment + in_column / of_row * of_row;
      j = in_column % of_row * b_.Index(kWarpResultColumns) + in_row * b_.Index(kPairOfSums);
      if (store_lanes_ == 1) j = j + g % b_.Index(kPairOfSums);
    }
    i = i + high * b_.Index(kWarpResultRows / kRowsOfThread);
    Scalar inside = b_.ConstantBits(ScalarType::kPred, 1);
    Scalar row = chunk.row + i;
    Coordinates row_at;
    if (t_.window) {
      WindowRow found =
          WindowRowAt(b_, *t_.window, row / b_.Index(t_.rows), row % b_.Index(t_.rows));
      row = found.index;
      row_at = found.at;
      inside = inside & found.inside;
    } else if (dot_dims_.m % t_.rows != 0) {
      inside = inside & (row < b_.Index(dot_dims_.m));
    }
    if (dot_dims_.n % t_.columns != 0) inside = inside & (chunk.column + j < b_.Index(dot_dims_.n));
    // The bulk copy engine leaves out what is not inside, but an array must not be read there.
    bool loads = AnyOperand([](const Instr& operand) {
      return !operand.shape().IsArray() || operand.shape().ElementCount() > 1;
    });
    if (!t_.window && staged_.HasAllRoots() && !loads)
      inside = b_.ConstantBits(ScalarType::kPred, 1);
    b_.If(inside, [&] {
      ForLanes(b_, store_lanes_, [&](Scalar l) {
        DotPosition at = chunk;
        at.row = row;
        at.row_at = row_at;
        at.column = at.column + j + l;
        Scalar sum = store_lanes_ == 1 ? g % b_.Index(kPairOfSums) : l % b_.Index(kPairOfSums),
               from = pair;
        if (vectors)
          from =
              (fragment * b_.Index(2) + l / b_.Index(kPairOfSums)) * b_.Index(kRowsOfThread) + high;
        Scalar value = b_.Read(chunk_, from * b_.Index(kPairOfSums) + sum);
        BoundResult result = BindDotResult(emitter_, dot_, dot_dims_, at, value);
        epilogue_.Provide(result, {i, j, l});
        staged_.Store(result, {i, in_piece + j, l});
      });
    });
  });
}

}  // namespace tokamak::gpu
