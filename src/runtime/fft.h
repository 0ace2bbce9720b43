#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// Discrete Fourier transforms of the last dimensions of an array, by our threads. What a result is
// depends on the shape alone: lines are transformed in groups that follow from it.

namespace tokamak {

enum class FourierKind : uint8_t { kForward, kInverse, kFromReal, kToReal };

// Arrays are row-major; complex numbers are pairs. Inverse transforms divide by the count.
struct FourierShape {
  FourierKind kind{};
  bool is_double = false;
  std::vector<int64_t> input, output;  // dimensions; of all but the last as each other's
  size_t transformed = 1;              // how many of the last ones
};

class Fourier {
 public:
  virtual ~Fourier() = default;
  virtual void Run(const void* input, void* output) const = 0;
};

// With all that does not depend on the numbers made ready.
std::unique_ptr<Fourier> MakeFourier(const FourierShape& shape);

}  // namespace tokamak
