#include "gen/element_memo.h"

#include <vector>

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tokamak {
namespace {

struct MemoOfTwo {
  Module module{"m"};
  Builder b{module, "main"};
  const Instr& x = *b.Parameter(Shape::Array(ElementType::kF32, {4, 4}));
  const Instr& y = *b.Parameter(Shape::Array(ElementType::kF32, {4, 4}));
  KernelBuilder kernel{"k"};
  ElementMemo memo;

  Element Value(int64_t number) { return {kernel.Index(number), {}}; }
  // The value recorded at a position; -1 if there is none.
  int64_t At(const Instr& instr, size_t result_index, const std::vector<Scalar>& at) const {
    const Element* found = memo.Find(instr, result_index, at);
    if (found == nullptr) return -1;
    const ScalarNode& node = kernel.kernel().node((*found)[0].id());
    return IntOfBits(node.type, node.bits);
  }
};

TEST(ElementMemo, DistinguishesInstructionsResultsAndCoordinates) {
  MemoOfTwo of;
  Scalar i = of.kernel.Index(0), k = of.kernel.Index(1);
  of.memo.Add(of.x, 0, std::vector{i, k}, of.Value(10));
  of.memo.Add(of.x, 1, std::vector{i, k}, of.Value(11));
  of.memo.Add(of.y, 0, std::vector{i, k}, of.Value(12));
  of.memo.Add(of.x, 0, std::vector{k, i}, of.Value(13));
  of.memo.Add(of.x, 0, std::vector{i}, of.Value(14));
  of.memo.Add(of.x, 0, {}, of.Value(15));
  EXPECT_EQ(of.At(of.x, 0, {i, k}), 10);
  EXPECT_EQ(of.At(of.x, 1, {i, k}), 11);
  EXPECT_EQ(of.At(of.y, 0, {i, k}), 12);
  EXPECT_EQ(of.At(of.x, 0, {k, i}), 13);
  EXPECT_EQ(of.At(of.x, 0, {i}), 14);
  EXPECT_EQ(of.At(of.x, 0, {}), 15);
  EXPECT_EQ(of.At(of.y, 1, {i, k}), -1);
  EXPECT_EQ(of.At(of.y, 0, {}), -1);
}

TEST(ElementMemo, AddKeepsAndSetReplaces) {
  MemoOfTwo of;
  std::vector<Scalar> at = {of.kernel.Index(3)};
  of.memo.Add(of.x, 0, at, of.Value(1));
  of.memo.Add(of.x, 0, at, of.Value(2));
  EXPECT_EQ(of.At(of.x, 0, at), 1);
  of.memo.Set(of.x, 0, at, of.Value(3));
  EXPECT_EQ(of.At(of.x, 0, at), 3);
}

TEST(ElementMemo, FindsAllElementsOfALargeTableAndNoneOnceCleared) {
  MemoOfTwo of;
  constexpr int64_t kElements = 1000;
  auto position = [&](int64_t n) { return std::vector{of.kernel.Index(n), of.kernel.Index(0)}; };
  for (int64_t n = 0; n < kElements; ++n) of.memo.Add(of.x, 0, position(n), of.Value(n));
  for (int64_t n = 0; n < kElements; ++n) EXPECT_EQ(of.At(of.x, 0, position(n)), n);
  of.memo.Clear();
  for (int64_t n = 0; n < kElements; ++n) EXPECT_EQ(of.At(of.x, 0, position(n)), -1);
  of.memo.Add(of.x, 0, position(0), of.Value(5));
  EXPECT_EQ(of.At(of.x, 0, position(0)), 5);
}

}  // namespace
}  // namespace tokamak
