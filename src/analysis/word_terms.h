#pragma once

// What an array of 32-bit words holds, element by element, as a term: sums and exclusive ors of
// other arrays, rotations and shifts. Terms that are equal modulo 2^32 by the laws of + and xor are
// one number: however a program writes x + (y + 1), however it orders and folds, the WordTerm is
// the same. Two equal Terms hold equal bits; nothing follows from two that differ.

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

using WordTerm = uint32_t;
inline constexpr WordTerm kNoTerm = ~WordTerm{0};  // what is too large, or no word

enum class TermKind : uint8_t { kNumber, kLeaf, kSum, kXor, kRotate, kShiftLeft, kShiftRight };

struct TermNode {
  TermKind kind{};
  // kNumber: its bits. kSum, kXor: the constant part. kRotate (to the left), shifts: the distance.
  // kLeaf: the number of the leaf.
  uint64_t number = 0;
  // kSum: terms and how often each is there; kXor: terms; rotations and shifts: one term.
  std::vector<std::pair<WordTerm, uint32_t>> parts;
  uint32_t weight = 1;  // of the term written out as a tree, saturated
};

// How the elements of one array are spread in another.
struct Spreading {
  Dims dims;                 // of the result
  std::vector<int> sources;  // per dimension of the result: the one of the operand, -1: none
  bool operator==(const Spreading&) const = default;
};

// An array that the terms do not look into, and where its elements stand. Dimensions of one element
// have no source.
struct TermLeaf {
  const Instr* base = nullptr;  // null: made anew each time
  uint32_t part = 0;            // which leaf of a tuple; a number of its own where base is null
  Spreading spreading;
};

class WordTerms {
 public:
  const TermNode& node(WordTerm term) const { return nodes_[term]; }
  const TermLeaf& leaf(WordTerm term) const { return leaves_[nodes_[term].number]; }
  bool IsNumber(WordTerm term) const {
    return term != kNoTerm && nodes_[term].kind == TermKind::kNumber;
  }

  WordTerm Number(uint64_t bits);
  WordTerm Leaf(const Instr* base, uint32_t part, const Dims& dims);
  WordTerm NewLeaf(const Dims& dims) { return Leaf(nullptr, next_leaf_++, dims); }

  // kNoTerm of kNoTerm, and when the result has too many parts.
  WordTerm Add(WordTerm a, WordTerm b) { return AddTimes(a, b, 1); }
  WordTerm Subtract(WordTerm a, WordTerm b) { return AddTimes(a, b, ~uint32_t{0}); }
  WordTerm Xor(WordTerm a, WordTerm b);
  // Of bits that are known not to meet, else kNoTerm.
  WordTerm Or(WordTerm a, WordTerm b);
  WordTerm ShiftLeft(WordTerm a, uint64_t distance);
  WordTerm ShiftRight(WordTerm a, uint64_t distance);
  // The term of the array that `a` becomes when its elements are spread. kNoTerm when that is more
  // than a few leaves.
  WordTerm Spread(WordTerm a, const Spreading& spreading);
  // An exclusive or without one of its parts.
  WordTerm Without(WordTerm xor_term, WordTerm part);

  // Exclusive ors in the order in which they came up first.
  const std::vector<WordTerm>& xors() const { return xors_; }

 private:
  WordTerm Intern(TermNode node);
  WordTerm InternLeaf(TermLeaf leaf);
  WordTerm AddTimes(WordTerm a, WordTerm b, uint32_t times);
  WordTerm Shift(TermKind kind, WordTerm a, uint64_t distance);
  WordTerm RotationOf(WordTerm a, WordTerm b) const;
  WordTerm MakeXor(std::vector<std::pair<WordTerm, uint32_t>> parts, uint64_t number);

  std::vector<TermNode> nodes_;
  std::vector<TermLeaf> leaves_;
  std::unordered_multimap<uint64_t, WordTerm> table_;
  std::vector<WordTerm> xors_;
  uint32_t next_leaf_ = 0;
};

}  // namespace tokamak
