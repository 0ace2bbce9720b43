#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/result.h"

namespace tokamak::cpu {

// The processor that code is made for.
struct Target {
  std::string triple, cpu;
  std::vector<std::string> features;  // "+avx2", "-sse4a", sorted
  int vector_bytes = 16;              // of the widest registers
  int vector_registers = 16;
  bool has_f16 = false;       // converts f16 to f32 and back
  bool dots_bf16 = false;     // adds the products of pairs of bf16 to f32, in full vectors
  bool dots_s16 = false;      // the same of pairs of s16, to s32
  bool has_extremes = false;  // one instruction for the lesser of two, NaN and -0 as we want them
  bool has_tiles = false;     // AMX, of bf16, and the process may use it

  // An array that a kernel only writes goes past the caches from this size on; 0: never.
  int64_t stream_bytes = 0;

  bool IsX86() const { return triple.starts_with("x86_64"); }
  bool IsNeon() const { return vector_bytes == 16 && vector_registers == 32; }

  // All of it, for keys of caches.
  std::string Text() const;
};

// A processor by LLVM's names; what else a target says follows from its features.
Target DescribeTarget(std::string triple, std::string cpu, std::vector<std::string> features);

// This machine. TK4003 when it lacks what generated code needs.
Result<Target> HostTarget();

// What TK4003 is about: the first missing instruction set, or "".
std::string LackOf(const Target& target);

}  // namespace tokamak::cpu
