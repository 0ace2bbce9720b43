#pragma once

#include <cstdint>

namespace tokamak {

// Every limit that input can meet, in one place; each has a test that meets it.
// Exceeding one is an error or a record, never a hang.

// Nested regions, attributes, types and tuples.
inline constexpr int kMaxNesting = 200;
// Memory that one attribute or type of bytecode unfolds to, in units of about
// 64 bytes: entries hold others by number, so that a few bytes could stand for
// 2^200 of them.
inline constexpr uint32_t kMaxAttributeWeight = 1u << 20;
// Frames of the call stack that one location holds; the outermost are dropped.
inline constexpr int kMaxLocationFrames = 1000;
// Shapes that one tuple unfolds to: elements are shared, so that 60 lines of
// tuples of the line before could stand for 2^60 of them.
inline constexpr int64_t kMaxShapeParts = int64_t{1} << 22;
// Dimensions of one array.
inline constexpr int kMaxRank = 64;
// Elements of one array: the product of its dimensions stays below this, so
// that sizes in bytes never overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 58;
// Bytes that one literal may take when it is expanded.
inline constexpr int64_t kMaxLiteralBytes = int64_t{1} << 33;
// Bytes of one elided constant of HLO text, constant({...}), which is made up.
inline constexpr int64_t kMaxElidedBytes = int64_t{1} << 30;
// Bytes that the interpreter may hold for one value.
#ifdef TOK_FUZZ_LIMITS  // small, so that a fuzzer meets them in no time
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 24;
#else
inline constexpr int64_t kMaxTensorBytes = int64_t{6} << 30;
#endif
// Calls on the interpreter's stack.
inline constexpr int kMaxCallDepth = 500;
// Bytes that all live values of the interpreter may take together.
#ifdef TOK_FUZZ_LIMITS
inline constexpr int64_t kMaxLiveBytes = int64_t{1} << 28;
#else
inline constexpr int64_t kMaxLiveBytes = int64_t{12} << 30;
#endif
// Devices of one run of the interpreter: a thread each.
inline constexpr int64_t kMaxDevices = 256;

}  // namespace tokamak
