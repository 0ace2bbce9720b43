#include "cost/numbers.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// Also the assumed value of a data-dependent index.
constexpr double kUnknown = kUnknownTripCount;
// Larger bounds are those of unknown values. Chosen: a double holds all integers up to here.
constexpr int64_t kMaxKnownBound = int64_t{1} << 52;

}  // namespace

IndexFacts::IndexFacts(const Kernel& kernel, int64_t grid)
    : kernel_(kernel),
      grid_(grid),
      words_((kernel.loops.size() + kWordBits - 1) / kWordBits),
      depends_(kernel.nodes.size() * words_),
      means_(kernel.nodes.size(), NAN),
      trips_(kernel.loops.size(), NAN) {
  std::vector<uint64_t> around(words_);
  FindReads(kernel.body, around);
  FindDepends();
}

// The result of a read may change in every iteration of the enclosing loops.
void IndexFacts::FindReads(const StmtList& block, std::vector<uint64_t>& around) {
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kRead || stmt.kind == StmtKind::kShuffle)
      std::copy(
          around.begin(), around.end(),
          depends_.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(stmt.value) * words_));
    auto l = static_cast<size_t>(stmt.loop);
    bool is_for = stmt.kind == StmtKind::kFor;
    if (is_for) around[l / kWordBits] |= uint64_t{1} << (l % kWordBits);
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      FindReads(*inner, around);
    if (is_for) around[l / kWordBits] &= ~(uint64_t{1} << (l % kWordBits));
  }
}

void IndexFacts::FindDepends() {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    uint64_t* mine = depends_.data() + i * words_;
    if (kernel_.nodes[i].prim == Prim::kLoop) {
      uint64_t l = kernel_.nodes[i].bits;
      mine[l / kWordBits] |= uint64_t{1} << (l % kWordBits);
    }
    for (ValueId operand : kernel_.operands(ValueId{static_cast<uint32_t>(i)}))
      for (size_t w = 0; w < words_; ++w)
        mine[w] |= depends_[static_cast<size_t>(operand) * words_ + w];
  }
}

double IndexFacts::TripsOf(LoopId loop) {
  double& trips = trips_[static_cast<size_t>(loop)];
  if (!std::isnan(trips)) return trips;
  const Loop& l = kernel_.loop(loop);
  bool given = l.role == LoopRole::kGrid && grid_ > 0 && !kernel_.IsConstant(l.extent);
  trips = given ? static_cast<double>(grid_) : std::max(Mean(l.extent), 0.0);
  return trips;
}

double IndexFacts::MaxTripsOf(LoopId loop) {
  int64_t most = ranges_.Of(kernel_, kernel_.loop(loop).extent).high;
  return most > kMaxKnownBound ? TripsOf(loop) : std::max(static_cast<double>(most), TripsOf(loop));
}

double IndexFacts::Mean(ValueId id) {
  double& mean = means_[static_cast<size_t>(id)];
  if (!std::isnan(mean)) return mean;
  mean = kUnknown;  // breaks recursion
  double found = FindMean(kernel_.node(id));
  return means_[static_cast<size_t>(id)] = std::isfinite(found) ? found : kUnknown;
}

double IndexFacts::MeanQuotient(ValueId x, ValueId y) {
  double numerator = Mean(x), divisor = Mean(y);
  if (divisor == 0) return 0;
  Range of = ranges_.Of(kernel_, x), by = ranges_.Of(kernel_, y);
  if (!by.IsConstant() || by.low <= 0 || of.low < 0 || of.high > kMaxKnownBound)
    return std::floor(numerator / divisor);
  auto least = static_cast<double>(of.low / by.low), most = static_cast<double>(of.high / by.low);
  int64_t values = of.high - of.low + 1;
  if (least == most) return least;
  if (values >= by.low)
    return std::clamp((numerator - static_cast<double>(by.low - 1) / 2) / divisor, least, most);
  // The quotient is `most` from the last multiple of the divisor on.
  return least + static_cast<double>(of.high % by.low + 1) / static_cast<double>(values);
}

double IndexFacts::FindMean(const ScalarNode& node) {
  auto x = [&] { return Mean(node.operands[0]); };
  auto y = [&] { return Mean(node.operands[1]); };
  switch (node.prim) {
    case Prim::kConst:
      return IsFloat(node.type) ? DoubleOfBits(node.type, node.bits)
                                : static_cast<double>(IntOfBits(node.type, node.bits));
    case Prim::kLoop:
      return std::max((TripsOf(node.loop()) - 1) / 2, 0.0);
    case Prim::kExtent: {
      const LaunchExtent& extent = kernel_.extent(node.extent());
      double low = static_cast<double>(extent.minimum), high = static_cast<double>(extent.maximum);
      return extent.maximum == INT64_MAX ? std::max(low, kUnknown) : (low + high) / 2;
    }
    case Prim::kAdd:
      return x() + y();
    case Prim::kSub:
      return x() - y();
    case Prim::kMul:
      return x() * y();
    case Prim::kDiv:
      return MeanQuotient(node.operands[0], node.operands[1]);
    case Prim::kRem:
      return std::min(x(), (y() - 1) / 2);
    case Prim::kMin:
      return std::min(x(), y());
    case Prim::kMax:
      return std::max(x(), y());
    case Prim::kSelect: {
      double fraction = Fraction(node.operands[0]);
      return fraction * y() + (1 - fraction) * Mean(node.operands[2]);
    }
    case Prim::kConvert:
      return x();
    default:
      return kUnknown;
  }
}

double IndexFacts::Fraction(ValueId condition) {
  const ScalarNode& node = kernel_.node(condition);
  // Fraction of the iterations in which a condition holds. Chosen: nothing is known about it.
  constexpr double kEven = 0.5;
  if (node.prim == Prim::kConst) return node.bits != 0 ? 1 : 0;
  if (node.prim == Prim::kAnd) return Fraction(node.operands[0]) * Fraction(node.operands[1]);
  if (node.prim == Prim::kOr) {
    double x = Fraction(node.operands[0]), y = Fraction(node.operands[1]);
    return x + y - x * y;
  }
  bool compares = node.prim == Prim::kLt || node.prim == Prim::kLe || node.prim == Prim::kEq ||
                  node.prim == Prim::kNe;
  if (!compares || kernel_.node(node.operands[0]).type != ScalarType::kIndex) return kEven;
  Range x = ranges_.Of(kernel_, node.operands[0]), y = ranges_.Of(kernel_, node.operands[1]);
  // Differences of such bounds do not overflow.
  auto known = [](const Range& r) {
    return r.low > INT64_MIN / 2 / 2 && r.high < INT64_MAX / 2 / 2;
  };
  if (!known(x) || !known(y)) return kEven;
  // Assumes that the difference is uniformly distributed.
  double low = static_cast<double>(x.low - y.high), high = static_cast<double>(x.high - y.low);
  double count = high - low + 1;
  double below = std::clamp(-low / count, 0.0, 1.0);
  double same = low <= 0 && high >= 0 ? 1 / count : 0;
  switch (node.prim) {
    case Prim::kLt:
      return below;
    case Prim::kLe:
      return std::min(below + same, 1.0);
    case Prim::kEq:
      return same;
    default:
      return 1 - same;
  }
}

}  // namespace tokamak
