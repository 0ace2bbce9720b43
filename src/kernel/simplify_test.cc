#include "kernel/simplify.h"

#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernel/placement.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"
#include "kernel/write.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

constexpr ScalarType kIndex = ScalarType::kIndex;

// An index expression in two forms: as the builder simplifies it, and as an unsimplified tree.
struct Tree {
  Prim prim{};
  int64_t constant = 0;
  size_t variable = 0;
  std::vector<Tree> operands;

  std::optional<int64_t> Value(const std::vector<int64_t>& variables) const {
    if (prim == Prim::kConst) return constant;
    if (prim == Prim::kLoop) return variables[variable];
    Bits values[3] = {};
    for (size_t i = 0; i < operands.size(); ++i) {
      std::optional<int64_t> value = operands[i].Value(variables);
      if (!value) return std::nullopt;
      values[i] = static_cast<Bits>(*value);
    }
    ScalarType type = InfoOf(prim).result == PrimResult::kPred ? ScalarType::kPred : kIndex;
    std::optional<Bits> bits = EvaluatePrim(prim, type, kIndex, values);
    if (!bits) return std::nullopt;
    return static_cast<int64_t>(*bits);
  }
};

// Evaluates a node, given the values of loops and extents.
std::optional<int64_t> Evaluate(const Kernel& kernel, ValueId id,
                                const std::map<ValueId, int64_t>& leaves) {
  const ScalarNode& node = kernel.node(id);
  if (node.prim == Prim::kConst) return IntOfBits(node.type, node.bits);
  if (auto leaf = leaves.find(id); leaf != leaves.end()) return leaf->second;
  Bits values[3] = {};
  for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i) {
    std::optional<int64_t> value = Evaluate(kernel, node.operands[i], leaves);
    if (!value) return std::nullopt;
    values[i] = static_cast<Bits>(*value);
  }
  std::optional<Bits> bits =
      EvaluatePrim(node.prim, node.type, kernel.node(node.operands[0]).type, values);
  if (!bits) return std::nullopt;
  return static_cast<int64_t>(*bits);
}

class RandomIndex {
 public:
  RandomIndex(KernelBuilder& b, uint64_t seed, std::vector<Scalar> variables)
      : b_(b), draw_(seed), variables_(std::move(variables)) {}

  Scalar Draw(int depth, Tree& tree) {
    uint64_t kind = draw_.Next() % (depth == 0 ? 2 : 12);
    if (kind == 0) {
      static constexpr int64_t kConstants[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, -1, -4, 5};
      tree.prim = Prim::kConst;
      tree.constant = kConstants[draw_.Next() % std::size(kConstants)];
      return b_.Index(tree.constant);
    }
    if (kind == 1) {
      tree.prim = Prim::kLoop;
      tree.variable = draw_.Next() % variables_.size();
      return variables_[tree.variable];
    }
    static constexpr Prim kPrims[] = {Prim::kAdd, Prim::kAdd, Prim::kAdd, Prim::kSub, Prim::kMul,
                                      Prim::kMul, Prim::kDiv, Prim::kRem, Prim::kMin, Prim::kMax};
    tree.prim = kPrims[kind - 2];
    tree.operands.resize(2);
    Scalar x = Draw(depth - 1, tree.operands[0]);
    // Most factors and divisors are constants, as in real indices.
    bool simple = tree.prim == Prim::kMul || tree.prim == Prim::kDiv || tree.prim == Prim::kRem;
    Scalar y = Draw(simple && draw_.Next() % 8 != 0 ? 0 : depth - 1, tree.operands[1]);
    return b_.Make(tree.prim, {x, y});
  }

  Scalar DrawAny(int depth, Tree& tree) {
    if (draw_.Next() % 3 != 0) return Draw(depth, tree);
    static constexpr Prim kTests[] = {Prim::kLt, Prim::kLe, Prim::kEq, Prim::kNe};
    tree.prim = kTests[draw_.Next() % std::size(kTests)];
    tree.operands.resize(2);
    Scalar x = Draw(depth, tree.operands[0]), y = Draw(depth, tree.operands[1]);
    return b_.Make(tree.prim, {x, y});
  }

 private:
  KernelBuilder& b_;
  SplitMix64 draw_;
  std::vector<Scalar> variables_;
};

// Tests every combination of the variables of three small loops and an extent.
TEST(Simplify, RandomIndicesKeepTheirValues) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    KernelBuilder b("k");
    SplitMix64 draw(seed * 7919 + 1);
    std::vector<int64_t> trips;
    for (int i = 0; i < 3; ++i) {
      static constexpr int64_t kTrips[] = {1, 2, 3, 4, 5, 6, 8, 12};
      trips.push_back(kTrips[draw.Next() % std::size(kTrips)]);
    }
    LaunchExtent extent{
        .name = "n", .multiple_of = draw.Next() % 2 == 0 ? 4 : 1, .minimum = 0, .maximum = 12};
    int64_t step = extent.multiple_of;
    Scalar n = b.NewLaunchExtent(extent);
    b.For("i", LoopRole::kSerial, b.Index(trips[0]), [&](Scalar i) {
      b.For("j", LoopRole::kSerial, b.Index(trips[1]), [&](Scalar j) {
        b.For("k", LoopRole::kSerial, b.Index(trips[2]), [&](Scalar k) {
          Tree tree;
          Scalar made = RandomIndex(b, seed, {i, j, k, n}).DrawAny(4, tree);
          Range range = b.RangeOf(made);
          for (int64_t x = 0; x < trips[0] * trips[1] * trips[2] * (12 / step + 1); ++x) {
            int64_t v = x;
            std::vector<int64_t> variables;
            for (int64_t trip : trips) variables.push_back(v % trip), v /= trip;
            variables.push_back(v * step);
            std::optional<int64_t> expected = tree.Value(variables);
            if (!expected) continue;
            std::map<ValueId, int64_t> leaves{{i.id(), variables[0]},
                                              {j.id(), variables[1]},
                                              {k.id(), variables[2]},
                                              {n.id(), variables[3]}};
            std::optional<int64_t> found = Evaluate(b.kernel(), made.id(), leaves);
            ASSERT_EQ(found, expected)
                << "seed " << seed << " at " << variables[0] << " " << variables[1] << " "
                << variables[2] << " " << variables[3];
            if (made.type() != kIndex) continue;
            ASSERT_TRUE(range.low <= *found && *found <= range.high) << "seed " << seed;
            ASSERT_TRUE(range.stride == 0 ? *found == 0 : *found % range.stride == 0)
                << "seed " << seed << ": " << *found << " of stride " << range.stride;
          }
        });
      });
    });
  }
}

// Divisions that the ranges of loops make redundant are removed.
TEST(Simplify, LinearIndicesNeedNoDivision) {
  KernelBuilder b("k");
  ArrayId x =
      b.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 960});
  ArrayId y =
      b.Argument({.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = 960});
  b.For("i", LoopRole::kGrid, b.Index(8), [&](Scalar i) {
    b.For("j", LoopRole::kSerial, b.Index(12), [&](Scalar j) {
      b.For("l", LoopRole::kVector, b.Index(10), [&](Scalar l) {
        // A linear index of [8,12,10], split as [8,120], recombined, split as [96,10] ...
        Scalar flat = i * 120.0 + j * 10.0 + l;
        Scalar row = flat / b.Index(120), column = flat % b.Index(120);
        Scalar again = row * 120.0 + column;
        Scalar outer = again / b.Index(10), inner = again % b.Index(10);
        b.Store(y, outer * 10.0 + inner,
                b.Load(x, (outer / b.Index(12)) * 120.0 + (outer % b.Index(12)) * 10.0 + inner));
      });
    });
  });
  Kernel kernel = b.Finish();
  ASSERT_TRUE(VerifyKernel(kernel).ok());
  std::string text = WriteKernel(kernel);
  EXPECT_EQ(text.find('/'), std::string::npos) << text;
  EXPECT_EQ(text.find('%'), std::string::npos) << text;
}

// Lane numbers leave divisions by multiples of the lane count.
TEST(Simplify, LanesLeaveDivisions) {
  KernelBuilder b("k");
  b.For("j", LoopRole::kSerial, b.Index(30), [&](Scalar j) {
    b.For("l", LoopRole::kVector, b.Index(4), [&](Scalar l) {
      Scalar flat = j * 4.0 + l;
      EXPECT_EQ((flat / b.Index(12)).id(), (j / b.Index(3)).id());
      EXPECT_EQ((flat % b.Index(12)).id(), ((j % b.Index(3)) * 4.0 + l).id());
      EXPECT_EQ(((flat + 2.0) / b.Index(2)).id(), (j * 2.0 + (l / b.Index(2)) + 1.0).id());
    });
  });
}

// Simplification terminates for sums of any length, in linear time per sum.
TEST(Simplify, CoordinatesOfAnIndexAreItsNumber) {
  KernelBuilder b("k");
  b.For("g", LoopRole::kGrid, b.Index(100), [&](Scalar g) {
    b.For("l", LoopRole::kVector, b.Index(32), [&](Scalar l) {
      Scalar x = g * 32.0 + l, row = x / b.Index(3);
      EXPECT_EQ(((row / b.Index(3)) * 9.0 + (row % b.Index(3)) * 3.0 + x % b.Index(3)).id(),
                x.id());
      EXPECT_EQ(((row / b.Index(5)) * 10.0 + (row % b.Index(5)) * 2.0).id(), (row * 2.0).id());
    });
  });
}
// x / a * b + x % b is x only for a = b.
TEST(Simplify, QuotientsByOtherNumbersStay) {
  KernelBuilder b("k");
  b.For("x", LoopRole::kGrid, b.Index(100), [&](Scalar x) {
    EXPECT_EQ(((x / b.Index(3)) * 3.0 + x % b.Index(3)).id(), x.id());
    EXPECT_NE(((x / b.Index(6)) * 3.0 + x % b.Index(3)).id(), x.id());
    EXPECT_NE(((x / b.Index(2)) * 3.0 + x % b.Index(3)).id(), x.id());
    EXPECT_NE(((x / b.Index(3)) * 6.0 + x % b.Index(3)).id(), x.id());
  });
}
// (16 a + b - 1) % 16 is b - 1 if that is a remainder, as for windows without padding.
TEST(Simplify, RemaindersMayHaveNegativeTerms) {
  KernelBuilder b("k");
  b.For("a", LoopRole::kGrid, b.Index(100), [&](Scalar a) {
    b.For("i", LoopRole::kSerial, b.Index(16), [&](Scalar i) {
      Scalar above = i * 1.0 + b.Index(1);
      Scalar x = a * 16.0 + above - b.Index(1);
      EXPECT_EQ((x % b.Index(16)).id(), i.id());
    });
    b.For("j", LoopRole::kSerial, b.Index(5), [&](Scalar j) {
      Scalar twice = (j / b.Index(2)) * 3.0 + b.Index(2);  // 2 to 8
      Scalar x = a * 16.0 + twice - b.Index(1);
      EXPECT_EQ((x % b.Index(16)).id(), (twice - b.Index(1)).id());
      EXPECT_EQ((x / b.Index(16)).id(), a.id());
    });
  });
}
// Also of numbers that may be negative.
TEST(Simplify, QuotientsByOneAreTheNumber) {
  KernelBuilder b("k");
  b.For("x", LoopRole::kGrid, b.Index(100), [&](Scalar x) {
    Scalar below = x - b.Index(50);
    EXPECT_EQ((below / b.Index(1)).id(), below.id());
    EXPECT_EQ((below % b.Index(1)).id(), b.Index(0).id());
  });
}
TEST(Simplify, LongSums) {
  KernelBuilder b("k");
  ArrayId x =
      b.Argument({.name = "x", .type = ScalarType::kS32, .access = Access::kRead, .size = 20000});
  Scalar sum = b.Index(0);
  for (int i = 0; i < 20000; ++i) sum = sum + b.Load(x, b.Index(i)).As(kIndex) * 3.0;
  EXPECT_EQ(b.RangeOf(sum).low, -3ll * 20000 * (1ll << 31));
  Scalar both = sum * 4.0 + sum / b.Index(3) - sum;
  EXPECT_TRUE(both.ok());
}

// The upper half of a 64-bit counter below 2^32 is 0. Sums that may wrap are not known.
TEST(Simplify, UpperHalvesOfCounters) {
  KernelBuilder b("k");
  b.For("x", LoopRole::kGrid, b.Index(1 << 20), [&](Scalar x) {
    Scalar wide = x.As(ScalarType::kU64);
    Scalar counter = wide * wide.Like(4095) + wide.Like(7);
    EXPECT_EQ((counter >> wide.Like(32)).id(), wide.Like(0).id());
    Scalar large = wide * wide.Like(4097);
    EXPECT_NE((large >> wide.Like(32)).id(), wide.Like(0).id());
    Scalar word = x.As(ScalarType::kU32) * b.ConstantBits(ScalarType::kU32, 4097);
    EXPECT_EQ(b.RangeOf(word).high, int64_t{UINT32_MAX});
    Scalar below = wide - wide.Like(1);
    EXPECT_NE((below >> wide.Like(32)).id(), wide.Like(0).id());
  });
}

// -0 and NaN are preserved.
TEST(Simplify, FloatsKeepTheirBits) {
  KernelBuilder b("k");
  ArrayId x =
      b.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 1});
  Scalar v = b.Load(x, b.Index(0));
  EXPECT_NE((v + 0.0).id(), v.id());  // -0 + 0 is 0
  EXPECT_EQ((v - 0.0).id(), v.id());
  EXPECT_EQ((v * 1.0).id(), v.id());
  EXPECT_NE((v * 0.0).id(), b.Constant(ScalarType::kF32, 0).id());  // NaN, -0
  EXPECT_NE((v - v).id(), b.Constant(ScalarType::kF32, 0).id());
  EXPECT_EQ((-(-v)).id(), v.id());
}

// Eliminating a square root from a comparison with a constant does not change the result, for each
// number near the bound and at the ends of the range.
TEST(Simplify, ComparedSquareRootsAreNotComputed) {
  constexpr ScalarType kTypes[] = {ScalarType::kF32, ScalarType::kF64};
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (ScalarType type : kTypes)
    for (ScalarType rounded : kTypes)
      for (double limit : {2.0, 0.1, 1e-22, 3e38, 1e19, 0.0, -1.0})
        for (bool is_left : {true, false})
          for (bool or_equal : {true, false}) {
            KernelBuilder b("k");
            ArrayId x = b.Argument({.name = "x", .type = type, .access = Access::kRead, .size = 1});
            Scalar number = AbsOf(b.Load(x, b.Index(0)));
            Scalar root = SqrtOf(number).As(rounded), c = root.Like(limit);
            Scalar left = is_left ? root : c, right = is_left ? c : root;
            Scalar test = or_equal ? left <= right : left < right;
            const ScalarNode& node = b.kernel().node(test.id());
            bool taken = node.operands[0] != root.id() && node.operands[1] != root.id();
            EXPECT_EQ(taken, limit > 0 || (limit == 0 && is_left == or_equal)) << limit;
            if (!taken) continue;
            Bits bound = b.kernel().node(node.operands[is_left ? 1 : 0]).bits;
            auto holds = [&](Bits bits) {
              double value = DoubleOfBits(type, bits);
              double exact = type == ScalarType::kF32 ? std::sqrt(static_cast<float>(value))
                                                      : std::sqrt(value);
              double have = DoubleOfBits(rounded, BitsOfDouble(rounded, exact));
              double want = DoubleOfBits(rounded, BitsOfDouble(rounded, limit));
              if (!is_left) std::swap(have, want);
              return or_equal ? have <= want : have < want;
            };
            auto simple = [&](Bits bits) {
              double value = DoubleOfBits(type, bits), at = DoubleOfBits(type, bound);
              return is_left ? value < at : at <= value;
            };
            for (int offset = -3; offset <= 3; ++offset) {
              Bits bits = bound + static_cast<Bits>(offset);
              if (offset < 0 && bound < static_cast<Bits>(-offset)) continue;
              EXPECT_EQ(holds(bits), simple(bits)) << limit << " " << offset;
            }
            for (double end : {0.0, kInf, std::numeric_limits<double>::quiet_NaN()}) {
              Bits bits = BitsOfDouble(type, end);
              EXPECT_EQ(holds(bits), simple(bits)) << limit << " " << end;
            }
          }
}

// A radicand that may be negative keeps its square root.
TEST(Simplify, RootsOfWhatMayBeNegativeStay) {
  KernelBuilder b("k");
  ArrayId x =
      b.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 1});
  Scalar root = SqrtOf(b.Load(x, b.Index(0)));
  EXPECT_EQ(b.kernel().node((root < 2.0).id()).operands[0], root.id());
}

}  // namespace
}  // namespace tokamak
