#pragma once

#include <cstdint>

namespace tokamak {

// Every limit that an input can exceed. Each has a test that exceeds it. Exceeding one is an error
// or a record, never a hang. All values are chosen so that time and memory stay bounded.

// Nesting depth of regions, attributes, types and tuples.
inline constexpr int kMaxNesting = 200;
// Size of one fully expanded bytecode attribute or type, in units of about 64 bytes. Entries
// reference others by number, so a few bytes could otherwise expand to 2^200 units.
inline constexpr uint32_t kMaxAttributeWeight = 1u << 20;
// Call-stack frames kept per location; the outermost ones are dropped.
inline constexpr int kMaxLocationFrames = 1000;
// Number of shapes in one fully expanded tuple. Elements are shared, so 60 lines of tuples, each
// built from the previous one, could otherwise expand to 2^60 shapes.
inline constexpr int64_t kMaxShapeParts = int64_t{1} << 22;
// Maximum rank of an array.
inline constexpr int kMaxRank = 64;
// Elements of one array. The product of the dimensions stays below this, so sizes in bytes never
// overflow int64.
inline constexpr int64_t kMaxElements = int64_t{1} << 58;
// Bytes of one elided constant of HLO text, constant({...}), whose values are generated.
inline constexpr int64_t kMaxElidedBytes = int64_t{1} << 30;
// Bytes of one value in the interpreter.
#ifdef TOK_FUZZ_LIMITS  // small, so that a fuzzer reaches them quickly
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 24;
#else
inline constexpr int64_t kMaxTensorBytes = int64_t{6} << 30;
#endif
// Depth of the interpreter's call stack.
inline constexpr int kMaxCallDepth = 500;
// Total bytes of all live values in the interpreter.
#ifdef TOK_FUZZ_LIMITS
inline constexpr int64_t kMaxLiveBytes = int64_t{1} << 28;
#else
inline constexpr int64_t kMaxLiveBytes = int64_t{12} << 30;
#endif
// Devices in one interpreter run. Each has a thread.
inline constexpr int64_t kMaxDevices = 256;

}  // namespace tokamak
