#pragma once

#include <algorithm>
#include <complex>
#include <span>
#include <vector>

#include "interp/lapack.h"
#include "interp/lapack_routines.h"
#include "interp/results.h"
#include "interp/strided.h"
#include "ir/ir.h"

namespace tokamak {

// A column-major matrix as LAPACK stores it, with leading dimension `stride`.
template <typename U>
struct ColumnMajor {
  const std::vector<U>& elements;
  int stride;
};
template <typename U>
ColumnMajor(const std::vector<U>&, int) -> ColumnMajor<U>;

// Calls fn.operator()<T>() with the type that the call computes in. Returns TK5001 without LAPACK.
template <typename Fn>
Status InPrecisionOf(const LapackCall& call, Fn&& fn) {
  auto in = [&]<typename T>() -> Status {
    if (FindLapack<T>() != nullptr) return fn.template operator()<T>();
    return Unsupported(call.instr, call.instr.attrs<CustomCallAttrs>().target +
                                       " needs LAPACK: install it (Debian, Ubuntu: liblapack3)");
  };
  if (call.operands[0].kind == LapackArray::Kind::kComplex) {
    return call.is_double ? in.template operator()<std::complex<double>>()
                          : in.template operator()<std::complex<float>>();
  }
  return call.is_double ? in.template operator()<double>() : in.template operator()<float>();
}

// Calls visit(i, j) for every element of a matrix in square tiles, so that a transposing copy uses
// whole cache lines.
template <typename Fn>
void BySquares(int64_t rows, int64_t columns, Fn&& visit) {
  constexpr int64_t kSide = 16;  // tile side in elements; chosen: 16 x 16 doubles (2 KiB) fit in L1
  for (int64_t top = 0; top < rows; top += kSide) {
    for (int64_t left = 0; left < columns; left += kSide) {
      const int64_t bottom = std::min(rows, top + kSide), right = std::min(columns, left + kSide);
      for (int64_t i = top; i < bottom; ++i)
        for (int64_t j = left; j < right; ++j) visit(i, j);
    }
  }
}

struct NotMade {};  // marks a result that the call does not compute: it is zero

// The operands and results of a linear-algebra call, one matrix of the batch at a time and
// column-major for LAPACK, with elements of type T. Unused results are not written. Custom calls
// are not verified: Finish rejects a call whose shapes do not fit.
template <typename T>
class MatrixBatch {
  using Kind = LapackArray::Kind;

 public:
  explicit MatrixBatch(const LapackCall& call) : call_(call) {}

  int rows(size_t operand = 0) const { return Last(*call_.operands[operand].dims, 2); }
  int columns(size_t operand = 0) const { return Last(*call_.operands[operand].dims, 1); }

  // Copies the matrix of a batch item into memory that the items share.
  void Matrix(size_t operand, int64_t item, std::vector<T>& to) const {
    const int m = rows(operand), n = columns(operand);
    to.resize(static_cast<size_t>(m) * static_cast<size_t>(n));
    const T* from = Item(operand, item, to.size());
    if (from == nullptr) return;
    BySquares(m, n, [m, n, from, into = to.data()](int64_t i, int64_t j) {
      into[j * m + i] = from[i * n + j];
    });
  }
  void Vector(size_t operand, int64_t item, std::vector<T>& to) const {
    to.resize(static_cast<size_t>(columns(operand)));
    const T* from = Item(operand, item, to.size());
    if (from != nullptr) std::copy_n(from, to.size(), to.begin());
  }

  void Ints(size_t operand, int64_t item, std::vector<int>& to) const {
    const LapackArray& from = call_.operands[operand];
    if (from.kind != Kind::kInt) fits_ = false;
    if (!Fits(*from.dims, item, to.size()) || !fits_) return;
    std::copy_n(static_cast<const int*>(from.data) + static_cast<size_t>(item) * to.size(),
                to.size(), to.begin());
  }

  int ResultColumns(size_t result) const {
    return result < call_.results.size() ? Last(*call_.results[result].dims, 1) : 1;
  }
  // Runs compute(item) for each requested item of the batch; its Put stores the results. An item is
  // the last `rank` dimensions of operand 0.
  template <typename Fn>
  Status ForEach(Fn&& compute, size_t rank = 2) {
    const Dims& dims = *call_.operands[0].dims;
    int64_t count = 1;
    for (size_t d = 0; d + rank < dims.size(); ++d) count *= dims[d];
    count = std::min(count, call_.items.end);
    for (int64_t item = call_.items.begin; item < count && fits_; ++item) compute(item);
    return Finish();
  }
  // The results of one item, in order: matrices, vectors, numbers.
  template <typename... Parts>
  void Put(int64_t item, const Parts&... parts) {
    size_t result = 0;
    (PutOne(result++, item, parts), ...);
  }

  static size_t Index(int i, int j, int stride) {
    return static_cast<size_t>(j) * static_cast<size_t>(stride) + static_cast<size_t>(i);
  }

 private:
  using Real = RealOf<T>;
  static constexpr Kind kOwn = kIsReal<T> ? Kind::kReal : Kind::kComplex;

  template <typename To, typename From>
  static To As(const From& from) {
    if constexpr (std::is_same_v<To, std::complex<Real>>) {
      return To(from);
    } else {
      return static_cast<To>(std::real(from));
    }
  }
  // Calls put(To*) with the address of the `size` elements of an item.
  template <typename Fn>
  void Into(size_t result, int64_t item, int64_t size, Fn&& put) {
    if (result >= call_.results.size()) return;
    const LapackArray& to = call_.results[result];
    if (!Fits(*to.dims, item, static_cast<size_t>(size)) || to.data == nullptr) return;
    auto as = [&]<typename To>() { put(static_cast<To*>(to.data) + item * size); };
    if (to.kind == Kind::kInt) return as.template operator()<int>();
    if (to.kind == Kind::kReal) return as.template operator()<Real>();
    as.template operator()<std::complex<Real>>();
  }
  template <typename U>
  void PutOne(size_t result, int64_t item, const ColumnMajor<U>& matrix) {
    if (result >= call_.results.size()) return;
    const Dims& dims = *call_.results[result].dims;
    const int64_t m = dims.size() < 2 ? 0 : dims[dims.size() - 2],
                  n = dims.empty() ? 0 : dims.back(), stride = matrix.stride;
    if (m > stride || static_cast<size_t>(n * stride) > matrix.elements.size() || dims.size() < 2) {
      fits_ = false;
      return;
    }
    Into(result, item, m * n, [m, n, stride, from = matrix.elements.data()]<typename To>(To* to) {
      BySquares(m, n, [n, stride, from, to](int64_t i, int64_t j) {
        to[i * n + j] = As<To>(from[j * stride + i]);
      });
    });
  }
  template <typename U>
  void PutOne(size_t result, int64_t item, const std::vector<U>& from) {
    const int n = ResultColumns(result);
    Into(result, item, n, [&]<typename To>(To* to) {
      for (size_t i = 0; i < static_cast<size_t>(n); ++i)
        to[i] = i < from.size() ? As<To>(from[i]) : To(0);
    });
  }
  void PutOne(size_t result, int64_t item, int value) {
    Into(result, item, 1, [&]<typename To>(To* to) { *to = As<To>(value); });
  }
  void PutOne(size_t result, int64_t item, NotMade) {
    if (result >= call_.results.size()) return;
    const Dims& dims = *call_.results[result].dims;
    const int64_t size = int64_t{Last(dims, 1)} * Last(dims, 2);
    Into(result, item, size, [&]<typename To>(To* to) { std::fill_n(to, size, To(0)); });
  }

  Status Finish() const {
    if (fits_) return Ok();
    return RunError(
        ErrorCode::kLinearAlgebra, call_.instr,
        "the operands and the results " + ToString(call_.instr.shape()) + " do not match");
  }

  const T* Item(size_t operand, int64_t item, size_t size) const {
    const LapackArray& array = call_.operands[operand];
    if (array.kind != kOwn) fits_ = false;
    if (!Fits(*array.dims, item, size) || !fits_) return nullptr;
    return static_cast<const T*>(array.data) + static_cast<size_t>(item) * size;
  }
  bool Fits(const Dims& dims, int64_t item, size_t size) const {
    const bool fits =
        (static_cast<size_t>(item) + 1) * size <= static_cast<size_t>(ProductOf(dims));
    fits_ = fits_ && fits;
    return fits;
  }
  static int Last(const Dims& dims, size_t from_end) {
    return dims.size() < from_end ? 1 : static_cast<int>(dims[dims.size() - from_end]);
  }

  const LapackCall& call_;
  mutable bool fits_ = true;
};

}  // namespace tokamak
