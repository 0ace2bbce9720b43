#pragma once

#include <algorithm>
#include <complex>
#include <span>
#include <vector>

#include "interp/context.h"
#include "interp/lapack.h"
#include "interp/lapack_routines.h"
#include "interp/results.h"
#include "interp/value.h"
#include "ir/ir.h"

namespace tokamak {

// A matrix as LAPACK keeps it, with `stride` rows in memory.
template <typename U>
struct ColumnMajor {
  const std::vector<U>& elements;
  int stride;
};
template <typename U>
ColumnMajor(const std::vector<U>&, int) -> ColumnMajor<U>;

// fn.operator()<T>() with the type that the call computes in: that of its operands, or double in
// oracle mode. TK5001 without LAPACK.
template <typename Fn>
Result<Value> InPrecisionOf(const LapackCall& call, Fn&& fn) {
  auto in = [&]<typename T>() -> Result<Value> {
    if (FindLapack<T>() != nullptr) return fn.template operator()<T>();
    return Unsupported(call.instr, call.instr.attrs<CustomCallAttrs>().target +
                                       " needs LAPACK, which is not on this machine (Debian, "
                                       "Ubuntu: 'liblapack3')");
  };
  const ElementType type = call.operands[0].type();
  const bool is_single = call.context.mode() == NumericMode::kLaw &&
                         (type == ElementType::kF32 || type == ElementType::kC64);
  if (call.is_complex) {
    return is_single ? in.template operator()<std::complex<float>>()
                     : in.template operator()<Complex>();
  }
  return is_single ? in.template operator()<float>() : in.template operator()<double>();
}

struct NotMade {};  // in place of a result that the call does not compute: it stays zero

// The operands and results of a linear-algebra call, one matrix of the batch
// at a time and column-major as LAPACK wants them, in numbers of type T.
// A result that the call does not have is not kept. Custom calls are not
// verified: one whose shapes do not fit is refused by Finish.
template <typename T>
class MatrixBatch {
 public:
  explicit MatrixBatch(const LapackCall& call) : instr_(call.instr), context_(call.context) {
    for (const Value& operand : call.operands) {
      dims_.push_back(operand.dims());
      const std::vector<WideOf<T>> wide = ElementsAs<WideOf<T>>(operand);
      std::vector<T>& narrow = operands_.emplace_back(wide.size());
      std::transform(wide.begin(), wide.end(), narrow.begin(),
                     [](const WideOf<T>& x) { return static_cast<T>(x); });
    }
    const Shape& shape = instr_.shape();
    shapes_ = shape.IsTuple() ? shape.elements() : std::vector<Shape>{shape};
    for (const Shape& part : shapes_)
      results_.emplace_back(static_cast<size_t>(part.ElementCount()));
  }

  int rows(size_t operand = 0) const { return Last(operand, 2); }
  int columns(size_t operand = 0) const { return Last(operand, 1); }

  std::vector<T> Matrix(size_t operand, int64_t item) const {
    const int m = rows(operand), n = columns(operand);
    std::vector<T> to(static_cast<size_t>(m) * static_cast<size_t>(n));
    if (!Fits(operands_[operand].size(), item, to.size())) return to;
    const T* from = operands_[operand].data() + item * m * n;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) to[Index(i, j, m)] = from[int64_t{i} * n + j];
    return to;
  }
  std::vector<T> Vector(size_t operand, int64_t item) const {
    std::vector<T> to(static_cast<size_t>(columns(operand)));
    if (!Fits(operands_[operand].size(), item, to.size())) return to;
    std::copy_n(operands_[operand].begin() + item * columns(operand), to.size(), to.begin());
    return to;
  }

  int ResultColumns(size_t result) const {
    return shapes_[result].dims().empty() ? 1 : static_cast<int>(shapes_[result].dims().back());
  }
  // Runs compute(item) for each item of the batch; its Put keeps the results. An item is what the
  // last `rank` dimensions of operand 0 hold.
  template <typename Fn>
  Result<Value> ForEach(Fn&& compute, size_t rank = 2) {
    int64_t count = 1;
    for (size_t d = 0; d + rank < dims_[0].size(); ++d) count *= dims_[0][d];
    for (int64_t item = 0; item < count; ++item) compute(item);
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
  bool Has(size_t result) const { return result < results_.size(); }
  template <typename U>
  void PutOne(size_t result, int64_t item, const ColumnMajor<U>& matrix) {
    if (!Has(result)) return;
    const auto& [from, stride] = matrix;
    const Dims& dims = shapes_[result].dims();
    const int64_t m = dims.size() < 2 ? 0 : dims[dims.size() - 2],
                  n = dims.empty() ? 0 : dims.back();
    if (!Fits(results_[result].size(), item, static_cast<size_t>(m * n)) || m > stride ||
        static_cast<size_t>(n * stride) > from.size() || dims.size() < 2) {
      fits_ = false;
      return;
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        results_[result][static_cast<size_t>((item * m + i) * n + j)] =
            static_cast<Complex>(from[static_cast<size_t>(j * stride + i)]);
      }
    }
  }
  template <typename U>
  void PutOne(size_t result, int64_t item, const std::vector<U>& from) {
    if (!Has(result)) return;
    const size_t n = static_cast<size_t>(ResultColumns(result));
    if (!Fits(results_[result].size(), item, n)) return;
    for (size_t i = 0; i < n && i < from.size(); ++i)
      results_[result][static_cast<size_t>(item) * n + i] =
          static_cast<Complex>(static_cast<U>(from[i]));
  }
  void PutOne(size_t result, int64_t item, const std::vector<int>& from) {
    PutOne(result, item, std::vector<double>(from.begin(), from.end()));
  }
  void PutOne(size_t result, int64_t item, int value) {
    if (Has(result) && Fits(results_[result].size(), item, 1))
      results_[result][static_cast<size_t>(item)] = Complex(value);
  }
  void PutOne(size_t, int64_t, NotMade) {}

  Result<Value> Finish() const {
    if (!fits_) {
      return RunError(ErrorCode::kLinearAlgebra, instr_,
                      "the operands and the results " + ToString(instr_.shape()) +
                          " are not matrices that belong together");
    }
    std::vector<Value> values;
    for (size_t k = 0; k < results_.size(); ++k) values.push_back(FinishOne(k));
    return instr_.shape().IsTuple() ? Value::Tuple(std::move(values)) : std::move(values[0]);
  }

  bool Fits(size_t have, int64_t item, size_t size) const {
    bool fits = (static_cast<size_t>(item) + 1) * size <= have;
    fits_ = fits_ && fits;
    return fits;
  }
  int Last(size_t operand, size_t from_end) const {
    const Dims& dims = dims_[operand];
    return dims.size() < from_end ? 1 : static_cast<int>(dims[dims.size() - from_end]);
  }
  Value FinishOne(size_t k) const {
    ElementType type = shapes_[k].type();
    return DispatchStorage(type, [&]<typename U>() {
      std::vector<U> elements(results_[k].size());
      for (size_t i = 0; i < elements.size(); ++i) {
        if constexpr (std::is_same_v<U, Complex>) {
          elements[i] = context_.Round(type, results_[k][i]);
        } else {
          elements[i] = context_.Round(type, static_cast<U>(results_[k][i].real()));
        }
      }
      return Value::Array(ResultShape(shapes_[k], shapes_[k].dims()), std::move(elements));
    });
  }

  const Instr& instr_;
  Context& context_;
  std::vector<Dims> dims_;
  std::vector<std::vector<T>> operands_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<Complex>> results_;
  mutable bool fits_ = true;
};

}  // namespace tokamak
