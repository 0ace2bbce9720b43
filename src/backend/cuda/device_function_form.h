#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "backend/cuda/cuda_text.h"

// Canonical text of device functions. Kernels of a horizontally fused launch that differ only in
// constants or names share one function; the constants become parameters of it.
namespace tokamak::cuda {

// Constants that may differ between kernels of the same form: floating-point ones, and the limits
// of an index. The text has placeholders for them.
class OpenConstants {
 public:
  struct Constant {
    ScalarType type{};
    Bits bits = 0;
    std::string literal;
  };

  explicit OpenConstants(const Kernel& kernel);

  bool IsOpen(ValueId id) const { return open_[static_cast<size_t>(id)]; }
  // The placeholder of a constant; numbered in the order of first mention.
  std::string MarkOf(ValueId id, const std::string& literal);
  const std::vector<Constant>& mentioned() const { return mentioned_; }

 private:
  const Kernel& kernel_;
  std::vector<bool> open_;  // per value
  std::unordered_map<ValueId, size_t> numbers_;
  std::vector<Constant> mentioned_;
};

// A kernel as a __device__ function `name` with placeholders for its open constants.
struct DeviceFunctionForm {
  CudaSource source;
  std::vector<OpenConstants::Constant> constants;
};
Result<DeviceFunctionForm> DeviceFunctionFormOf(const Kernel& kernel, const std::string& name);

// The text with words[i] substituted for placeholder i.
std::string WithoutMarks(const std::string& text, const std::vector<std::string>& words);

// The same kernel with canonical names and with a canonical operand order for commutative
// primitives: kernels that compute the same have the same text.
Kernel WithoutNames(const Kernel& kernel);

}  // namespace tokamak::cuda
