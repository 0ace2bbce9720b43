#pragma once

#include <cstdint>
#include <vector>

#include "runtime/library_call.h"
#include "support/ordered_key.h"

// Sorts and top-k of arrays along a dimension, by keys with a built-in order.

namespace tokamak {

struct SortKey {
  size_t operand = 0;
  SortOrder order{};
  bool is_descending = false;
  uint64_t infinity = 0;  // floats only: the bits of infinity
};

// Operands are [outer, length, inner] and are permuted together along the length: by the first key,
// ties by the next. Stable. Key operands have elements of 1, 2, 4 or 8 bytes, others also of 16. A
// key of kFloatIeee must be the only one.
struct SortForm {
  std::vector<int64_t> bytes;  // of an element, per operand
  std::vector<bool> counted;   // operands that are an iota along the length
  std::vector<SortKey> keys;
  int64_t outer = 1, length = 1, inner = 1;
};

class SortCall final : public LibraryCall {
 public:
  explicit SortCall(SortForm form);
  void Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const override;
  int64_t ScratchBytes() const override { return blocks_ * block_bytes_; }
  std::string Text() const override;
  double Micros() const override;

 private:
  void RunLine(std::span<void* const> arguments, int64_t line, std::byte* scratch) const;

  SortForm form_;
  int64_t lines_ = 1, blocks_ = 1;  // lines are distributed over this many blocks
  int64_t block_bytes_ = 0;         // scratch of a block
  int64_t item_bytes_ = 0, line_bytes_ = 0;
  bool keys_alone_ = false;
};

// The k greatest or least elements of each line, in order, and their indices; the first of equal
// ones. Floats are in total order.
struct TopKForm {
  SortKey key;
  int64_t bytes = 4, index_bytes = 4;  // of an element, of an index
  int64_t lines = 1, length = 1, k = 1;
};

class TopKCall final : public LibraryCall {
 public:
  explicit TopKCall(TopKForm form);
  void Run(std::span<void* const> arguments, const std::atomic<bool>* stop) const override;
  int64_t ScratchBytes() const override { return blocks_ * block_bytes_ + join_bytes_; }
  std::string Text() const override;
  double Micros() const override;

 private:
  // `Raw`: the unsigned integer type of an element's size.
  template <typename Raw>
  void RunLine(std::span<void* const> arguments, int64_t line, int64_t block) const;
  template <typename Raw>
  void JoinChunks(std::span<void* const> arguments, int64_t line) const;
  template <typename Raw>
  void Store(std::span<void* const> arguments, int64_t line, const void* chosen) const;

  TopKForm form_;
  int64_t chunks_ = 1;  // per line
  int64_t room_ = 0;    // capacity for unsorted candidates of a line
  int64_t blocks_ = 1, block_bytes_ = 0, join_bytes_ = 0;
};

}  // namespace tokamak
