#pragma once

// Along which dimensions the rounds of a while go on by themselves: an element of what is carried
// is made, round after round, of elements at the same place alone.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/loops.h"

namespace tokamak {

// How a carried value is made.
enum class CarryKind : uint8_t {
  kStays,    // the same in every round
  kHeld,     // changes: whoever runs the rounds for a place holds the elements of that place
  kStacked,  // a chain of dynamic-update-slices of itself, which nothing else reads
};

struct CarryForm {
  CarryKind kind = CarryKind::kHeld;
  // Per dimension: the axis that it runs along; -1: one place holds all of it.
  std::vector<int> axes;

  // What every place computes for itself: keys, counters.
  bool IsShared() const {
    for (int axis : axes)
      if (axis >= 0) return false;
    return true;
  }
};

// The places of a loop are the points of a space with these axes.
struct IndependentLoop {
  std::vector<int64_t> sizes;  // of the axes; none: there is one place
  std::vector<CarryForm> carries;
  // The same of the loops within it, by their instructions.
  std::unordered_map<const Instr*, std::vector<CarryForm>> inner;
  // Of the dots in it that are made of what is carried: the axis of each dimension of the result.
  std::unordered_map<const Instr*, std::vector<int>> dots;
  std::string why_not;  // the loop has no such space, in words

  int64_t Places() const {
    int64_t places = 1;
    for (int64_t size : sizes) places *= size;
    return places;
  }
};

// What index maps alone can tell: a generator may still find an op that it has no code for, or an
// element that is needed at another place.
IndependentLoop FindIndependence(const WhileLoop& loop);

// The updates that make the next value of a stacked carry, first to last.
std::vector<const Instr*> UpdatesOf(const WhileLoop& loop, size_t carry);

}  // namespace tokamak
