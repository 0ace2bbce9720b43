#include "gen/library/libraries.h"

#include <algorithm>

namespace tokamak {

bool TargetLibraries::HasMatrixMultiply() {
  if (!has_matrix_multiply_) has_matrix_multiply_ = FindMatrixMultiply();
  uses_library_ = uses_library_ || *has_matrix_multiply_;
  return *has_matrix_multiply_;
}

std::string TargetLibraries::WhyNot(const LibraryConvolution& convolution) {
  auto known = std::ranges::find(convolutions_, convolution,
                                 &std::pair<LibraryConvolution, std::string>::first);
  if (known == convolutions_.end())
    known = convolutions_.insert(known, {convolution, FindConvolution(convolution)});
  uses_library_ = uses_library_ || known->second.empty();
  return known->second;
}

}  // namespace tokamak
