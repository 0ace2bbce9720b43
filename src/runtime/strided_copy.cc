#include "runtime/strided_copy.h"

#include <cstring>

namespace tokamak {
namespace {

// Elements [0, n) along the last dimension.
void CopyRow(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
             int64_t count, size_t width) {
  auto dense = static_cast<int64_t>(width);
  if (to_stride == dense && from_stride == dense) {
    std::memcpy(to, from, static_cast<size_t>(count) * width);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride, from + i * from_stride, width);
}

}  // namespace

void CopyStrided(StridedArray to, StridedArray from, std::span<const int64_t> dims, size_t width) {
  if (dims.empty()) {
    std::memcpy(to.data, from.data, width);
    return;
  }
  size_t last = dims.size() - 1;
  if (last == 0) {
    CopyRow(to.data, to.strides[0], from.data, from.strides[0], dims[0], width);
    return;
  }
  for (int64_t i = 0; i < dims[0]; ++i) {
    CopyStrided({to.data + i * to.strides[0], to.strides.subspan(1)},
                {from.data + i * from.strides[0], from.strides.subspan(1)}, dims.subspan(1), width);
  }
}

void DenseStrides(std::span<const int64_t> dims, std::span<const int64_t> minor_to_major,
                  size_t width, std::span<int64_t> strides) {
  auto stride = static_cast<int64_t>(width);
  for (int64_t d : minor_to_major) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= dims[static_cast<size_t>(d)];
  }
}

void DenseStrides(std::span<const int64_t> dims, size_t width, std::span<int64_t> strides) {
  auto stride = static_cast<int64_t>(width);
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d];
  }
}

}  // namespace tokamak
