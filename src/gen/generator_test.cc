#include "gen/generator.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "kernel/builder.h"

namespace tokamak {
namespace {

// An in-place update must be the last instruction of its region: the array that it writes is not an
// input, so inside the region its elements could not be read.
TEST(Generator, RejectsAnUpdateInTheMiddle) {
  Module module("m");
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {8}));
  Instr* part = b.Parameter(Shape::Array(ElementType::kF32, {2}));
  Instr* at = b.Parameter(Shape::Scalar(ElementType::kS32));
  Instr* update = b.DynamicUpdateSlice(x, part, {at});
  Instr* root = b.Negate(update);
  ASSERT_TRUE(b.Finish(root).ok());
  FusedRegion region{.computation = root->parent(),
                     .instrs = {update, root},
                     .inputs = {part, at},
                     .roots = {root}};
  for (MachineKind kind : {MachineKind::kCpu, MachineKind::kGpu}) {
    Machine machine;
    machine.kind = kind;
    BuildOutcome outcome = BuildRegion(region, GeneratorKind::kLoop, machine, "k");
    EXPECT_FALSE(outcome.built.has_value());
    EXPECT_EQ(outcome.why_not, "parameter: an update that is not stored reads it");
  }
}

// A value read in one block is used in another.
TEST(Generator, AnUnsoundKernelIsNone) {
  constexpr ScalarType kF32 = ScalarType::kF32;
  for (bool is_sound : {true, false}) {
    KernelBuilder b("k", Dialect::kCpu);
    ArrayId x = b.Argument({.name = "x", .type = kF32, .access = Access::kReadWrite, .size = 4});
    Scalar read;
    auto read_in_loop = [&](Scalar i) { read = b.Read(x, i); };
    b.For("g", LoopRole::kGrid, b.Index(1), [&](Scalar) {
      b.For("i", LoopRole::kSerial, b.Index(4), read_in_loop);
      b.For("j", LoopRole::kSerial, b.Index(4),
            [&](Scalar j) { b.Store(x, j, is_sound ? b.Read(x, j) : read); });
    });
    BuildOutcome outcome;
    outcome.built.emplace().kernel = b.Finish();
    outcome = VerifyOrReject(std::move(outcome));
    EXPECT_EQ(outcome.built.has_value(), is_sound);
    EXPECT_EQ(outcome.why_not.starts_with(kGeneratorBug), !is_sound);
  }
}

// The array that an in-place update overwrites must not be read elsewhere in the kernel.
TEST(Generator, RejectsReadingTheUpdatedArrayElsewhere) {
  Module module("m");
  Builder b(module, "main");
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {64}));
  Instr* at = b.Parameter(Shape::Scalar(ElementType::kS32));
  Instr* first = b.Slice(x, {0}, {8}, {1});
  Instr* update = b.DynamicUpdateSlice(x, b.Negate(first), {at});
  ASSERT_TRUE(b.Finish(update).ok());
  FusedRegion region{.computation = update->parent(),
                     .instrs = {first, update->operand(1), update},
                     .inputs = {x, at},
                     .roots = {update}};
  for (MachineKind kind : {MachineKind::kCpu, MachineKind::kGpu}) {
    Machine machine;
    machine.kind = kind;
    BuildOutcome outcome = BuildRegion(region, GeneratorKind::kLoop, machine, "k");
    EXPECT_FALSE(outcome.built.has_value());
    EXPECT_EQ(outcome.why_not, "it reads the array that it overwrites");
  }
}

}  // namespace
}  // namespace tokamak
