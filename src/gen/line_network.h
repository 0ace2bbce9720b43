#pragma once

#include <array>
#include <vector>

#include "gen/line_sort.h"
#include "gen/sort_keys.h"

// Sorting networks for short lines that one thread sorts in registers.

namespace tokamak {

// Whether the lines of a sort are short enough for one thread's registers, and its comparator is a
// total preorder, so that a network may compare any pair.
bool IsNetworkSort(const Instr& sort);

// Sorts a line in registers: load all elements, compare and exchange, store all. The default is
// odd-even transposition of neighbours, which is stable: equal elements are not exchanged. If the
// line consists of keys alone, equal elements are identical and Batcher's odd-even merge sort needs
// fewer exchanges.
class LineNetwork {
 public:
  // Vectorized access: `lines` consecutive lines along rows are loaded and stored as vectors of
  // `at_once` elements.
  struct Vectors {
    int64_t lines = 1, at_once = 1;
  };
  LineNetwork(KernelBuilder& b, ElementEmitter& emitter, const LineSort& sort,
              std::optional<Vectors> vectors = std::nullopt);

  // Sorts the line with this index; with Vectors, `lines` lines from it on.
  void Sort(Scalar line);
  // Registers that a line occupies.
  static int64_t RegistersFor(const LineSort& sort);

 private:
  struct Item {
    Scalar key;                   // an integer with the same order, if there is one
    std::vector<Element> values;  // one per operand; empty if the key suffices
  };

  void LoadVectors(Scalar line);
  void StoreVectors(Scalar line);
  void SortOne(Scalar line, int64_t number);
  void Load(Scalar line, int64_t number);
  void Store(Scalar line, int64_t number);
  void Neighbours();
  void Batcher();
  void Exchange(size_t i, size_t j);
  Scalar IsBefore(const Item& x, const Item& y);
  Scalar KeyOf(Scalar value);
  Element ValueOf(Scalar key);
  Scalar Ordered(Scalar bits);
  Scalar Flipped(Scalar key);
  template <typename Body>
  void ForVectors(Scalar line, Body&& body);
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
  std::vector<std::array<ArrayId, 2>> arrays_;  // staging arrays for vectors
};

}  // namespace tokamak
