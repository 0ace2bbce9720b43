#pragma once

#include <array>
#include <vector>

#include "gen/line_sort.h"
#include "gen/sort_keys.h"

// Sorting networks for short lines (line_sort.h) that one thread sorts in registers.

namespace tokamak {

// Maximum elements of a line. Chosen: keys and one operand stay in registers without spills.
inline constexpr int64_t kMaxNetworkLength = 16;

// Whether the lines of a sort are short enough for one thread's registers, and its comparator is a
// total preorder, so that a network may compare any pair.
bool IsNetworkSort(const Instr& sort);

// Sorts a line in registers: load all elements, compare and exchange, store all. The default is
// odd-even transposition of neighbours, which is stable: equal elements are not exchanged. If the
// only operand is the key (no payload), equal elements are identical and Batcher's
// odd-even merge sort, which is not stable, needs fewer exchanges.
class SortingNetwork {
 public:
  // Vectorized access, for sorts along the minor dimension: `lines` consecutive lines are
  // contiguous in memory. They are loaded and stored as vectors of `vector_width` elements, and
  // sorted one after another. For sorts along another dimension the caller makes adjacent lines
  // vector lanes instead.
  struct Vectors {
    int64_t lines = 1, vector_width = 1;
  };
  SortingNetwork(KernelBuilder& b, ElementEmitter& emitter, const LineSort& sort,
                 std::optional<Vectors> vectors = std::nullopt);

  // Sorts the line with this index; with Vectors, `lines` lines from it on.
  void Sort(Scalar line);
  // 32-bit registers that the elements of a line occupy.
  static int64_t RegistersFor(const LineSort& sort);

 private:
  struct Item {
    Scalar key;  // an integer that is ordered like the sort's key, if it can be represented so
    std::vector<Element> values;  // one per operand; empty if the key suffices
  };

  void LoadVectors(Scalar line);
  void StoreVectors(Scalar line);
  // `line_in_group`: index of the line among the Vectors::lines lines that start at `line`.
  void SortOne(Scalar line, int64_t line_in_group);
  void Load(Scalar line, int64_t line_in_group);
  void Store(Scalar line, int64_t line_in_group);
  // The two networks.
  void EmitOddEvenTransposition();
  void EmitBatcherMergeSort();
  void Exchange(size_t i, size_t j);
  Scalar IsBefore(const Item& x, const Item& y);
  // An element as Item::key, and back.
  Scalar KeyOf(Scalar value);
  Element ValueOf(Scalar key);
  // A key for the descending order.
  Scalar ReverseOrder(Scalar key);
  template <typename Body>
  void ForLineVectors(Scalar line, Body&& body);
  Coordinates At(Scalar line, Scalar position) {
    return CoordinatesInLine(b_, sort_, line, position);
  }

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const LineSort& sort_;
  std::optional<Vectors> vectors_;
  bool has_key_ = false, only_keys_ = false;
  size_t key_operand_ = 0;
  ComparedKey key_;
  std::vector<Item> items_;
  std::vector<ElementArrays> arrays_;  // staging arrays for vectors
};

}  // namespace tokamak
