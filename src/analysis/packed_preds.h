#pragma once

#include <cstdint>
#include <optional>

#include "ir/ir.h"

namespace tokamak {

// Preds that are stored as bits (pack-preds): the bit i of word w is the pred at index
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

// Some words have no pred that counts, as those of dropout beside a causal mask. They are not
// computed:
//
//   preds = select(live, preds of the words, preds)
//   live  = line + last >= first index of the word and line + first <= last index of the word
//
// where `line` is the index along another dimension of the preds.
struct LiveWords {
  int64_t line = 0;  // that dimension
  std::optional<int64_t> first, last;
  // If not null, a scalar: all words are live unless it is -infinity (LiveColumns::masked).
  Instr* masked = nullptr;
};
// Whether words are live, in this form.
std::optional<LiveWords> LiveWordsOf(const Instr& pred);

// The words that preds of this form are computed from; null if they have another form.
struct PackedWords {
  const Instr* array = nullptr;
  // For each dimension of the words that of the preds, kNoDim if it has size 1. The preds are the
  // same along other dimensions.
  Dims dims = {};
  std::optional<LiveWords> live = {};  // nullopt: all of them
};
inline constexpr int64_t kNoDim = -1;
PackedWords PackedWordsOf(const Instr& preds);

}  // namespace tokamak
