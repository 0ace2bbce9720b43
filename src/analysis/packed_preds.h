#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace tokamak {

// Preds that are stored as bits (pack-masks): the bit i of word w is the pred at index
// w * kPredsPerWord + i of the last dimension.
//
//   bits  = and(shift-right-logical(broadcast(words), iota), 1)      u32[..., words, 32]
//   preds = reshape(compare(bits, 1), direction=EQ)                  pred[..., words * 32]
//
// Words have more bits than the last dimension has indices if the preds are a slice of those.
inline constexpr int64_t kPredsPerWord = 32;  // bits of a u32 (definition)
// Words of the shortest box of a bulk copy, 16 bytes (CUDA driver API): rows of words that are
// multiples of it can be copied.
inline constexpr int64_t kLineWords = 4;

// The words that preds of this form are computed from; null if they have another form.
struct PackedWords {
  const Instr* array = nullptr;
  // For each dimension of the words that of the preds, kNoDim if it has size 1. The preds are the
  // same along other dimensions.
  Dims dims = {};
};
inline constexpr int64_t kNoDim = -1;
PackedWords PackedWordsOf(const Instr& preds);

}  // namespace tokamak
