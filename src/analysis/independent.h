#pragma once

// Independence analysis of while loops: along which dimensions of the carried arrays each element
// is computed from elements at the same index only. The iterations depend on each other; the
// points, i.e. the indices of these dimensions, do not. Such a loop runs as one kernel in which
// each thread (or vector lane) executes all iterations of its own points, without barriers
// (gen/whole_loop.h).
//
//     while: x [B, D] -> tanh(x * 2)        axes B and D: B*D independent points
//     while: h [B, D] -> tanh(dot(h, w))    axis B only: a point is a row of D elements

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/loops.h"

namespace tokamak {

// How a carried value changes from one iteration to the next.
enum class CarryKind : uint8_t {
  kInvariant,  // loop-invariant
  kHeld,       // changes: each point keeps its own elements
  kStacked,    // stacked output (scan ys): only updated by dynamic-update-slices
};

struct CarryForm {
  CarryKind kind = CarryKind::kHeld;
  // Per dimension: the axis that it lies along; -1 if every point has the whole dimension.
  std::vector<int> axes;
  // An array of a loop with one point (FindOnePoint): it has no axes, but belongs to the point.
  bool is_of_point = false;

  // No dimension lies along an axis: every point recomputes the value (PRNG keys, counters).
  bool IsUniform() const {
    for (int axis : axes)
      if (axis >= 0) return false;
    return !is_of_point;
  }
};

// The parallel iteration space of a loop. Its points are the index tuples of these axes.
struct LoopIndependence {
  std::vector<int64_t> sizes;  // of the axes; empty if there is a single point
  std::vector<CarryForm> carries;
  // Carried values of nested loops, by instruction.
  std::unordered_map<const Instr*, std::vector<CarryForm>> inner;
  // Dots that depend on carried values: the axis of each dimension of the result, or -1.
  std::unordered_map<const Instr*, std::vector<int>> dots;
  std::string why_not;  // why the analysis failed; empty on success

  int64_t Points() const {
    int64_t points = 1;
    for (int64_t size : sizes) points *= size;
    return points;
  }
};

// Based on index maps only: a generator may still reject the loop because of an op that it does not
// support or an element that another point owns.
LoopIndependence FindIndependence(const WhileLoop& loop);
// The loop with a single point, which has all elements of its arrays: a recurrent network without a
// batch. Its elements depend on each other through dots; a loop without dots, or with nested loops,
// is rejected.
LoopIndependence FindOnePoint(const WhileLoop& loop);

// The updates that compute the next value of a stacked carry, first to last; empty if it is not
// one.
std::vector<const Instr*> UpdatesOf(const WhileLoop& loop, size_t carry);

}  // namespace tokamak
