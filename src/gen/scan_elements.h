#pragma once

#include <array>
#include <string>
#include <vector>

#include "gen/element.h"
#include "gen/scan.h"

namespace tokamak {

// The only scan of a region, and why it has none that a kernel can be made around, in words.
std::string FindScan(const Region& region, Scan& scan);

// One element of a scan and what a region makes of it, for the loops of any machine. Places are
// [outer, along, inner].
class ScanElements {
 public:
  ScanElements(KernelBuilder& b, ElementEmitter& emitter, const Region& region, const Scan& scan)
      : b_(b), emitter_(emitter), region_(region), scan_(scan) {}

  // Of what is carried, and of inputs and outputs.
  Coordinates PartAt(Scalar outer, Scalar inner);
  Coordinates At(Scalar outer, Scalar along, Scalar inner);

  // What a row begins with.
  std::vector<Element> First(Scalar outer, Scalar inner);
  std::vector<Element> Inputs(const Coordinates& at);
  // What the computation gives: outputs, then what is carried on; nothing after a fault. `wide`: as
  // in ApplyBody.
  std::vector<Element> Apply(const std::vector<Element>& inputs,
                             const std::vector<Element>& carries, bool wide);
  // The outputs at a place, and all that follows from them.
  void Store(const Coordinates& at, const std::vector<Element>& outputs);
  // What is carried after the last element, where that is asked for.
  void StoreLast(Scalar outer, Scalar inner, const std::vector<Element>& carries);
  bool StoresLast() const;

 private:
  void StoreRoot(const Instr& root, size_t part, const Coordinates& at, Scalar linear);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const Region& region_;
  const Scan& scan_;
};

// What is carried, in registers: `width` rows of a thread.
class Carries {
 public:
  Carries(KernelBuilder& b, const Scan& scan, int64_t width);
  std::vector<Element> Read(Scalar row);
  void Write(Scalar row, const std::vector<Element>& values);

 private:
  KernelBuilder& b_;
  std::vector<ElementType> types_;
  std::vector<std::array<ArrayId, 2>> arrays_;
};

}  // namespace tokamak
