#pragma once

// Symbolic terms for arrays of 32-bit words, elementwise: sums and xors of other arrays, rotations
// and shifts. Terms are hash-consed in a normal form modulo 2^32, by the associativity and
// commutativity of + and xor: however a program writes x + (y + 1), and however it orders and
// groups sums, the WordTerm is the same number. Equal WordTerms imply equal bits; different ones
// imply nothing.

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

using WordTerm = uint32_t;
inline constexpr WordTerm kNoTerm = ~WordTerm{0};  // too large, or not a word

enum class TermKind : uint8_t { kNumber, kLeaf, kSum, kXor, kRotate, kShiftLeft, kShiftRight };

struct TermNode {
  TermKind kind{};
  // kNumber: the bits. kSum, kXor: the constant summand. kRotate (left), shifts: the distance.
  // kLeaf: the index of the leaf.
  uint64_t number = 0;
  // kSum: terms with multiplicity. kXor: terms. Rotations and shifts: one term.
  std::vector<std::pair<WordTerm, uint32_t>> parts;
  uint32_t weight = 1;  // size of the term as a tree, saturated
};

// A broadcast: how the elements of an array map to those of a larger one.
struct BroadcastMap {
  Dims dims;                 // of the result
  std::vector<int> sources;  // per result dimension: the operand dimension, or -1
  bool operator==(const BroadcastMap&) const = default;
};

// An opaque array, broadcast to the shape of the term. Dimensions of size 1 have no source.
struct TermLeaf {
  const Instr* base = nullptr;  // null for a leaf without an instruction (NewLeaf)
  uint32_t part = 0;            // leaf of a tuple; a unique number if base is null
  BroadcastMap broadcast_map;
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

  // These return kNoTerm if an operand is kNoTerm or the result has too many parts.
  WordTerm Add(WordTerm a, WordTerm b) { return AddTimes(a, b, 1); }
  WordTerm Subtract(WordTerm a, WordTerm b) { return AddTimes(a, b, ~uint32_t{0}); }
  WordTerm Xor(WordTerm a, WordTerm b);
  // kNoTerm unless the operands are known to have no bit in common.
  WordTerm Or(WordTerm a, WordTerm b);
  WordTerm ShiftLeft(WordTerm a, uint64_t distance);
  WordTerm ShiftRight(WordTerm a, uint64_t distance);
  // The term of `a` after a broadcast. kNoTerm if the term is too large to rebuild.
  WordTerm Broadcast(WordTerm a, const BroadcastMap& broadcast_map);
  // An xor term without one of its parts.
  WordTerm Without(WordTerm xor_term, WordTerm part);

  // All xor terms, in order of creation.
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
