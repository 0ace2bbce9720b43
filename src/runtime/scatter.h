#pragma once

#include <cstdint>

#include "runtime/library_call.h"

// Scatter of single elements into an array at data-dependent indices.

namespace tokamak {

enum class ScatterOp : uint8_t { kSet, kAdd, kMultiply, kMinimum, kMaximum };
// Signed integers differ from unsigned ones only in comparisons. 8- and 16-bit elements support
// only kSet and kAdd.
enum class ScatterElement : uint8_t { kF32, kF64, kBF16, kS32, kU32, kS64, kU64, k8Bits, k16Bits };

struct ScatterForm {
  ScatterOp op{};
  ScatterElement element{};
  int64_t size = 0;   // of the array
  int64_t count = 0;  // of updates
};

// Operands: the array, indices (s32), updates; the result may alias the array. Updates are applied
// in order; those with out-of-bounds indices are dropped.
//
// Each thread owns a range of the array. It scans the indices of all updates for those in its
// range; the vectorized scan takes a small fraction of the time of an update.
class ScatterCall final : public LibraryCall {
 public:
  explicit ScatterCall(ScatterForm form);
  void Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const override;
  int64_t ScratchBytes() const override { return 0; }
  std::string Text() const override;
  double Micros() const override;

 private:
  ScatterForm form_;
  int64_t bytes_ = 4;
};

}  // namespace tokamak
