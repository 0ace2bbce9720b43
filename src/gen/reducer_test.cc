#include "gen/reducer.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// A reduction of two arrays by a body that `results` makes from the four parameters: the sums so
// far, then the elements.
struct ReducedPairs {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* reduce = nullptr;

  template <typename Results>
  ReducedPairs(ElementType type, Results&& results) {
    Builder body(module, "body");
    std::vector<Instr*> p;
    for (int i = 0; i < 4; ++i) p.push_back(body.Parameter(Shape::Scalar(type)));
    EXPECT_TRUE(body.Finish(body.Tuple(results(body, p))).ok());
    std::vector<Instr*> inputs, starts;
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(b.Parameter(Shape::Array(type, {16, 64})));
      starts.push_back(b.Scalar(type, 1));
    }
    reduce = b.Reduce(inputs, starts, {1}, body.computation());
  }

  Reducer reducer() const { return ReducerOf(*reduce); }
};

using Values = std::vector<Instr*>;

TEST(Reducer, EachResultOfItsOwnInputMayBeReassociated) {
  ReducedPairs pairs(ElementType::kF32, [](Builder& b, const Values& p) {
    return Values{b.Add(p[0], p[2]), b.Maximum(p[3], p[1])};
  });
  EXPECT_EQ(pairs.reducer().ops, (std::vector{Op::kAdd, Op::kMaximum}));
  EXPECT_TRUE(pairs.reducer().can_reassociate);
  EXPECT_EQ(pairs.reducer().arg_reduction, ArgReduction::kNone);
}

TEST(Reducer, ResultsThatMixInputsRunInOrder) {
  ReducedPairs crossed(ElementType::kF32, [](Builder& b, const Values& p) {
    return Values{b.Add(p[0], p[3]), b.Add(p[1], p[2])};
  });
  ReducedPairs twice(ElementType::kF32, [](Builder& b, const Values& p) {
    return Values{b.Add(p[0], p[2]), b.Add(p[1], b.Multiply(p[2], p[3]))};
  });
  for (const ReducedPairs* pairs : {&crossed, &twice}) {
    EXPECT_TRUE(pairs->reducer().ops.empty());
    EXPECT_FALSE(pairs->reducer().can_reassociate);
  }
}

TEST(Reducer, OneOrderedResultKeepsAllInOrder) {
  // (1 + 0i) * x is not x if x is infinite.
  ReducedPairs pairs(ElementType::kC64, [](Builder& b, const Values& p) {
    return Values{b.Add(p[0], p[2]), b.Multiply(p[1], p[3])};
  });
  EXPECT_FALSE(pairs.reducer().can_reassociate);
}

}  // namespace
}  // namespace tokamak
