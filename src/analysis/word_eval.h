#pragma once

// Symbolic evaluation of integer arithmetic into word terms (word_terms.h).

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/word_terms.h"

namespace tokamak {

// One term per leaf of an instruction's shape, depth first.
using TermList = std::vector<WordTerm>;

// The term lists of an instruction's operands.
using TermOperands = std::span<const TermList* const>;

// Whether the shape is an array of 32-bit integers.
bool IsWord(const Shape& shape);
size_t LeafCountOf(const Shape& shape);

// Which operations on words a computation and its callees contain. A loop is evaluated only if it
// has both kinds, a call if it has any.
enum WordWork : uint8_t { kShiftsWords = 1, kMixesWords = 2, kAllWordWork = 3 };
using WordWorks = std::unordered_map<const Computation*, uint8_t>;
// Requires the results of its callees in `known`.
uint8_t WordWorkOf(const Computation& computation, const WordWorks& known);

// Computes the terms of instructions. Evaluates calls and fusions, and loops with a trip count that
// follows from constants, iteration by iteration, within a budget of instructions. Any other value
// becomes a leaf. Linear in the instructions and the budget.
class WordEval {
 public:
  WordEval(WordTerms& terms, int64_t budget, const WordWorks& works)
      : terms_(terms), budget_(budget), works_(works) {}

  // `operands`: the terms of the instruction's operands. `inside`: the instruction is in a called
  // computation, where its leaves stand for other values in each evaluation.
  TermList Of(const Instr& instr, TermOperands operands, bool inside = false, int depth = 0);

 private:
  bool IsWorthLookingInto(const Instr& instr) const;
  TermList Opaque(const Instr& instr, bool inside);
  WordTerm OfArray(const Instr& instr, TermOperands operands);
  WordTerm OfWords(const Instr& instr, WordTerm x, WordTerm y);
  WordTerm OfMovement(const Instr& instr, WordTerm x, TermOperands operands);
  std::optional<TermList> Run(const Computation& computation, const TermList& arguments, int depth);
  std::optional<TermList> RunLoop(const Instr& loop, TermList state, int depth);

  WordTerms& terms_;
  int64_t budget_;
  const WordWorks& works_;
};

}  // namespace tokamak
