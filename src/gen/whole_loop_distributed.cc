// Dots of loops whose elements are distributed over the threads of a block, for example the state
// of a recurrent network times its weights. One iteration:
//
//   each thread   stores its elements of the vectors to shared memory (double-buffered),
//   block         one barrier,
//   each lane     multiplies every 32nd element of the vectors of all rows by its slice of this
//                 warp's weight columns, which stays in registers for all iterations,
//   each warp     reduces by halving: half of the sums go to the other half of the lanes, until a
//                 lane has only the sums of its own element.
//
// Each lane numbers its sums relative to its own position (xor), so that the sums it gives away are
// always the second half of its array.

#include "gen/whole_loop.h"
#include "support/check.h"

namespace tokamak {
namespace {

constexpr int64_t kLanes = kWarpSize;

// Adjacent elements that a lane loads from shared memory: 16 bytes of f32, the widest access
// (hardware).
constexpr int64_t kMaxWide = 4;

// Reduces sums over all lanes of a warp, such that lanes of a position end up with its `each` sums.
// Sum i of a lane belongs to the position (lane's position) xor i.
std::vector<Scalar> ReduceOverWarp(KernelBuilder& b, std::vector<Scalar> sums, int64_t positions,
                                   size_t each) {
  for (int64_t mask = kLanes / 2; mask > 0; mask /= 2) {
    Scalar other = b.Index(mask);
    size_t kept = positions > 1 ? sums.size() / 2 : 0;
    for (size_t i = 0; i < sums.size() - kept; ++i)
      sums[i] = sums[i] + b.Shuffle(sums[i + kept], other);
    sums.resize(sums.size() - kept);
    if (positions > 1) positions /= 2;
  }
  TOK_CHECK(sums.size() == each, "sums of a lane");
  return sums;
}

// number ^ own for numbers below `count`, a power of two, written as additions so that range
// analysis can bound it.
Scalar XorPosition(KernelBuilder& b, int64_t number, Scalar own, int64_t count) {
  Scalar sum = b.Index(0);
  for (int64_t bit = 1; bit < count; bit *= 2) {
    Scalar part = own / b.Index(bit) % b.Index(2) * b.Index(bit);
    sum = sum + ((number & bit) != 0 ? b.Index(bit) - part : part);
  }
  return sum;
}

}  // namespace

void WholeLoopFrame::EmitDistributedMatVec(const WholeLoopMatVec& product) {
  KernelBuilder& b = context_.b;
  const WholeLoopMapping& thread_map = context_.thread_map;
  const WholeLoopGroup& group = context_.group;
  const Instr& dot = *product.dot;
  const std::vector<int>& axes = *product.axes;
  ElementType type = dot.shape().type(), summed = AccumulatorElementType(type);
  ScalarType sum_type = ComputeType(summed);
  Dims own = product.ResultDims();
  int64_t n = thread_map.elements_per_point, rows = thread_map.warp_points,
          units = thread_map.warp_elements;
  int64_t parts = product.terms / n, each = product.results / n;
  std::string number = std::to_string(b.kernel().arrays.size());
  ArrayId vectors = b.Local("vectors" + number, sum_type, Space::kShared, 2 * rows * product.terms);
  // Double buffer: slow warps may still read the vectors of the previous iteration.
  Scalar buffer = thread_map.iteration % b.Index(2) * b.Index(rows * product.terms);
  for (int64_t i = 0; i < parts; ++i) {
    Scalar term = thread_map.element + b.Index(i * n);
    Scalar value = FactorOf(product, product.vector, term, b.Index(0));
    Scalar writes = b.ConstantBits(ScalarType::kPred, 1);
    if (group.threads > 1) writes = group.member == b.Index(i % group.threads);
    b.If(writes, [&] {
      b.Store(vectors, buffer + thread_map.point_in_block * b.Index(product.terms) + term, value);
    });
  }
  b.Barrier(BarrierScope::kBlock);
  context_.ClearMemo();
  if (!context_.failure.empty()) return;
  int64_t wide = 1;
  while (wide < kMaxWide && product.terms % (2 * wide * kLanes) == 0) wide *= 2;
  Scalar unit = thread_map.element - thread_map.first_element;
  std::vector<Scalar> sums(static_cast<size_t>(units * rows * each), b.Constant(sum_type, 0));
  for (int64_t i = 0; i < product.terms / kLanes; ++i) {
    Scalar term = thread_map.lane * b.Index(wide) + b.Index(i / wide * wide * kLanes + i % wide);
    std::vector<Scalar> x;
    for (int64_t r = 0; r < rows; ++r)
      x.push_back(b.Read(
          vectors, buffer +
                       XorPosition(b, r, thread_map.point_in_block, rows) * b.Index(product.terms) +
                       term));
    for (int64_t u = 0; u < units; ++u) {
      for (int64_t g = 0; g < each; ++g) {
        Scalar column = thread_map.first_element + XorPosition(b, u, unit, units) + b.Index(g * n);
        Scalar y = FactorOf(product, 1 - product.vector, term, column);
        for (int64_t r = 0; r < rows; ++r) {
          Scalar& sum = sums[static_cast<size_t>((u * rows + r) * each + g)];
          sum = Fma(x[static_cast<size_t>(r)], y, sum);
        }
      }
    }
  }
  sums = ReduceOverWarp(b, std::move(sums), units * rows, static_cast<size_t>(each));
  emitter_.SetSource(
      dot, SourceOf([this, &axes, own, sums, type, summed](const Coordinates& at, size_t) {
        Scalar index = Linearized(context_.b, context_.InPoint(axes, at), own);
        std::optional<int64_t> offset = OffsetFromOwnElement(context_, index);
        int64_t stride = context_.thread_map.elements_per_point;
        auto found = static_cast<size_t>(offset.value_or(0) / stride);
        if (!offset || *offset < 0 || *offset % stride != 0 || found >= sums.size()) {
          context_.Fail("a dot result of another thread is needed");
          found = 0;
        }
        return ConvertElement(context_.b, summed, type, {sums[found], {}});
      }));
}

}  // namespace tokamak
