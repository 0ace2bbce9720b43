#pragma once

#include <vector>

#include "gen/dot_operand.h"
#include "gen/gpu/operand_view.h"
#include "kernel/kernel.h"

// Operands of dots as tensors of the bulk copy engine.

namespace tokamak::gpu {

// Who stores the panels of an operand.
enum class PanelSource : uint8_t {
  kCopied,     // the bulk copy engine
  kConverted,  // the producer's threads, from raw panels that the bulk copy engine stores
  kComputed,   // the producer's threads, from elements that they compute or load
};

// An operand as the bulk copy engine sees it. Dimension 0 is contiguous. Without dimensions, the
// producer's threads compute or load the elements.
struct TensorOperand {
  struct Dimension {
    enum class Along : uint8_t { kDepth, kFree, kBatch } along{};
    size_t batch = 0;  // kBatch: number of the batch dimension; all of them if `is_all`
    bool is_all = false;
    int64_t size = 0, stride = 0;
    int64_t start = 0;  // added to coordinates
  };
  std::vector<Dimension> dimensions;
  bool is_k_major = false;       // in memory
  const Instr* array = nullptr;  // in which the elements are, if there are dimensions
  ScalarType stored{};           // type of the array
  PanelSource source{};
  bool panels_are_k_major = false;

  bool IsBulk() const { return !dimensions.empty(); }
  bool IsTransposed() const { return panels_are_k_major != is_k_major; }
  // Elements of 128 bytes of the array.
  int64_t RawLine() const { return MatrixMultiply::kPanelBytes / BytesOf(stored); }
};

// An operand whose elements are stored in this type, as a tensor of the bulk copy engine, with its
// contracted dimensions in this order. Without dimensions if it is not in memory, has no contiguous
// dimension, or rows that are not multiples of 16 bytes.
TensorOperand TensorOperandOf(const DotOperand& side, const Dims& contracting, bool is_input,
                              ScalarType type);
TensorOperand TensorOperandOf(const DotOperand& side, const Dims& contracting,
                              const OperandView& view, ScalarType type);

}  // namespace tokamak::gpu
