#include "kernel/cold_paths.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace tokamak {
namespace {

// Two selects share a cold path. The other operand of the second select is computed between them,
// so it must precede the path.
TEST(ColdPaths, OperandsComeFirst) {
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
  ColdPaths cold(kernel);
  std::vector<ValueId> plain;
  int paths = 0;
  cold.Walk(
      ids, [](const ColdPaths::ColdPath&) { return true; },
      [&](ValueId id) {
        if (paths == 0) plain.push_back(id);
      },
      [&](const ColdPaths::ColdPath& path) {
        ++paths;
        EXPECT_EQ(path.selects, (std::vector{first.id(), second.id()}));
        EXPECT_EQ(path.values.size(), 41u);
      });
  EXPECT_EQ(paths, 1);
  EXPECT_NE(std::ranges::find(plain, late.id()), plain.end());
}

// Selects on one condition that depend on each other do not share a path.
TEST(ColdPaths, NoneThatNeedOneAnother) {
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
  ColdPaths(kernel).Walk(
      ids, [](const ColdPaths::ColdPath&) { return true; },
      [&](ValueId id) { walked.push_back(id); }, [](const ColdPaths::ColdPath&) { FAIL(); });
  EXPECT_EQ(walked, ids);
}

}  // namespace
}  // namespace tokamak
