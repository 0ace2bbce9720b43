// Formulas as machine code and in the simulator give the same bits, in vectors. (Tests in
// src/kernel check that the bits are correct.)

#include "kernel/formulas.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernel_run.h"
#include "kernel/builder.h"

namespace tokamak::cpu {
namespace {

constexpr Op kUnary[] = {
    Op::kAbs,   Op::kNegate,   Op::kSign,     Op::kExp,   Op::kExpm1,  Op::kLog,      Op::kLog1p,
    Op::kSqrt,  Op::kRsqrt,    Op::kCbrt,     Op::kSin,   Op::kCos,    Op::kTan,      Op::kTanh,
    Op::kAcos,  Op::kAcosh,    Op::kAsin,     Op::kAsinh, Op::kAtan,   Op::kAtanh,    Op::kSinh,
    Op::kCosh,  Op::kSquare,   Op::kErf,      Op::kErfc,  Op::kErfInv, Op::kLogistic, Op::kCeil,
    Op::kFloor, Op::kRoundAfz, Op::kRoundEven};
constexpr Op kBinary[] = {Op::kAdd,     Op::kSubtract, Op::kMultiply, Op::kDivide,
                          Op::kMaximum, Op::kMinimum,  Op::kPower,    Op::kAtan2};
constexpr Op kOnIntegers[] = {Op::kAdd,         Op::kSubtract,          Op::kMultiply,
                              Op::kDivide,      Op::kRemainder,         Op::kPower,
                              Op::kMaximum,     Op::kMinimum,           Op::kAnd,
                              Op::kShiftLeft,   Op::kShiftRightLogical, Op::kShiftRightArithmetic,
                              Op::kMultiplyHigh};

bool IsOfReals(Op op) {
  return op == Op::kErf || op == Op::kErfc || op == Op::kErfInv || op == Op::kCeil ||
         op == Op::kFloor || op == Op::kRoundAfz || op == Op::kRoundEven;
}

class Formulas : public ::testing::Test {
 protected:
  // Checks the formula if there is one; returns whether there is.
  bool Check(Op op, ElementType type, size_t operands) {
    constexpr int64_t kCount = 64, kLanes = 16;
    bool is_complex = type == ElementType::kC64 || type == ElementType::kC128;
    int64_t parts = is_complex ? 2 : 1;
    KernelBuilder b(std::string(InfoOf(op).name));
    std::vector<Bytes> arguments;
    std::vector<ArrayId> arrays;
    for (size_t i = 0; i <= operands; ++i) {
      bool is_result = i == operands;
      arguments.push_back(Draw(StorageType(type), parts * kCount, random_, !is_result));
      arrays.push_back(b.Argument({.name = is_result ? "y" : "x" + std::to_string(i),
                                   .type = StorageType(type),
                                   .access = is_result ? Access::kWrite : Access::kRead,
                                   .size = parts * kCount}));
    }
    bool has_formula = false;
    b.For("i", LoopRole::kGrid, b.Index(kCount / kLanes), [&](Scalar i) {
      b.For("l", LoopRole::kVector, b.Index(kLanes), [&](Scalar l) {
        Scalar at = (i * b.Index(kLanes) + l) * b.Index(parts);
        std::vector<Element> values;
        for (size_t k = 0; k < operands; ++k) {
          Element loaded{b.Load(arrays[k], at), Scalar()};
          if (is_complex) loaded[1] = b.Load(arrays[k], at + b.Index(1));
          values.push_back(FromStorage(b, type, loaded));
        }
        std::optional<Element> result =
            ApplyOp(b, {.op = op, .type = type, .from = type, .operands = values});
        has_formula = result.has_value();
        if (!has_formula) return;
        Element stored = ToStorage(b, type, *result);
        b.Store(arrays.back(), at, stored[0]);
        if (is_complex) b.Store(arrays.back(), at + b.Index(1), stored[1]);
      });
    });
    Kernel kernel = b.Finish();
    if (has_formula) {
      EXPECT_EQ(Compare(kernel, arguments).text, "")
          << InfoOf(op).name << " of " << InfoOf(type).hlo;
    }
    return has_formula;
  }

  SplitMix64 random_{3};
};

TEST_F(Formulas, OfReals) {
  int formulas = 0;
  for (ElementType type : {ElementType::kF32, ElementType::kF64, ElementType::kBF16}) {
    for (Op op : kUnary) formulas += Check(op, type, 1) ? 1 : 0;
    for (Op op : kBinary) formulas += Check(op, type, 2) ? 1 : 0;
  }
  EXPECT_GT(formulas, 60);
}

TEST_F(Formulas, OfComplexNumbers) {
  int formulas = 0;
  for (Op op : kUnary)
    if (!IsOfReals(op) && op != Op::kAbs) formulas += Check(op, ElementType::kC64, 1) ? 1 : 0;
  for (Op op : {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide, Op::kPower})
    formulas += Check(op, ElementType::kC64, 2) ? 1 : 0;
  EXPECT_GT(formulas, 5);
}

TEST_F(Formulas, OfIntegers) {
  int formulas = 0;
  for (ElementType type :
       {ElementType::kS32, ElementType::kU8, ElementType::kS64, ElementType::kU32})
    for (Op op : kOnIntegers) formulas += Check(op, type, 2) ? 1 : 0;
  EXPECT_GT(formulas, 40);
}

}  // namespace
}  // namespace tokamak::cpu
