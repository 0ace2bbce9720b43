#include "interp/slice_values.h"

#include <algorithm>
#include <utility>

namespace tokamak {
namespace {

// An array as rows: `outer` rows of `size` blocks of `inner` elements along a dimension.
struct Blocks {
  size_t outer = 1, size = 1, inner = 1;
  Blocks(const Dims& dims, size_t dimension) {
    for (size_t i = 0; i < dims.size(); ++i) {
      size_t n = static_cast<size_t>(dims[i]);
      if (i < dimension) outer *= n;
      if (i == dimension) size = n;
      if (i > dimension) inner *= n;
    }
  }
};

Shape WithSize(const Shape& shape, size_t dimension, int64_t size) {
  Dims dims = shape.dims();
  dims[dimension] = size;
  return shape.WithDims(std::move(dims));
}

}  // namespace

Value Zeros(const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Value> elements;
    for (const Shape& element : shape.elements()) elements.push_back(Zeros(element));
    return Value::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) return Value::Token();
  return DispatchStorage(shape.type(), [&]<typename T>() {
    return Value::Array(shape, std::vector<T>(static_cast<size_t>(shape.ElementCount())));
  });
}

Value SliceOf(const Value& value, size_t dimension, int64_t start, int64_t size) {
  Blocks blocks(value.dims(), dimension);
  return DispatchStorage(value.type(), [&]<typename T>() {
    std::span<const T> from = value.Data<T>();
    std::vector<T> to;
    to.reserve(blocks.outer * static_cast<size_t>(size) * blocks.inner);
    for (size_t row = 0; row < blocks.outer; ++row) {
      auto first =
          from.begin() +
          static_cast<ptrdiff_t>((row * blocks.size + static_cast<size_t>(start)) * blocks.inner);
      to.insert(to.end(), first,
                first + static_cast<ptrdiff_t>(static_cast<size_t>(size) * blocks.inner));
    }
    return Value::Array(WithSize(value.shape(), dimension, size), std::move(to));
  });
}

Value Concat(std::span<const Value> values, size_t dimension) {
  int64_t total = 0;
  for (const Value& value : values) total += value.dims()[dimension];
  Shape shape = WithSize(values[0].shape(), dimension, total);
  return DispatchStorage(shape.type(), [&]<typename T>() {
    std::vector<T> to;
    to.reserve(static_cast<size_t>(shape.ElementCount()));
    size_t rows = Blocks(shape.dims(), dimension).outer;
    for (size_t row = 0; row < rows; ++row) {
      for (const Value& value : values) {
        Blocks blocks(value.dims(), dimension);
        std::span<const T> from =
            value.Data<T>().subspan(row * blocks.size * blocks.inner, blocks.size * blocks.inner);
        to.insert(to.end(), from.begin(), from.end());
      }
    }
    return Value::Array(shape, std::move(to));
  });
}

}  // namespace tokamak
