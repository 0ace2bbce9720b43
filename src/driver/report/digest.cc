#include "driver/report/digest.h"

#include "kernel/hash.h"
#include "support/hash.h"

namespace tokamak {

uint64_t LaunchDigest(const Kernel& kernel, int64_t grid) {
  Hasher hasher;
  hasher.Add(HashOf(kernel));
  hasher.Add(grid);
  return hasher.digest();
}

uint64_t ProductDigest(const ProductCall& call) {
  Hasher hasher;
  hasher.Add(call.convolution ? ToString(*call.convolution) : ToString(call.product));
  return hasher.digest();
}

uint64_t DigestOf(std::span<const uint64_t> launches) {
  if (launches.size() == 1) return launches[0];
  Hasher hasher;
  for (uint64_t launch : launches) hasher.Add(launch);
  return hasher.digest();
}

}  // namespace tokamak
