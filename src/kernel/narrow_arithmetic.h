#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Formulas compute with f16 and bf16 in f32 and round each result. A target with arithmetic of
// these types needs no f32 and no conversions: rounding the f32 sum, difference or product of two
// 16-bit floats equals rounding the exact one, because 24 >= 2 * 11 + 2 bits (double rounding is
// innocuous; narrow_arithmetic_test.cc). It does not hold for fused multiply-add.

// Register arrays of f32 all of whose elements are representable in f16 or in bf16, such as cached
// elements of a row. A kernel with asynchronous work has none.
class NarrowArrays {
 public:
  explicit NarrowArrays(const Kernel& kernel);
  bool Has(ArrayId id, ScalarType type) const {
    return type == ScalarType::kF16 ? are_f16_[static_cast<size_t>(id)]
                                    : are_bf16_[static_cast<size_t>(id)];
  }

 private:
  bool RemoveWideStores(const Kernel& kernel, const StmtList& block);

  std::vector<bool> are_f16_, are_bf16_;
};

// Whether an f32 is known to be representable in `type`, which is f16 or bf16. `arrays` may be
// null.
bool IsRepresentable(const Kernel& kernel, ValueId id, ScalarType type, const NarrowArrays* arrays);

// The addition, subtraction or multiplication in f32 that `id` rounds to f16 or bf16, if both
// operands are representable in that type. nullopt if `id` is something else.
std::optional<ValueId> NarrowOperation(const Kernel& kernel, ValueId id,
                                       const NarrowArrays* arrays = nullptr);

// The division in f32 that `id` rounds to bf16, if both operands are representable in bf16. An
// exact quotient differs from the middle of two normal numbers of 8 bits by 2^-17 of its size or
// more: an f32 quotient within 2 ulp rounds to the same bf16. Between subnormal numbers there are
// ties, which may then be rounded to either.
std::optional<ValueId> NarrowQuotient(const Kernel& kernel, ValueId id,
                                      const NarrowArrays* arrays = nullptr);

}  // namespace tokamak
