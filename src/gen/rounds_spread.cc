// Products of loops whose elements the threads of a team share out: the state of a recurrent
// network and its weights. A round:
//
//   each thread   puts its elements of the vectors into team memory,
//   all           meet, once: the next round has memory of its own,
//   each lane     multiplies every 32nd element of the vectors of all rows by its part of the
//                 columns that the warp's elements need, which stays in registers for all rounds,
//   the warp      adds up: half of the sums go to the other half of the lanes, until a lane has
//                 those of its own element alone. Each lane makes its sums in an order of its own,
//                 in which those that it gives away are always the second half.

#include "gen/rounds.h"
#include "support/check.h"

namespace tokamak {
namespace {

constexpr int64_t kLanes = 32;

// Elements that a lane reads side by side.
constexpr int64_t kMostWide = 4;

// Sums of all lanes: those of `positions` x `each` to the lanes of each position. Sum i of a lane
// is of the position that differs by xor with i from the lane's own.
std::vector<Scalar> AddUp(KernelBuilder& b, std::vector<Scalar> sums, int64_t positions,
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

// number ^ own, of numbers below `count`, a power of two: a sum of parts, whose range is known.
Scalar Differing(KernelBuilder& b, int64_t number, Scalar own, int64_t count) {
  Scalar sum = b.Index(0);
  for (int64_t bit = 1; bit < count; bit *= 2) {
    Scalar part = own / b.Index(bit) % b.Index(2) * b.Index(bit);
    sum = sum + ((number & bit) != 0 ? b.Index(bit) - part : part);
  }
  return sum;
}

}  // namespace

void RoundsFrame::AddSpreadProduct(const RoundsProduct& product) {
  KernelBuilder& b = context_.b;
  const RoundsSpread& spread = context_.spread;
  const RoundsGroup& group = context_.group;
  const Instr& dot = *product.dot;
  const std::vector<int>& axes = *product.axes;
  ElementType type = dot.shape().type(), summed = WideType(type);
  ScalarType sum_type = ComputeType(summed);
  Dims own = product.SumDims();
  int64_t n = spread.elements, rows = spread.rows, units = spread.units;
  int64_t parts = product.taps / n, each = product.sums / n;
  std::string number = std::to_string(b.kernel().arrays.size());
  ArrayId vectors = b.Local("vectors" + number, sum_type, Space::kTeam, 2 * rows * product.taps);
  // Those who are behind still read what the round before stored.
  Scalar turn = spread.round % b.Index(2) * b.Index(rows * product.taps);
  for (int64_t i = 0; i < parts; ++i) {
    Scalar tap = spread.element + b.Index(i * n);
    Scalar value = FactorOf(product, product.vector, tap, b.Index(0));
    Scalar writes = b.ConstantBits(ScalarType::kPred, 1);
    if (group.threads > 1) writes = group.member == b.Index(i % group.threads);
    b.If(writes, [&] { b.Store(vectors, turn + spread.row * b.Index(product.taps) + tap, value); });
  }
  b.Barrier(Scope::kBlock);
  context_.Forget();
  if (!context_.fault.empty()) return;
  int64_t wide = 1;
  while (wide < kMostWide && product.taps % (2 * wide * kLanes) == 0) wide *= 2;
  Scalar unit = spread.element - spread.first_element;
  std::vector<Scalar> sums(static_cast<size_t>(units * rows * each), b.Constant(sum_type, 0));
  for (int64_t i = 0; i < product.taps / kLanes; ++i) {
    Scalar tap = spread.lane * b.Index(wide) + b.Index(i / wide * wide * kLanes + i % wide);
    std::vector<Scalar> x;
    for (int64_t r = 0; r < rows; ++r)
      x.push_back(
          b.Read(vectors, turn + Differing(b, r, spread.row, rows) * b.Index(product.taps) + tap));
    for (int64_t u = 0; u < units; ++u) {
      for (int64_t g = 0; g < each; ++g) {
        Scalar column = spread.first_element + Differing(b, u, unit, units) + b.Index(g * n);
        Scalar y = FactorOf(product, 1 - product.vector, tap, column);
        for (int64_t r = 0; r < rows; ++r) {
          Scalar& sum = sums[static_cast<size_t>((u * rows + r) * each + g)];
          sum = Fma(x[static_cast<size_t>(r)], y, sum);
        }
      }
    }
  }
  sums = AddUp(b, std::move(sums), units * rows, static_cast<size_t>(each));
  emitter_.Give(dot, GiverOf([this, &axes, own, sums, type, summed](const Coordinates& at, size_t) {
                  Coordinates inner;
                  for (size_t d = 0; d < axes.size(); ++d) {
                    if (axes[d] < 0)
                      inner.push_back(at[d]);
                    else if (at[d].id() != context_.place[static_cast<size_t>(axes[d])].id())
                      context_.Fail("an element is needed at another place than its own");
                  }
                  std::optional<int64_t> behind =
                      BehindElement(context_, Linearized(context_.b, inner, own));
                  int64_t apart = context_.spread.elements;
                  auto found = static_cast<size_t>(behind.value_or(0) / apart);
                  if (!behind || *behind < 0 || *behind % apart != 0 || found >= sums.size()) {
                    context_.Fail("a product is needed that another thread has");
                    found = 0;
                  }
                  return ConvertElement(context_.b, summed, type, {sums[found], {}});
                }));
}

}  // namespace tokamak
