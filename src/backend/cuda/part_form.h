#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "backend/cuda/cuda_text.h"

namespace tokamak::cuda {

// Constants of a kernel that others of the same form may have other values for: reals, and where an
// index ends. A text has marks in their places.
class OpenConstants {
 public:
  struct Constant {
    ScalarType type{};
    Bits bits = 0;
    std::string literal;
  };

  explicit OpenConstants(const Kernel& kernel);

  bool IsOpen(ValueId id) const { return open_[static_cast<size_t>(id)]; }
  // The mark of a constant; they are numbered as they are first mentioned.
  std::string MarkOf(ValueId id, const std::string& literal);
  const std::vector<Constant>& mentioned() const { return mentioned_; }

 private:
  const Kernel& kernel_;
  std::vector<bool> open_;  // by value
  std::unordered_map<ValueId, size_t> numbers_;
  std::vector<Constant> mentioned_;
};

// A kernel as a function of the device, `name`, with marks in the places of its open constants.
struct PartForm {
  CudaSource source;
  std::vector<OpenConstants::Constant> constants;
};
Result<PartForm> PartFormOf(const Kernel& kernel, const std::string& name);

// The text in which constant i stands as words[i].
std::string WithoutMarks(const std::string& text, const std::vector<std::string>& words);

// The same kernel, with names that do not tell where it comes from, and operands in one order where
// their order does not matter: kernels that do the same have the same text.
Kernel WithoutNames(const Kernel& kernel);

}  // namespace tokamak::cuda
