#pragma once

#include <array>
#include <string>
#include <vector>

#include "gen/element.h"
#include "gen/scan.h"

// The code for one step of a scan, shared by the scan kernels of CPUs and GPUs.

namespace tokamak {

// Finds the single scan of a region. Returns why no kernel can be built around it, an empty string
// if one can.
std::string AnalyzeScan(const FusedRegion& region, Scan& scan);

// The carries in registers, for the `width` sequences that a thread scans together. `sequence`:
// index of one of these sequences.
class ScanCarryRegisters {
 public:
  ScanCarryRegisters(KernelBuilder& b, const Scan& scan, int64_t width);
  std::vector<Element> Read(Scalar sequence);
  void Write(Scalar sequence, const std::vector<Element>& values);

 private:
  KernelBuilder& b_;
  std::vector<ElementType> types_;
  std::vector<ElementArrays> arrays_;
};

// One step of a scan and the elementwise code that uses its results. Indices are [outer, along,
// inner]: a parameter `along` is a position in 0 .. length - 1, while Scan::along is the number of
// the dimension. The elements at one (outer, inner) are a sequence.
class ScanElements {
 public:
  ScanElements(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
               const Scan& scan)
      : b_(b), emitter_(emitter), region_(region), scan_(scan) {}

  // Coordinates in the carries, and in the inputs and outputs.
  Coordinates CarryAt(Scalar outer, Scalar inner);
  Coordinates At(Scalar outer, Scalar along, Scalar inner);

  // The initial carries of a sequence.
  std::vector<Element> InitialCarries(Scalar outer, Scalar inner);
  std::vector<Element> Inputs(const Coordinates& at);
  // Applies the scan's computation: outputs, then the next carries; empty after a failure. `wide`:
  // as in ApplyBody.
  std::vector<Element> Apply(const std::vector<Element>& inputs,
                             const std::vector<Element>& carries, bool wide);
  // One step of a sequence, in narrow types.
  void Step(ScanCarryRegisters& carries, Scalar sequence, const Coordinates& at);
  // Stores the outputs at an index, and everything computed from them.
  void Store(const Coordinates& at, const std::vector<Element>& outputs);
  // Stores the final carries if they are used.
  void StoreFinalCarries(Scalar outer, Scalar inner, const std::vector<Element>& carries);
  bool HasFinalCarryOutput() const;

 private:
  void StoreRoot(const Instr& root, size_t result_index, const Coordinates& at, Scalar linear);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const FusedRegion& region_;
  const Scan& scan_;
};

}  // namespace tokamak
