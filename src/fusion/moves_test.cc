#include "fusion/moves.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "fusion/necks.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

// Numbers, a mask of them, and two results that need the mask.
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

TEST(Necks, AreWhatAllGoesThrough) {
  Masked m;
  ASSERT_TRUE(m.b.Finish(m.one).ok());
  Region region{.computation = m.one->parent(),
                .instrs = {m.low, m.high, m.mask, m.one},
                .inputs = {m.x, m.y, m.words},
                .roots = {m.one}};
  EXPECT_EQ(NecksBehind(region, *m.words), std::vector<const Instr*>{m.mask});
  // It is needed behind the mask as well.
  EXPECT_TRUE(NecksBehind(region, *m.x).empty());
  // A root is stored already.
  region.roots = {m.low, m.one};
  EXPECT_TRUE(NecksBehind(region, *m.words).empty());
}

TEST(Moves, StoreLaterWhatIsSmaller) {
  Masked m;
  ASSERT_TRUE(m.b.Finish(m.b.Tuple({m.one, m.other})).ok());
  Machine machine;
  RegionHasher hasher(*m.one->parent());
  Draft draft(*m.one->parent(), machine, true, hasher);
  // Words are stored, and all who need the mask compute it.
  std::vector<Move> moves = MovesOfValue(draft, *m.mask);
  const Move* vertical = Find(moves, "fusion.vertical", m.mask);
  ASSERT_NE(vertical, nullptr);
  draft.Apply(vertical->change);
  ASSERT_EQ(draft.HomeOf(*m.mask), -1);
  ASSERT_EQ(draft.ReadersOf(*m.words).size(), 2u);

  moves = MovesOf(draft, draft.ReadersOf(*m.words)[0]);
  const Move* later = Find(moves, "fusion.later", m.words);
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->other, m.mask);
  EXPECT_FALSE(draft.MakesCycle(later->change, draft.Try(later->change)));
  draft.Apply(later->change);
  EXPECT_EQ(draft.HomeOf(*m.words), -1);
  ASSERT_GE(draft.HomeOf(*m.mask), 0);
  EXPECT_EQ(draft.ReadersOf(*m.mask).size(), 2u);
  EXPECT_TRUE(draft.ReadersOf(*m.words).empty());
}

TEST(Moves, LeaveWhatIsNoLarger) {
  Masked m;
  // The sum of both is as large as the words.
  Instr* sum = m.b.Add(m.low, m.high);
  Instr* one = m.b.Add(sum, m.x);
  Instr* other = m.b.Add(sum, m.y);
  ASSERT_TRUE(m.b.Finish(m.b.Tuple({one, other})).ok());
  Machine machine;
  RegionHasher hasher(*one->parent());
  Draft draft(*one->parent(), machine, true, hasher);
  std::vector<Move> moves = MovesOfValue(draft, *sum);
  const Move* vertical = Find(moves, "fusion.vertical", sum);
  ASSERT_NE(vertical, nullptr);
  draft.Apply(vertical->change);
  moves = MovesOf(draft, draft.ReadersOf(*m.words)[0]);
  EXPECT_EQ(Find(moves, "fusion.later", m.words), nullptr);
}

}  // namespace
}  // namespace tokamak
