#pragma once

#include <cstdint>
#include <vector>

#include "runtime/library_call.h"

// Sorts of arrays along a dimension, by keys that have an order of their own.

namespace tokamak {

enum class SortOrder : uint8_t {
  kUnsigned,
  kSigned,
  kTotal,    // reals by IEEE's total order: -NaN ... -0, 0 ... NaN
  kNumbers,  // reals; zeros are equal, and NaNs: those are greater than all others
  kPlain,    // reals; zeros are equal, and NaNs are neither before nor after anything
};

struct SortKey {
  size_t operand = 0;
  SortOrder order{};
  bool is_descending = false;
  uint64_t infinity = 0;  // of reals: its bits
};

// Operands are [outer, length, inner] and are sorted, all alike, along the length: by the first
// key, where that is equal by the next. Equal elements keep their order. Operands with keys have
// elements of 1, 2, 4 or 8 bytes, others also of 16. A key of kPlain is the only one.
struct SortForm {
  std::vector<int64_t> bytes;  // of an element, by operand
  std::vector<bool> counted;   // operands that are integers 0, 1, 2 ... along the length
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
  int64_t lines_ = 1, blocks_ = 1;  // lines are shared out in so many blocks
  int64_t block_bytes_ = 0;         // that a block works in
  int64_t item_bytes_ = 0, line_bytes_ = 0;
  bool keys_alone_ = false;
};

// The k greatest or least elements of each line, in order, and where they were; of equal ones the
// first. Reals are in their total order.
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
  // `Raw`: the unsigned integer of an element's bytes.
  template <typename Raw>
  void RunLine(std::span<void* const> arguments, int64_t line, int64_t block) const;
  template <typename Raw>
  void JoinParts(std::span<void* const> arguments, int64_t line) const;
  template <typename Raw>
  void Store(std::span<void* const> arguments, int64_t line, const void* chosen) const;

  TopKForm form_;
  int64_t parts_ = 1;  // of each line
  int64_t room_ = 0;   // for candidates of a line, where they are not kept in order
  int64_t blocks_ = 1, block_bytes_ = 0, join_bytes_ = 0;
};

}  // namespace tokamak
