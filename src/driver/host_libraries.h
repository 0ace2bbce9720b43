#pragma once

#include "gen/library/libraries.h"
#include "runtime/matrix_product.h"

namespace tokamak {

// Of the machine that this process runs on.
class HostLibraries final : public TargetLibraries {
  bool FindProducts() override { return HasMatrixLibrary(); }
  std::string FindConvolution(const LibraryConvolution&) override {
    return "no library of this machine computes convolutions";
  }
};

}  // namespace tokamak
