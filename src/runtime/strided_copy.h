#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tokamak {

// An array in memory: where element 0 is, and how many bytes lie between neighbours along each
// dimension (any number, also negative or 0).
struct StridedArray {
  std::byte* data = nullptr;
  std::span<const int64_t> strides;
};

// Copies every element of an array of `dims`, `width` bytes each.
void CopyStrided(StridedArray to, StridedArray from, std::span<const int64_t> dims, size_t width);

// The byte strides of a dense array whose dimensions are ordered `minor_to_major` (a permutation).
// `strides` has as many entries.
void DenseStrides(std::span<const int64_t> dims, std::span<const int64_t> minor_to_major,
                  size_t width, std::span<int64_t> strides);
// Row-major.
void DenseStrides(std::span<const int64_t> dims, size_t width, std::span<int64_t> strides);

}  // namespace tokamak
