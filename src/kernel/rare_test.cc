#include "kernel/rare.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace tokamak {
namespace {

// Two selects of rare numbers share an arm. What the second has for all other numbers is computed
// between them: it comes before the arm.
TEST(RareArms, WhatTheyNeedComesFirst) {
  KernelBuilder b("k");
  Scalar x = b.Load(
      b.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 1}),
      b.Index(0));
  Scalar holds = x >= 0x1p20, slow = x;
  for (int i = 0; i < 40; ++i) slow = slow * x.Like(0.5);
  Scalar first = Choose(holds, slow, x);
  Scalar late = x + 3.0;
  Scalar second = Choose(holds, slow * 2.0, late);
  std::vector<ValueId> ids;
  for (size_t i = 0; i < b.kernel().nodes.size(); ++i)
    if (b.kernel().nodes[i].arity() > 0) ids.push_back(ValueId{static_cast<uint32_t>(i)});
  b.Store(b.Local("r", ScalarType::kF32, Space::kRegisters, 1), b.Index(0), first + second);
  Kernel kernel = b.Finish();
  RareArms rare(kernel);
  std::vector<ValueId> plain;
  int arms = 0;
  rare.Walk(
      ids, [](const RareArms::Arm&) { return true; },
      [&](ValueId id) {
        if (arms == 0) plain.push_back(id);
      },
      [&](const RareArms::Arm& arm) {
        ++arms;
        EXPECT_EQ(arm.selects, (std::vector{first.id(), second.id()}));
        EXPECT_EQ(arm.values.size(), 41u);
      });
  EXPECT_EQ(arms, 1);
  EXPECT_NE(std::ranges::find(plain, late.id()), plain.end());
}

// A select that needs another one of its condition has no arm in common with it.
TEST(RareArms, NoneThatNeedOneAnother) {
  KernelBuilder b("k");
  Scalar x = b.Load(
      b.Argument({.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 1}),
      b.Index(0));
  Scalar holds = x >= 0x1p20, slow = x;
  for (int i = 0; i < 40; ++i) slow = slow * x.Like(0.5);
  Scalar first = Choose(holds, slow, x);
  Scalar second = Choose(holds, first * 2.0, x);
  std::vector<ValueId> ids;
  for (size_t i = 0; i < b.kernel().nodes.size(); ++i)
    if (b.kernel().nodes[i].arity() > 0) ids.push_back(ValueId{static_cast<uint32_t>(i)});
  b.Store(b.Local("r", ScalarType::kF32, Space::kRegisters, 1), b.Index(0), second);
  Kernel kernel = b.Finish();
  std::vector<ValueId> walked;
  RareArms(kernel).Walk(
      ids, [](const RareArms::Arm&) { return true; }, [&](ValueId id) { walked.push_back(id); },
      [](const RareArms::Arm&) { FAIL(); });
  EXPECT_EQ(walked, ids);
}

}  // namespace
}  // namespace tokamak
