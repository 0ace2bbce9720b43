#include "gen/generator.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

// An update in place is the last of its region: the array that it writes into is no input, and in
// the middle of one there is nothing that its elements could be read from.
TEST(Generator, RefusesAnUpdateInTheMiddle) {
  Module module("m");
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {8}));
  Instr* part = b.Parameter(Shape::Array(ElementType::kF32, {2}));
  Instr* at = b.Parameter(Shape::Scalar(ElementType::kS32));
  Instr* update = b.DynamicUpdateSlice(x, part, {at});
  Instr* root = b.Negate(update);
  ASSERT_TRUE(b.Finish(root).ok());
  Region region{.computation = root->parent(),
                .instrs = {update, root},
                .inputs = {part, at},
                .roots = {root}};
  for (MachineKind kind : {MachineKind::kCpu, MachineKind::kGpu}) {
    Machine machine;
    machine.kind = kind;
    BuildOutcome outcome = BuildRegion(region, RegionKind::kLoop, machine, "k");
    EXPECT_FALSE(outcome.built.has_value());
    EXPECT_EQ(outcome.why_not, "parameter: is read by an update that is not written");
  }
}

}  // namespace
}  // namespace tokamak
