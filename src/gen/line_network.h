#pragma once

#include <array>
#include <vector>

#include "gen/line_sort.h"
#include "gen/sort_keys.h"

namespace tokamak {

// Whether the lines of a sort are so short that one thread sorts them in registers, and its
// comparison is an order, for which it does not matter who is compared with whom.
bool IsNetworkSort(const Instr& sort);

// Sorts a line in registers: its elements are loaded, neighbours are exchanged where the second
// comes before the first, as often as there are elements, and all are stored. Who is equal is not
// exchanged and keeps its order. Of lines of numbers by their bits alone, equal ones are the same,
// and fewer exchanges suffice (Batcher's).
class LineNetwork {
 public:
  // How neighbouring lines along rows are loaded and stored: `lines` of them, one behind the other,
  // as vectors of `at_once` elements.
  struct Vectors {
    int64_t lines = 1, at_once = 1;
  };
  LineNetwork(KernelBuilder& b, ElementEmitter& emitter, const LineSort& sort,
              std::optional<Vectors> vectors = std::nullopt);

  // The line of this number; of vectors, the lines from it on.
  void Sort(Scalar line);
  // Values that a line holds.
  static int64_t WordsOf(const LineSort& sort);

 private:
  struct Item {
    Scalar key;                   // an integer, if there is one for the whole order
    std::vector<Element> values;  // of each operand; none where the key is all
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
  Scalar Turned(Scalar key);
  template <typename Body>
  void ForVectors(Scalar line, Body&& body);
  Coordinates At(Scalar line, Scalar place) { return PlaceInLine(b_, sort_, line, place); }

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const LineSort& sort_;
  std::optional<Vectors> vectors_;
  bool has_key_ = false, only_keys_ = false;
  size_t key_operand_ = 0;
  ComparedKey key_;
  std::vector<Item> items_;
  std::vector<std::array<ArrayId, 2>> arrays_;  // through which vectors pass
};

}  // namespace tokamak
