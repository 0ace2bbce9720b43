#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/word_terms.h"

namespace tokamak {

// One term per leaf of an instruction's shape, depth first.
using TermList = std::vector<WordTerm>;

// Those of the operands of an instruction.
using TermOperands = std::span<const TermList* const>;

// Whether the elements are words that terms reckon with.
bool IsWord(const Shape& shape);
size_t LeafCountOf(const Shape& shape);

// What a computation and those that it calls do to words. Loops are looked into when they do all
// of it, calls when they do any.
enum WordWork : uint8_t { kShiftsWords = 1, kMixesWords = 2, kAllWordWork = 3 };
using WordWorks = std::unordered_map<const Computation*, uint8_t>;
// `known` holds the callees.
uint8_t WordWorkOf(const Computation& computation, const WordWorks& known);

// Finds the terms of instructions. Calls and fusions are looked into; so are loops that numbers
// alone end, round by round, while the budget of instructions lasts. Whatever is not understood is
// a leaf. Linear in the instructions and the budget.
class WordEval {
 public:
  WordEval(WordTerms& terms, int64_t budget, const WordWorks& works)
      : terms_(terms), budget_(budget), works_(works) {}

  // `operands` in the order of the instruction's own. `inside`: of a body, whose leaves stand for
  // other values each time.
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
