#include "fusion/moves.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "fusion/post_dominators.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

// Random words, a mask computed from them, and two results that need the mask.
struct Masked {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64, 64}));
  Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {64, 64}));
  Instr* words = b.Multiply(x, x);
  Instr* low = b.Add(words, x);
  Instr* high = b.Subtract(words, y);
  Instr* mask = b.Compare(low, high, CompareDirection::kLt);
  Instr* one = b.Select(mask, x, y);
  Instr* other = b.Select(mask, y, x);
};

const Move* Find(const std::vector<Move>& moves, std::string_view rule, const Instr* subject) {
  auto at = std::find_if(moves.begin(), moves.end(), [&](const Move& move) {
    return move.rule == rule && move.subject == subject;
  });
  return at == moves.end() ? nullptr : &*at;
}

TEST(PostDominators, AreOnAllPathsToTheRoots) {
  Masked m;
  ASSERT_TRUE(m.b.Finish(m.one).ok());
  FusedRegion region{.computation = m.one->parent(),
                     .instrs = {m.low, m.high, m.mask, m.one},
                     .inputs = {m.x, m.y, m.words},
                     .roots = {m.one}};
  EXPECT_EQ(PostDominatorsOf(region, *m.words), std::vector<const Instr*>{m.mask});
  // Also needed after the mask.
  EXPECT_TRUE(PostDominatorsOf(region, *m.x).empty());
  // A root is already stored.
  region.roots = {m.low, m.one};
  EXPECT_TRUE(PostDominatorsOf(region, *m.words).empty());
}

TEST(Moves, StoresTheNarrowerConsumerValue) {
  Masked m;
  ASSERT_TRUE(m.b.Finish(m.b.Tuple({m.one, m.other})).ok());
  Machine machine;
  FusedRegionHasher hasher(*m.one->parent());
  CandidatePlan candidate(*m.one->parent(), machine, true, hasher);
  // The words are stored, and all consumers compute the mask.
  std::vector<Move> moves = MovesOfValue(candidate, *m.mask);
  const Move* vertical = Find(moves, "fusion.vertical", m.mask);
  ASSERT_NE(vertical, nullptr);
  candidate.Apply(vertical->change);
  ASSERT_EQ(candidate.GroupOf(*m.mask), -1);
  ASSERT_EQ(candidate.ConsumersOf(*m.words).size(), 2u);

  ChainSlices slices(GpuMachine());
  moves = MovesOf(candidate, candidate.ConsumersOf(*m.words)[0], slices);
  const Move* narrower = Find(moves, "fusion.store-narrower", m.words);
  ASSERT_NE(narrower, nullptr);
  EXPECT_EQ(narrower->other_value, m.mask);
  EXPECT_FALSE(candidate.MakesCycle(narrower->change, candidate.RegionsAfter(narrower->change)));
  candidate.Apply(narrower->change);
  EXPECT_EQ(candidate.GroupOf(*m.words), -1);
  ASSERT_GE(candidate.GroupOf(*m.mask), 0);
  EXPECT_EQ(candidate.ConsumersOf(*m.mask).size(), 2u);
  EXPECT_TRUE(candidate.ConsumersOf(*m.words).empty());
}

TEST(Moves, LeaveWhatIsNoLarger) {
  Masked m;
  // The sum of both is as large as the words.
  Instr* sum = m.b.Add(m.low, m.high);
  Instr* one = m.b.Add(sum, m.x);
  Instr* other = m.b.Add(sum, m.y);
  ASSERT_TRUE(m.b.Finish(m.b.Tuple({one, other})).ok());
  Machine machine;
  FusedRegionHasher hasher(*one->parent());
  CandidatePlan candidate(*one->parent(), machine, true, hasher);
  std::vector<Move> moves = MovesOfValue(candidate, *sum);
  const Move* vertical = Find(moves, "fusion.vertical", sum);
  ASSERT_NE(vertical, nullptr);
  candidate.Apply(vertical->change);
  ChainSlices slices(GpuMachine());
  moves = MovesOf(candidate, candidate.ConsumersOf(*m.words)[0], slices);
  EXPECT_EQ(Find(moves, "fusion.store-narrower", m.words), nullptr);
}

TEST(Moves, StoresATransposeOfADotOnly) {
  for (bool has_dot : {false, true}) {
    Module module("m");
    Builder b(module, "main");
    Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64, 64}));
    Instr* transposed = b.Transpose(x, {1, 0});
    Instr* sum = b.Add(transposed, x);
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {0};
    Instr* result = has_dot ? b.Dot(sum, x, attrs) : b.Exp(sum);
    ASSERT_TRUE(b.Finish(result).ok());
    FusedRegionHasher hasher(*result->parent());
    CandidatePlan candidate(*result->parent(), GpuMachine(), true, hasher);
    for (const Instr* value : {transposed, sum}) {
      std::vector<Move> moves = MovesOfValue(candidate, *value);
      if (const Move* vertical = Find(moves, "fusion.vertical", value))
        candidate.Apply(vertical->change);
    }
    ASSERT_EQ(candidate.GroupOf(*transposed), -1);
    ASSERT_EQ(candidate.GroupOf(*sum), -1);
    ChainSlices slices(GpuMachine());
    std::vector<Move> moves = MovesOf(candidate, candidate.GroupOf(*result), slices);
    EXPECT_EQ(Find(moves, "fusion.store", transposed) != nullptr, has_dot);
  }
}

// A dot reads its operand many times, also in another shape.
TEST(Moves, StoresAnOperandThatIsReshaped) {
  for (bool has_dot : {false, true}) {
    Module module("m");
    Builder b(module, "main");
    Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64, 64}));
    Instr* y = b.Parameter(Shape::Array(ElementType::kF32, {8, 8, 64}));
    Instr* sum = b.Add(y, y);
    Instr* reshaped = b.Reshape(sum, {64, 64});
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {0};
    Instr* result = has_dot ? b.Dot(reshaped, x, attrs) : b.Multiply(reshaped, x);
    ASSERT_TRUE(b.Finish(result).ok());
    FusedRegionHasher hasher(*result->parent());
    CandidatePlan candidate(*result->parent(), GpuMachine(), true, hasher);
    std::vector<Move> fusing = MovesOfValue(candidate, *sum);
    const Move* vertical = Find(fusing, "fusion.vertical", sum);
    ASSERT_NE(vertical, nullptr);
    candidate.Apply(vertical->change);
    ASSERT_EQ(candidate.GroupOf(*sum), -1);
    ChainSlices slices(GpuMachine());
    std::vector<Move> moves = MovesOf(candidate, candidate.GroupOf(*result), slices);
    EXPECT_EQ(Find(moves, "fusion.store", sum) != nullptr, has_dot);
  }
}

TEST(Moves, LoadsAStoredValueThatWasRecomputed) {
  Masked m;
  ASSERT_TRUE(m.b.Finish(m.b.Tuple({m.one, m.other, m.words})).ok());
  Machine machine;
  FusedRegionHasher hasher(*m.one->parent());
  CandidatePlan candidate(*m.one->parent(), machine, true, hasher);
  std::vector<const Instr*> inputs = candidate.region(candidate.GroupOf(*m.mask)).inputs;
  ChainSlices slices(GpuMachine());
  std::vector<Move> moves = MovesOf(candidate, candidate.GroupOf(*m.mask), slices);
  EXPECT_EQ(Find(moves, "fusion.load", m.words), nullptr);
  const Move* recompute = Find(moves, "fusion.recompute", m.words);
  ASSERT_NE(recompute, nullptr);
  candidate.Apply(recompute->change);
  EXPECT_NE(candidate.region(candidate.GroupOf(*m.mask)).inputs, inputs);

  moves = MovesOf(candidate, candidate.GroupOf(*m.mask), slices);
  const Move* load = Find(moves, "fusion.load", m.words);
  ASSERT_NE(load, nullptr);
  EXPECT_FALSE(candidate.MakesCycle(load->change, candidate.RegionsAfter(load->change)));
  candidate.Apply(load->change);
  EXPECT_EQ(candidate.region(candidate.GroupOf(*m.mask)).inputs, inputs);
}

}  // namespace
}  // namespace tokamak
