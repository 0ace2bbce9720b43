#pragma once

#include <cstdint>

namespace tokamak {

enum class MachineKind : uint8_t { kCpu, kGpu };

struct Rates;

// What generators need to know of the machine that a kernel is for, and where its measured rates
// are.
struct Machine {
  MachineKind kind = MachineKind::kCpu;
  int64_t vector_bits = 128;    // of a vector register; of a GPU: of one access of a thread
  int64_t cores = 1;            // of a GPU: multiprocessors
  bool matrix_library = false;  // OpenBLAS is there
  bool dots_bf16 = false;       // multiplies pairs of bf16 and adds to f32
  bool matrix_tiles = false;    // multiplies tiles of bf16 (AMX)
  bool has_extremes = false;    // the lesser of two reals is one instruction
  bool tf32 = false;            // f32 at its default precision is multiplied as tf32
  const Rates* rates =
      nullptr;  // of this machine, alive as long as the process; null: the default's

  bool is_gpu() const { return kind == MachineKind::kGpu; }
  // Lanes of a vector whose elements take `bits`.
  int64_t Lanes(int64_t bits) const { return vector_bits / (bits < 8 ? 8 : bits); }
  // Vectors as short as NEON's, for which a processor has more units than for long ones: more of
  // them have to be under way.
  bool HasShortVectors() const { return !is_gpu() && vector_bits <= 128; }
};

// The GPU that kernels are made for when none is there: an H200.
constexpr Machine GpuMachine() {
  return {.kind = MachineKind::kGpu, .vector_bits = 128, .cores = 132, .tf32 = true};
}

}  // namespace tokamak
