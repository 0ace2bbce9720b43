#pragma once

#include "interp/results.h"
#include "interp/strided.h"
#include "interp/value.h"

namespace tokamak {

// The index operand of gather and scatter: an array of index vectors along index_vector_dim (if
// that equals the rank, each element is a vector).
class IndexVectors {
 public:
  IndexVectors(const Value& indices, int64_t vector_dim)
      : elements_(IntsOf(indices)), vector_dim_(static_cast<size_t>(vector_dim)) {
    Dims strides = StridesOf(indices.dims());
    for (size_t d = 0; d < strides.size(); ++d) {
      if (d == vector_dim_) {
        vector_stride_ = strides[d];
      } else {
        dims_.push_back(indices.dims()[d]);
        strides_.push_back(strides[d]);
      }
    }
    // An unsigned index beyond the signed range remains a large index.
    if (IsUnsigned(indices.type())) {
      for (int64_t& e : elements_)
        if (e < 0) e = INT64_MAX / 4;
    }
  }

  // The dimensions without index_vector_dim.
  const Dims& dims() const { return dims_; }
  // Component i of the vector at a coordinate of dims().
  int64_t At(const Dims& at, size_t i) const {
    int64_t offset = static_cast<int64_t>(i) * vector_stride_;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides_[d];
    return elements_[static_cast<size_t>(offset)];
  }
  // The coordinate along dimension `dim` of the whole index operand.
  int64_t Coordinate(const Dims& at, int64_t dim) const {
    size_t d = static_cast<size_t>(dim);
    return at[d > vector_dim_ ? d - 1 : d];
  }

 private:
  Dims elements_, dims_, strides_;
  size_t vector_dim_;
  int64_t vector_stride_ = 0;
};

}  // namespace tokamak
