#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gen/element.h"
#include "gen/generator.h"

// Shared by the scatter kernels of CPUs and GPUs. A scatter applies `window_count()` updates; each
// is a window of `window_size()` elements at a start index read at run time. Three index spaces:
//   the array              dimensions of the scatter's result
//   the window             dimensions of the update that are in update_window_dims
//   the windows            the other dimensions of the update: one index tuple per window. Some of
//                          them may be batching dimensions: windows of different batches write
//                          disjoint parts of the array.
// Parameters of these names:
//   `window_at`            which window: its coordinates in the windows' index space, over batching
//                          and other dimensions alike
//   `starts`               the start indices of a window in the array
//   `in_window`            coordinates of an element within a window
//   `at`                   coordinates of an element of the array; `index`: its row-major index

namespace tokamak {

// Returns why a region is not a single scatter, empty if it is.
std::string WhyNotScatterRegion(const FusedRegion& region);

// The windows of a scatter, their indices, and the code that combines one element.
class ScatterElements {
 public:
  ScatterElements(KernelBuilder& b, ElementEmitter& emitter, const Instr& scatter);

  int64_t window_count() const { return ProductOf(windows_, 0, windows_.size()); }
  int64_t window_size() const {
    return ProductOf(window_, 0, window_.size());
  }  // elements of a window
  const Dims& window_dims() const { return window_; }
  // Size of a window per dimension of the array; 1 for dimensions that the window lacks.
  const Dims& window_extents() const { return extent_; }
  // Whether elements at different positions of two windows may hit the same array element: windows
  // of several elements start at any index along their dimension, so they can overlap partially.
  bool WindowsMayPartlyOverlap() const;

  // The coordinates, in the windows' index space, of the window with this linear index.
  Coordinates WindowCoordinates(Scalar linear) { return Delinearized(b_, linear, windows_); }
  // The number of batches, i.e. of indices of the batching dimensions, and the coordinates of a
  // window of a batch. `batch`: the linear index over the batching dimensions; `linear_in_batch`:
  // that over the other dimensions of the windows' index space. Windows of different batches never
  // overlap.
  int64_t batch_count() const;
  Coordinates WindowCoordinates(Scalar batch, Scalar linear_in_batch);
  // The start index of each dimension of the array that has one; no value (Scalar{}) for others.
  std::vector<Scalar> Starts(const Coordinates& window_at);
  // Whether the window is in bounds.
  Scalar IsInBounds(const std::vector<Scalar>& starts);
  // The start indices clamped to their bounds. Those of a window in bounds do not change.
  std::vector<Scalar> ClampedStarts(const std::vector<Scalar>& starts);
  // The row-major array index of the window's first element. Unless WindowsMayPartlyOverlap(), two
  // windows overlap if and only if these are equal.
  Scalar FirstIndex(const Coordinates& window_at, const std::vector<Scalar>& starts);
  // The coordinates within the window of the array element at coordinates `at`. `inside`, a pred
  // that the caller initializes, is and-ed with whether the element is in the window.
  Coordinates CoordinatesInWindow(const Coordinates& window_at, const std::vector<Scalar>& starts,
                                  const Coordinates& at, Scalar& inside);
  // Combines an update element into the array. The window must be in bounds.
  void Combine(const Coordinates& window_at, const std::vector<Scalar>& starts,
               const Coordinates& in_window);
  // The steps of Combine: the row-major index of an element of a window in bounds, the old value,
  // the update, the combined value, the store.
  Scalar IndexOf(const Coordinates& window_at, const std::vector<Scalar>& starts,
                 const Coordinates& in_window);
  Element Old(Scalar index);
  Element UpdateAt(const Coordinates& window_at, const Coordinates& in_window);
  Element CombineElements(const Element& old, const Element& update);
  void Store(Scalar index, const Element& value);

 private:
  // How windows lie along a dimension of the array, from the index map of the updates.
  struct Axis {
    RunTimeStart start;               // kind kNone: 0
    std::optional<size_t> in_window;  // its dimension in `window_`; none: the window lacks it
    std::optional<size_t> batching;   // its dimension in `windows_` if it is a batching dimension
  };
  // Per dimension of the windows' index space: whether it is a batching dimension.
  std::vector<bool> IsBatching() const;

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& scatter_;
  IndexMap indices_, updates_;  // of these operands
  // `window_`: sizes of the window. `windows_`: sizes of the windows' index space, over batching
  // and other dimensions. `extent_`: see window_extents().
  Dims window_, windows_, extent_;
  std::vector<Axis> axes_;
};

}  // namespace tokamak
