#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gen/library/convolution.h"

// Queries about the libraries of a target (BLAS, cuDNN).

namespace tokamak {

// What the libraries of a target compute. Libraries are opened on the first question only: opening
// one takes longer than compiling most programs. Answers are cached.
class TargetLibraries {
 public:
  virtual ~TargetLibraries() = default;
  // Whether a library multiplies matrices.
  bool HasProducts();
  // Returns why no library computes a convolution, empty if one does.
  std::string WhyNot(const LibraryConvolution& convolution);
  // Whether any answer was positive, so the program uses a library (Machine::matrix_library).
  bool are_used() const { return are_used_; }

 protected:
  virtual bool FindProducts() = 0;
  virtual std::string FindConvolution(const LibraryConvolution& convolution) = 0;

 private:
  std::optional<bool> has_products_;
  std::vector<std::pair<LibraryConvolution, std::string>> convolutions_;
  bool are_used_ = false;
};

// Libraries of a target that is not present: everything for a GPU, only dots for a CPU.
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
