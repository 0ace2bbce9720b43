#pragma once

#include <cstdint>

namespace tokamak {

enum class MachineKind : uint8_t { kCpu, kGpu };

struct Rates;

// The target machine, as generators see it, with a pointer to its measured rates (rates.h).
struct Machine {
  MachineKind kind = MachineKind::kCpu;
  int64_t vector_bits = 128;  // of a vector register; GPU: of the widest access of a thread
  int64_t cores = 1;          // GPU: SMs
  // Whether libraries (BLAS, cuDNN) may compute dots or convolutions of the program. If not,
  // kernels compute all of them. UsesLibrary (gen/library/dot.h) says which ones a library
  // computes.
  bool uses_library = false;
  bool dots_bf16 = false;        // multiply-adds pairs of bf16 into f32 (AVX512_BF16, BFDOT)
  bool matrix_tiles = false;     // multiplies tiles of bf16 (AMX)
  bool has_extremes = false;     // IEEE minimum and maximum are one instruction
  bool tf32 = false;             // f32 at default precision is multiplied as tf32
  bool async_multiply = false;   // GPU: bulk copies and wgmma (compute capability 9.0)
  const Rates* rates = nullptr;  // of this machine, with static lifetime; null: the default

  bool is_gpu() const { return kind == MachineKind::kGpu; }
  // Lanes of a vector of `bits`-wide elements.
  int64_t Lanes(int64_t bits) const { return vector_bits / (bits < 8 ? 8 : bits); }
  // 128-bit vectors (NEON, SSE). Such processors have more vector units than those with wider
  // vectors, so more independent vectors must be in flight.
  bool HasShortVectors() const { return !is_gpu() && vector_bits <= 128; }
};

// The GPU to compile for if none is present: an H200 (132 SMs, NVIDIA data sheet).
constexpr Machine GpuMachine() {
  return {.kind = MachineKind::kGpu,
          .vector_bits = 128,
          .cores = 132,
          .tf32 = true,
          .async_multiply = true};
}

}  // namespace tokamak
