#pragma once

#include "gen/dot_operand.h"
#include "gen/gpu/gpu.h"

// Elements of a dot's operands, for the panels that GPU contract kernels multiply from.

namespace tokamak::gpu {

// Adjacent elements of an operand: `lanes` along K if the operand is k_is_minor, else along its
// free dimension, from free index `along` and contracted index `depth` on.
struct PanelElements {
  Scalar along, depth;
  int64_t lanes = 1;
  // Whether indices may be beyond the operand. Elements beyond K are zero, those beyond the free
  // dimension duplicates of others.
  bool checks_along = false, checks_depth = false;
};

// Bytes of a chunk, the unit in which lines are swizzled (definition: SwizzledByte).
inline constexpr int64_t kSwizzledChunkBytes = 16;
// SwizzledByte, in elements: element `in_line` of this line of 128 bytes.
Scalar SwizzledIndex(KernelBuilder& b, Scalar line, Scalar in_line, ScalarType type);

// Rounds an f32 to the nearest TF32, ties away from zero. Finite values that would become infinite
// are truncated instead. NaN keeps a set mantissa bit.
Scalar RoundedToTf32(KernelBuilder& b, Scalar x);

class DotPanels {
 public:
  // Multiplies in `type`; with `tf32`, factors are rounded to TF32.
  DotPanels(KernelBuilder& b, ElementEmitter& emitter, const FusedRegion& region,
            const DotDimensions& dot_dims, ScalarType type, bool tf32)
      : b_(b), emitter_(emitter), region_(region), dot_dims_(dot_dims), type_(type), tf32_(tf32) {}

  // The coordinates of the matrix of the batch that the following elements are of.
  void SetBatch(Coordinates batch_at) { batch_at_ = std::move(batch_at); }
  // Calls body(lane, value) for the elements. `total`: size of the free dimension.
  template <typename Body>
  void ForElements(const DotOperand& side, int64_t total, PanelElements elements, Body&& body) {
    Scalar first = elements.depth;
    int64_t along_lanes = side.k_is_minor ? 1 : elements.lanes;
    int64_t depth_lanes = side.k_is_minor ? elements.lanes : 1;
    // Clamp the first element of a vector along the dimension of its lanes.
    if (elements.checks_along)
      elements.along = LesserOf(elements.along, b_.Index(total - along_lanes));
    if (elements.checks_depth)
      elements.depth = LesserOf(elements.depth, b_.Index(dot_dims_.k - depth_lanes));
    ForLanes(b_, elements.lanes, [&](Scalar lane) {
      Scalar along = side.k_is_minor ? elements.along : elements.along + lane;
      Scalar depth = side.k_is_minor ? elements.depth + lane : elements.depth;
      Scalar value = ElementOf(side, along, depth);
      if (elements.checks_depth)
        value = Choose(first < b_.Index(dot_dims_.k), value, b_.Constant(type_, 0));
      body(lane, value);
    });
  }

 private:
  Scalar ElementOf(const DotOperand& side, Scalar along, Scalar depth);

  KernelBuilder& b_;
  ElementEmitter& emitter_;
  const FusedRegion& region_;
  const DotDimensions& dot_dims_;
  ScalarType type_;
  bool tf32_;
  Coordinates batch_at_;
};

}  // namespace tokamak::gpu
