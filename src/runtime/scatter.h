#pragma once

#include <cstdint>

#include "runtime/library_call.h"

// Many single elements, combined into an array at places that are known only when it runs.

namespace tokamak {

enum class ScatterOp : uint8_t { kSet, kAdd, kMultiply, kMinimum, kMaximum };
// Signed integers are compared only, all else is done as if they had no sign; of narrow ones there
// is kSet and kAdd.
enum class ScatterElement : uint8_t { kF32, kF64, kBF16, kS32, kU32, kS64, kU64, k8Bits, k16Bits };

struct ScatterForm {
  ScatterOp op{};
  ScatterElement element{};
  int64_t size = 0;   // of the array
  int64_t count = 0;  // of updates
};

// Operands: the array, places (s32), updates; the result may lie where the array is. Updates are
// combined in their order, those of places outside of the array are left out.
//
// Each thread has a part of the array of its own. It looks through the places of all updates for
// those that lie there, which takes vectors a small part of the time that an update does.
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
