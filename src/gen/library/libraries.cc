#include "gen/library/libraries.h"

#include <algorithm>

namespace tokamak {

bool TargetLibraries::HasProducts() {
  if (!has_products_) has_products_ = FindProducts();
  are_used_ = are_used_ || *has_products_;
  return *has_products_;
}

std::string TargetLibraries::WhyNot(const LibraryConvolution& convolution) {
  auto known = std::ranges::find(convolutions_, convolution,
                                 &std::pair<LibraryConvolution, std::string>::first);
  if (known == convolutions_.end())
    known = convolutions_.insert(known, {convolution, FindConvolution(convolution)});
  are_used_ = are_used_ || known->second.empty();
  return known->second;
}

}  // namespace tokamak
