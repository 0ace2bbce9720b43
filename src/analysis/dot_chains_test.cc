#include "analysis/dot_chains.h"

#include <limits>

#include <gtest/gtest.h>

#include "analysis/live_columns.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

Computation* Reducing(Module& module, const char* name, bool is_maximum) {
  Builder b{module, name};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {}));
  Instr* result = is_maximum ? b.Maximum(x, y) : b.Add(x, y);
  EXPECT_TRUE(b.Finish(result).ok());
  return result->parent();
}

// softmax(mask(q k^T)) v, for 2 batches, 5 rows, 7 columns and a head size of 8.
class DotChains : public testing::Test {
 protected:
  Instr* Array(Dims dims) { return b_.Parameter(Shape::Array(ElementType::kF32, std::move(dims))); }

  Instr* MakeScores() {
    DotAttrs attrs;
    attrs.lhs_batch = attrs.rhs_batch = {0};
    attrs.lhs_contracting = attrs.rhs_contracting = {2};
    return b_.Dot(Array({2, 5, 8}), Array({2, 7, 8}), attrs);
  }
  Instr* MakeProduct(Instr* weights) {
    DotAttrs attrs;
    attrs.lhs_batch = attrs.rhs_batch = {0};
    attrs.lhs_contracting = {2};
    attrs.rhs_contracting = {1};
    return b_.Dot(weights, Array({2, 7, 8}), attrs);
  }
  Instr* OfRow(Instr* row) { return b_.Broadcast(row, {2, 5, 7}, {0, 1}); }
  Instr* Softmax(Instr* x) {
    Instr* lowest = b_.Scalar(ElementType::kF32, -std::numeric_limits<double>::infinity());
    maximum_ = b_.Reduce({x}, {lowest}, {2}, Reducing(module_, "maximum", true));
    exponential_ = b_.Exp(b_.Subtract(x, OfRow(maximum_)));
    sum_ = b_.Reduce({exponential_}, {b_.Scalar(ElementType::kF32, 0)}, {2},
                     Reducing(module_, "sum", false));
    return b_.Divide(exponential_, OfRow(sum_));
  }
  // Where row + offset >= column, else `other`.
  Instr* Masked(Instr* x, int64_t offset, double other) {
    Shape shape = Shape::Array(ElementType::kS32, {5, 7});
    Instr* offsets =
        b_.Broadcast(b_.Scalar(ElementType::kS32, static_cast<double>(offset)), {5, 7}, {});
    Instr* pred =
        b_.Compare(b_.Add(b_.Iota(shape, 0), offsets), b_.Iota(shape, 1), CompareDirection::kGe);
    Instr* others = b_.Broadcast(b_.Scalar(ElementType::kF32, other), {2, 5, 7}, {});
    return b_.Select(b_.Broadcast(pred, {2, 5, 7}, {1, 2}), x, others);
  }

  static std::optional<ChainSlice> SliceOf(const Instr* last) {
    return ChainSliceOf(*last, ChainReductions::kInside);
  }
  static std::string Analyze(const ChainSlice& slice, RunningChain& running, LiveColumns& live) {
    const DotChain& chain = slice.chain;
    DimsAlong along(chain.scores());
    std::vector<const Instr*> inside = slice.instrs;
    std::erase(inside, chain.seconds[0].dot);
    for (const Instr* instr : inside) EXPECT_TRUE(along.Add(*instr));
    std::string why = AnalyzeRunningChain(chain, inside, along, running);
    if (why.empty()) live = LiveColumnsOf(chain, running, along);
    return why;
  }

  Module module_{"m"};
  Builder b_{module_, "main"};
  Instr *maximum_ = nullptr, *exponential_ = nullptr, *sum_ = nullptr;
};

TEST_F(DotChains, HaveRowsAndColumns) {
  Instr* scores = MakeScores();
  Instr* product = MakeProduct(Softmax(scores));
  std::optional<ChainSlice> slice = SliceOf(product);
  ASSERT_TRUE(slice);
  const DotChain* chain = &slice->chain;
  EXPECT_EQ(&chain->scores(), scores);
  EXPECT_EQ(chain->row, 1);
  EXPECT_EQ(chain->column, 2);
  EXPECT_EQ(chain->batch, Dims{0});
  EXPECT_EQ(chain->firsts[0].row_operand, 0u);
  EXPECT_TRUE(IsInDotChain(*scores));
  EXPECT_TRUE(IsInDotChain(*product));
  EXPECT_FALSE(SliceOf(scores));
}

TEST_F(DotChains, OfASoftmaxAreLinearInItsExponentials) {
  Instr* product = MakeProduct(Softmax(MakeScores()));
  RunningChain running;
  LiveColumns live;
  EXPECT_EQ(Analyze(*SliceOf(product), running, live), "");
  EXPECT_EQ(running.exponential, exponential_);
  EXPECT_EQ(running.shift, maximum_);
  EXPECT_EQ(running.plain, std::vector<const Instr*>{maximum_});
  EXPECT_EQ(running.scaled, std::vector<const Instr*>{sum_});
  ASSERT_EQ(running.factors.size(), 1u);
  EXPECT_EQ(running.factors[0].row, sum_);
  EXPECT_FALSE(live.first || live.last);
}

TEST_F(DotChains, OfSquaresAreNotLinear) {
  Instr* softmax = Softmax(MakeScores());
  Instr* product = MakeProduct(b_.Multiply(softmax, softmax));
  RunningChain running;
  LiveColumns live;
  EXPECT_NE(Analyze(*SliceOf(product), running, live), "");
}

TEST_F(DotChains, MayContractSeveralDimensionsOfColumns) {
  // Scores [2, 3, 5, 7] of 3 heads that share keys; the gradient by the keys contracts heads and
  // rows.
  DotAttrs attrs;
  attrs.lhs_batch = attrs.rhs_batch = {0};
  attrs.lhs_contracting = {3};
  attrs.rhs_contracting = {2};
  Instr* queries = Array({2, 3, 5, 8});
  Instr* scores = b_.Dot(queries, Array({2, 7, 8}), attrs);
  attrs.lhs_contracting = attrs.rhs_contracting = {1, 2};
  Instr* by_keys = b_.Dot(b_.Exp(scores), queries, attrs);
  std::optional<ChainSlice> slice = SliceOf(by_keys);
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->chain.row, 3);
  EXPECT_EQ(slice->chain.column, 2);
  EXPECT_EQ(slice->chain.outer_columns, Dims{1});
  EXPECT_EQ(slice->chain.batch, Dims{0});
  EXPECT_EQ(slice->chain.firsts[0].row_operand, 1u);
}

TEST_F(DotChains, WithReversedColumnsAreNone) {
  EXPECT_FALSE(SliceOf(MakeProduct(b_.Reverse(MakeScores(), {2}))));
}

TEST_F(DotChains, HaveLiveColumnsIfMaskedScoresVanish) {
  for (double other : {-std::numeric_limits<double>::infinity(), -1e30, -1e4}) {
    Instr* product = MakeProduct(Softmax(Masked(MakeScores(), 1, other)));
    RunningChain running;
    LiveColumns live;
    EXPECT_EQ(Analyze(*SliceOf(product), running, live), "");
    EXPECT_FALSE(live.first);
    EXPECT_EQ(live.last, other > -1e5 ? std::nullopt : std::optional<int64_t>(1));
  }
}

// Rows without live columns have equal weights in all columns.
TEST_F(DotChains, HaveNoLiveColumnsIfARowHasNone) {
  Instr* product = MakeProduct(Softmax(Masked(MakeScores(), -1, -1e30)));
  RunningChain running;
  LiveColumns live;
  EXPECT_EQ(Analyze(*SliceOf(product), running, live), "");
  EXPECT_FALSE(live.last);
}

// The gradient of a softmax, with its statistics given: two first dots, and second dots that
// contract the columns or the rows.
TEST_F(DotChains, HaveSeveralFirstDots) {
  Instr* scores = MakeScores();
  Instr* softmax = Softmax(scores);
  DotAttrs attrs;
  attrs.lhs_batch = attrs.rhs_batch = {0};
  attrs.lhs_contracting = attrs.rhs_contracting = {2};
  // [batch, column, row]
  Instr* transposed = b_.Dot(Array({2, 7, 8}), Array({2, 5, 8}), attrs);
  Instr* gradient = b_.Multiply(softmax, b_.Transpose(transposed, {0, 2, 1}));
  for (bool of_rows : {false, true}) {
    DotAttrs second;
    second.lhs_batch = second.rhs_batch = {0};
    second.lhs_contracting = {of_rows ? 1 : 2};
    second.rhs_contracting = {1};
    Instr* product = b_.Dot(gradient, Array({2, of_rows ? 5 : 7, 8}), second);
    EXPECT_EQ(ChainSliceOf(*product, ChainReductions::kInside).has_value(), !of_rows);
    std::optional<ChainSlice> slice = ChainSliceOf(*product, ChainReductions::kGiven);
    ASSERT_TRUE(slice);
    const DotChain& chain = slice->chain;
    ASSERT_EQ(chain.firsts.size(), 2u);
    EXPECT_EQ(chain.IsFirst(*scores), true);
    EXPECT_EQ(chain.IsFirst(*transposed), true);
    EXPECT_EQ(chain.firsts[0].along, (Dims{0, 1, 2}));
    EXPECT_EQ(chain.firsts[1].along, (Dims{0, 2, 1}));
    EXPECT_EQ(chain.firsts[0].row_operand, 1 - chain.firsts[1].row_operand);
    EXPECT_TRUE(IsInDotChain(*transposed));
    DotChain again;
    std::optional<DimsAlong> along;
    RunningChain running;
    EXPECT_EQ(FindDotChain(slice->instrs, again, along), "");
    EXPECT_EQ(AnalyzeRunningChain(again, slice->instrs, *along, running), "");
  }
}

}  // namespace
}  // namespace tokamak
