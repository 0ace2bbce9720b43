#pragma once

#include <string>
#include <vector>

#include "gen/element.h"
#include "gen/generator.h"

namespace tokamak {

// Why a region is no scatter alone, in words; "" when it is one.
std::string WhyNoScatterRegion(const Region& region);

// What scatters of every machine share: windows, where they lie, and how one element is combined.
class ScatterElements {
 public:
  ScatterElements(KernelBuilder& b, ElementEmitter& emitter, const Instr& scatter);

  int64_t windows() const { return ProductOf(batch_, 0, batch_.size()); }
  int64_t window() const { return ProductOf(window_, 0, window_.size()); }  // its elements
  const Dims& window_dims() const { return window_; }
  const Dims& extent() const { return extent_; }  // of a window, per dimension of the array
  // Whether an element of one window may meet another element of another window: windows of several
  // elements begin anywhere along their dimension.
  bool WindowsShift() const;

  Coordinates BatchAt(Scalar window) { return Delinearized(b_, window, batch_); }
  // Windows of different batches of the array never meet: how many batches there are, windows of
  // each, and where a window of a batch is.
  int64_t batches() const;
  Coordinates BatchAt(Scalar batch, Scalar window);
  // The run-time index of each dimension of the array that has one; others are not ok().
  std::vector<Scalar> Starts(const Coordinates& batch);
  // Whether the window lies inside of the array.
  Scalar Fits(const std::vector<Scalar>& starts);
  // Start indices between their bounds: those of a window that fits are as they were.
  std::vector<Scalar> Bounded(const std::vector<Scalar>& starts);
  // Where the window's first element lies in the array, row-major. Unless windows shift, two of
  // them meet where this is equal, and nowhere else.
  Scalar FirstPlace(const Coordinates& batch, const std::vector<Scalar>& starts);
  // The coordinates in a window of the array's element at coordinates; `inside` becomes false where
  // it is in another place.
  Coordinates WindowAt(const Coordinates& batch, const std::vector<Scalar>& starts,
                       const Coordinates& place, Scalar& inside);
  // Combines the element of the update into the array, whose window must fit.
  void Combine(const Coordinates& batch, const std::vector<Scalar>& starts,
               const Coordinates& window);
  // The same step by step: where an element of a window that fits lies, row-major, what is there,
  // the update of it, both in one, and its store.
  Scalar PlaceOf(const Coordinates& batch, const std::vector<Scalar>& starts,
                 const Coordinates& window);
  Element Old(Scalar place);
  Element UpdateAt(const Coordinates& batch, const Coordinates& window);
  Element Joined(const Element& old, const Element& update);
  void Store(Scalar place, const Element& value);
  // Whether two windows begin at the same index.
  Scalar AreEqual(const std::vector<Scalar>& x, const std::vector<Scalar>& y);

 private:
  bool IsOutsideOfWindow(size_t d) const;
  // By dimension of the windows: whether it walks through batches of the array.
  std::vector<bool> IsBatching() const;
  // The dimension of the windows of batching dimension i.
  size_t BatchingDim(size_t i) const;
  // Where a batching dimension of the array is, in the windows' coordinates.
  Scalar BatchingPlace(const Coordinates& batch, size_t i) const;

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Instr& scatter_;
  const ScatterAttrs& attrs_;
  Dims window_, batch_, extent_;
};

}  // namespace tokamak
