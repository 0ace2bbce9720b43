#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gen/library/convolution.h"

// Queries about the libraries of a target (BLAS, cuDNN).

namespace tokamak {

// What the libraries of a target compute. Libraries are loaded (dlopen) on the first query only:
// loading one takes longer than compiling most programs. Answers are cached.
class TargetLibraries {
 public:
  virtual ~TargetLibraries() = default;
  // Whether a library multiplies matrices.
  bool HasMatrixMultiply();
  // Returns why no library computes a convolution, empty if one does.
  std::string WhyNot(const LibraryConvolution& convolution);
  // Whether any answer was positive, for a dot or a convolution: the program may use a library.
  // After the target passes, this becomes Machine::uses_library (driver/compile/lower_module.cc),
  // without which UsesLibrary (dot.h) is false for all dots and convolutions.
  bool uses_library() const { return uses_library_; }

 protected:
  virtual bool FindMatrixMultiply() = 0;
  virtual std::string FindConvolution(const LibraryConvolution& convolution) = 0;

 private:
  std::optional<bool> has_matrix_multiply_;
  std::vector<std::pair<LibraryConvolution, std::string>> convolutions_;
  bool uses_library_ = false;
};

// Assumed libraries of a target that is not this machine (cross-compilation, `--target`): dots, and
// for a GPU convolutions. "This machine" in the message of FindConvolution is the target.
class AssumedLibraries final : public TargetLibraries {
 public:
  explicit AssumedLibraries(bool convolutions) : convolutions_(convolutions) {}

 private:
  bool FindMatrixMultiply() override { return true; }
  std::string FindConvolution(const LibraryConvolution&) override {
    return convolutions_ ? "" : "no library of this machine computes convolutions";
  }
  bool convolutions_;
};

}  // namespace tokamak
