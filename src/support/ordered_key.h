#pragma once

#include <cstdint>
#include <type_traits>

// Keys of sorts as integers of the same order. The mappings are templates over `Code`, which says
// how a word is computed: at once (the runtime), as instructions of a program (passes), or as
// values of a kernel (generators). A Code has these members, for words of type Word and conditions
// of its own type:
//
//   Word Constant(uint64_t)       Word Xor(Word, Word)     Word And(Word, Word)
//   Equal(Word, Word)             Less(Word, Word)         IsNegative(Word, KeyWord)
//   Word Select(condition, Word, Word)

namespace tokamak {

enum class SortOrder : uint8_t {
  kUnsigned,
  kSigned,
  kFloatTotal,    // floats by IEEE total order: -NaN ... -0, 0 ... NaN
  kFloatNanLast,  // floats; zeros are equal; NaNs are equal and greater than all others
  kFloatIeee,     // floats with IEEE comparisons: zeros are equal, NaNs unordered
};

inline bool IsFloatOrder(SortOrder order) {
  return order != SortOrder::kUnsigned && order != SortOrder::kSigned;
}

// The words that keys are mapped to: `bits` wide, compared as unsigned or signed integers.
struct KeyWord {
  int bits = 32;
  bool is_signed = false;

  constexpr uint64_t sign() const { return uint64_t{1} << (bits - 1); }
  constexpr uint64_t magnitude() const { return sign() - 1; }
  constexpr uint64_t ones() const { return sign() | magnitude(); }
};

// The bits of a key as a word of the same order. Bijective: floats are in total order.
template <typename Code, typename Word>
Word ToOrderedKey(Code&& code, Word bits, const KeyWord& word, SortOrder order) {
  if (order == SortOrder::kUnsigned || (order == SortOrder::kSigned && word.is_signed)) return bits;
  if (!IsFloatOrder(order)) return code.Xor(bits, code.Constant(word.sign()));
  Word negative = code.Constant(word.is_signed ? word.magnitude() : word.ones());
  Word other = code.Constant(word.is_signed ? 0 : word.sign());
  return code.Xor(bits, code.Select(code.IsNegative(bits, word), negative, other));
}

// The inverse. Unsigned words of negative floats have a top bit of 0.
template <typename Code, typename Word>
Word FromOrderedKey(Code&& code, Word key, const KeyWord& word, SortOrder order) {
  if (!IsFloatOrder(order) || word.is_signed) return ToOrderedKey(code, key, word, order);
  Word other = code.Constant(word.sign()), negative = code.Constant(word.ones());
  return code.Xor(key, code.Select(code.IsNegative(key, word), other, negative));
}

// The bits of a float with all NaNs as one, the greatest in total order. `infinity`: the bits of
// infinity; the bits of NaNs are greater.
template <typename Code, typename Word>
Word WithEqualNans(Code&& code, Word bits, const KeyWord& word, uint64_t infinity) {
  Word magnitude = code.And(bits, code.Constant(word.magnitude()));
  return code.Select(code.Less(code.Constant(infinity), magnitude), code.Constant(word.magnitude()),
                     bits);
}

// The bits of a float with -0 as 0.
template <typename Code, typename Word>
Word WithEqualZeros(Code&& code, Word bits, const KeyWord& word) {
  return code.Select(code.Equal(bits, code.Constant(word.sign())), code.Constant(0), bits);
}

// Words of memory, computed at once, of all bits of Raw.
template <typename Raw>
struct RawCode {
  Raw Constant(uint64_t value) const { return static_cast<Raw>(value); }
  Raw Xor(Raw x, Raw y) const { return static_cast<Raw>(x ^ y); }
  Raw And(Raw x, Raw y) const { return static_cast<Raw>(x & y); }
  bool Equal(Raw x, Raw y) const { return x == y; }
  bool Less(Raw x, Raw y) const { return x < y; }
  bool IsNegative(Raw x, const KeyWord&) const {
    return static_cast<std::make_signed_t<Raw>>(x) < 0;
  }
  Raw Select(bool condition, Raw x, Raw y) const { return condition ? x : y; }
};

}  // namespace tokamak
