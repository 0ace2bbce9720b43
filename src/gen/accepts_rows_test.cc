#include "gen/accepts_rows.h"

#include <gtest/gtest.h>

#include "gen/generator.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

// A row reduction, and the ops that bring its results back into the rows.
struct Rows {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {16, 16}));
  Instr* zero = b.Scalar(ElementType::kF32, 0);
  Instr* sum = nullptr;

  Rows() {
    Builder adds(module, "adds");
    Instr* left = adds.Parameter(Shape::Scalar(ElementType::kF32));
    Instr* right = adds.Parameter(Shape::Scalar(ElementType::kF32));
    EXPECT_TRUE(adds.Finish(adds.Add(left, right)).ok());
    sum = b.Reduce({x}, {zero}, {1}, adds.computation());
  }

  // Asks both AcceptsRows and the generator, and expects that they agree.
  Accepts Ask(Instr* back, std::vector<const Instr*> between) {
    Instr* root = b.Subtract(x, back);
    EXPECT_TRUE(b.Finish(root).ok());
    FusedRegion region{
        .computation = root->parent(), .instrs = {sum}, .inputs = {x}, .roots = {root}};
    region.instrs.insert(region.instrs.end(), between.begin(), between.end());
    region.instrs.push_back(root);
    Machine machine;
    bool built = BuildRegion(region, GeneratorKind::kRows, machine, "k").built.has_value();
    Accepts accepts = AcceptsRows(region);
    EXPECT_TRUE(accepts == Accepts::kUnknown || (accepts == Accepts::kYes) == built);
    return accepts;
  }
};

TEST(AcceptsRows, TakesAResultInItsOwnRow) {
  Rows rows;
  Instr* back = rows.b.Broadcast(rows.sum, {16, 16}, {0});
  EXPECT_EQ(rows.Ask(back, {back}), Accepts::kYes);
}

TEST(AcceptsRows, TakesItThroughOtherShapes) {
  Rows rows;
  Instr* apart = rows.b.Reshape(rows.sum, {2, 8, 1});
  Instr* again = rows.b.Reshape(apart, {16});
  Instr* back = rows.b.Broadcast(again, {16, 16}, {0});
  EXPECT_EQ(rows.Ask(back, {apart, again, back}), Accepts::kYes);
}

TEST(AcceptsRows, TakesItThroughAConcatenateAlongTheRow) {
  Rows rows;
  Instr* half = rows.b.Broadcast(rows.sum, {16, 8}, {0});
  Instr* back = rows.b.Concatenate({half, half}, 1);
  EXPECT_EQ(rows.Ask(back, {half, back}), Accepts::kYes);
}

TEST(AcceptsRows, LeavesOpenAConcatenateOfRows) {
  Rows rows;
  Instr* half = rows.b.Slice(rows.sum, {0}, {8});
  Instr* both = rows.b.Concatenate({half, half}, 0);
  Instr* back = rows.b.Broadcast(both, {16, 16}, {0});
  EXPECT_EQ(rows.Ask(back, {half, both, back}), Accepts::kUnknown);
}

TEST(AcceptsRows, RejectsAResultAcrossRows) {
  Rows rows;
  Instr* back = rows.b.Broadcast(rows.sum, {16, 16}, {1});
  EXPECT_EQ(rows.Ask(back, {back}), Accepts::kNo);
}

TEST(AcceptsRows, LeavesOpenWhatItDoesNotFollow) {
  Rows rows;
  Instr* reversed = rows.b.Reverse(rows.sum, {0});
  Instr* back = rows.b.Broadcast(reversed, {16, 16}, {0});
  EXPECT_EQ(rows.Ask(back, {reversed, back}), Accepts::kUnknown);
}

}  // namespace
}  // namespace tokamak
