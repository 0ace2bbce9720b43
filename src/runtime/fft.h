#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// Discrete Fourier transforms of the last dimensions of an array on the thread pool. Results depend
// on the shape alone, not on the number of threads: lines are transformed in batches whose size
// follows from the shape.

namespace tokamak {

enum class FourierKind : uint8_t { kForward, kInverse, kFromReal, kToReal };

// Arrays are row-major; complex numbers are pairs. Inverse transforms divide by the number of
// elements.
struct FourierShape {
  FourierKind kind{};
  bool is_double = false;
  std::vector<int64_t> input, output;  // dimensions; equal except for the last
  size_t transformed = 1;              // how many of the last dimensions
};

class Fourier {
 public:
  virtual ~Fourier() = default;
  virtual void Run(const void* input, void* output) const = 0;
};

// Precomputes everything that does not depend on the data.
std::unique_ptr<Fourier> MakeFourier(const FourierShape& shape);

}  // namespace tokamak
