#pragma once

#include <array>
#include <optional>
#include <vector>

#include "cost/machine.h"
#include "cost/panel_rates.h"
#include "ir/ir.h"
#include "kernel/kernel.h"

// The types in which tensor cores can multiply the factors of a dot (asynchronous multiplies,
// tensor_tiling.h).

namespace tokamak::gpu {

// The form in which the factors of a dot are multiplied.
struct TensorForm {
  std::array<ScalarType, 2> types{};  // of the panels of lhs and rhs, which have equal sizes
  bool tf32 = false;                  // f32 panels, of factors that are rounded to TF32
  std::array<Float8, 2> float8{};     // u8 panels that hold f8 numbers
  // Panels per operand: 1, or 2 of bf16 whose sum is the factor (split_operand.h).
  std::array<int64_t, 2> parts = {1, 1};

  // Multiplies per panel. The product of two second parts is too small to matter.
  int64_t Products() const { return parts[0] + parts[1] - 1; }
  // Time of the multiplies, relative to those of one product of 16-bit factors.
  double RelativeTime() const {
    return tf32           ? static_cast<double>(kTf32Products)
           : bytes() == 1 ? kByteProducts
                          : static_cast<double>(Products());
  }
  // Bytes of an element of a panel, and elements of 128 bytes.
  int64_t bytes() const { return BytesOf(types[0]); }
  int64_t line() const { return MatrixMultiply::kPanelBytes / bytes(); }
  bool IsFloat8() const { return float8[0] != Float8::kNone; }
  ScalarType SumType() const {
    return bytes() == 1 && !IsFloat8() ? ScalarType::kS32 : ScalarType::kF32;
  }
  // Whether tensor cores read panels along K only (PTX ISA: they transpose 16-bit elements).
  bool IsKMajorOnly() const { return bytes() != 2; }
  // Whether the sums of each panel are added to others. Tensor cores keep 14 bits of sums of f8
  // (MatrixMultiply), too few for long ones.
  bool HasPartialSums() const { return IsFloat8(); }
  bool operator==(const TensorForm&) const = default;
};

// The form of panels of this type.
TensorForm FormOf(ScalarType type, const std::array<int64_t, 2>& parts = {1, 1});
// The forms in which the factors of a dot can be multiplied.
std::vector<TensorForm> FormsOf(const Instr& dot, const Machine& machine);
// The one that tensor cores read along K only, if the dot has one.
std::optional<TensorForm> KMajorFormOf(const Instr& dot, const Machine& machine);

}  // namespace tokamak::gpu
