#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gen/library/convolution.h"

namespace tokamak {

// What the libraries of a target compute. They are asked when a program has something for them, not
// before: opening one takes longer than most programs take to compile. Answers stay the same.
class TargetLibraries {
 public:
  virtual ~TargetLibraries() = default;
  // Whether one multiplies matrices.
  bool HasProducts();
  // Why none computes a convolution; "" when one does.
  std::string WhyNot(const LibraryConvolution& convolution);
  // Whether there was a yes: the program has something for a library (Machine::matrix_library).
  bool are_used() const { return are_used_; }

 protected:
  virtual bool FindProducts() = 0;
  virtual std::string FindConvolution(const LibraryConvolution& convolution) = 0;

 private:
  std::optional<bool> has_products_;
  std::vector<std::pair<LibraryConvolution, std::string>> convolutions_;
  bool are_used_ = false;
};

// Of a target that is not there: all that a GPU's may be asked for, dots alone of a CPU's.
class AssumedLibraries final : public TargetLibraries {
 public:
  explicit AssumedLibraries(bool convolutions) : convolutions_(convolutions) {}

 private:
  bool FindProducts() override { return true; }
  std::string FindConvolution(const LibraryConvolution&) override {
    return convolutions_ ? "" : "no library of this machine computes convolutions";
  }
  bool convolutions_;
};

}  // namespace tokamak
