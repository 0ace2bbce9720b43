#pragma once

#include <cstdint>
#include <variant>

#include "runtime/fft.h"
#include "runtime/triangular.h"

namespace tokamak::cuda {

// A routine of LAPACK on a batch of row-major matrices, with the operands and results that JAX's
// calls of it have.
struct FactorCall {
  enum class Routine : uint8_t {
    kLu,          // getrf: factors, pivots from 1, info
    kQr,          // geqrf: reflectors and R, their factors
    kReflectors,  // orgqr: the orthogonal matrix of the first two operands
    kEigen,       // syevd: vectors, values, info
    kSingular,    // gesdd, gesvd: what is left, values, left vectors, right vectors, info
  };
  // Singular vectors that are made: none, as many as there are values, all.
  enum class Vectors : uint8_t { kNone, kSome, kAll };
  Routine routine{};
  MatrixElement element{};
  int64_t batch = 1, rows = 0, columns = 0;
  int64_t reflectors = 0;  // of orgqr
  bool lower = true;       // eigen: the triangle that is read
  Vectors vectors = Vectors::kAll;
};

// Row swaps of s32, from 0, one after the other, as a permutation of the rows.
struct PermutationCall {
  int64_t batch = 1, swaps = 0, rows = 0;
};

// What a library of the device may do in the host's place. Arrays are those of the step: operands,
// then results.
using DeviceCall =
    std::variant<FourierShape, CholeskyCall, TriangularCall, FactorCall, PermutationCall>;

// Such a call, ready to be asked for.
class CallCode {
 public:
  virtual ~CallCode() = default;
  // Whether the thread that asks for it waits until it is done.
  virtual bool waits() const { return false; }
};

}  // namespace tokamak::cuda
