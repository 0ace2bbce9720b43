#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Copies between arrays of any strides.
namespace tokamak {

// An array in memory: the address of element 0 and the byte stride of each dimension (may be
// negative or 0).
struct StridedArray {
  std::byte* data = nullptr;
  std::span<const int64_t> strides;
};

// Copies every element of an array of shape `dims`, `width` bytes each.
void CopyStrided(StridedArray to, StridedArray from, std::span<const int64_t> dims, size_t width);

// The byte strides of a dense array whose dimensions are ordered `minor_to_major` (a permutation).
// `strides` has as many entries.
void DenseStrides(std::span<const int64_t> dims, std::span<const int64_t> minor_to_major,
                  size_t width, std::span<int64_t> strides);
// Row-major.
void DenseStrides(std::span<const int64_t> dims, size_t width, std::span<int64_t> strides);

}  // namespace tokamak
