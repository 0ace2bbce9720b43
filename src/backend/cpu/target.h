#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/result.h"

// The CPU that code is generated for, and its features.
namespace tokamak::cpu {

// The target processor.
struct Target {
  std::string triple, cpu;
  std::vector<std::string> features;  // "+avx2", "-sse4a", sorted
  int vector_bytes = 16;              // of the widest registers
  int vector_registers = 16;
  bool has_f16 = false;       // converts f16 to f32 and back
  bool dots_bf16 = false;     // adds products of bf16 pairs to f32, in full vectors
  bool dots_s16 = false;      // adds products of s16 pairs to s32
  bool has_extremes = false;  // one min/max instruction with the required NaN and -0 semantics
  bool has_tiles = false;     // AMX for bf16, and the kernel has enabled it for the process

  // Write-only arrays of at least this many bytes use non-temporal stores; 0: never.
  int64_t stream_bytes = 0;

  bool IsX86() const { return triple.starts_with("x86_64"); }
  bool IsNeon() const { return vector_bytes == 16 && vector_registers == 32; }

  // All fields as text, for cache keys.
  std::string Text() const;
};

// A processor by LLVM's names; the other fields are derived from its features.
Target DescribeTarget(std::string triple, std::string cpu, std::vector<std::string> features);

// The host. Returns TK4003 if it lacks an instruction set that generated code needs.
Result<Target> HostTarget();

// The first missing instruction set, for TK4003; empty if none.
std::string LackOf(const Target& target);

}  // namespace tokamak::cpu
