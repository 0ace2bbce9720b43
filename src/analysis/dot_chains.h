#pragma once

// Chains of dots: results of first dots are combined, reduced along rows, and become operands of
// second dots, as in attention. The analysis is algebraic: any elementwise ops and row reductions
// may be between the dots.
//
//     scores  = dot(q, k)             [batch, row, column]
//     weights = softmax(scores / 8)   elementwise, and reductions along the columns
//     product = dot(weights, v)       contracts the columns
//
// A kernel that computes some columns of a row at a time needs no array of the size of the scores.
// There may be several first dots, of the same rows and columns, and several second dots, as in the
// gradients of attention. Without a second dot the chain ends in reductions.

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// For values that are computed from one array: which of its dimensions each of their dimensions
// runs along. Dimensions of size 1 run along none.
class DimsAlong {
 public:
  // Of a dimension of a value: it has size 1; or the value is the same at all of its indices.
  static constexpr int64_t kUnit = -1, kSame = -2;

  explicit DimsAlong(const Instr& from);
  // Adds a value whose operands have been added, if they depend on the array. False if the op
  // combines elements at different indices, except for reductions of one array. An array with
  // padding at the end may only be sliced back.
  bool Add(const Instr& instr);
  // Whether the instruction is such a slice.
  bool IsUnpadded(const Instr& instr) const;
  // Null if the value does not depend on the array, or has not been added.
  const Dims* Of(const Instr& instr) const;
  // Adds a value that is computed from elsewhere, with these dimensions.
  void Seed(const Instr& instr, Dims along) { Put(instr, std::move(along)); }

 private:
  bool AddElementwise(const Instr& instr);
  bool AddReshape(const Instr& instr, const Dims& from);
  bool Put(const Instr& instr, Dims along);

  bool AddPadded(const Instr& instr, const Dims& from);

  std::unordered_map<const Instr*, Dims> along_;
  std::unordered_set<const Instr*> padded_;
};

struct DotChain {
  struct First {
    const Instr* dot = nullptr;
    Dims along;              // its dimensions along those of the scores
    size_t row_operand = 0;  // the one with the rows

    const Instr& rows() const { return *dot->operand(row_operand); }
    const Instr& columns() const { return *dot->operand(1 - row_operand); }
  };
  struct Second {
    const Instr* dot = nullptr;
    size_t weights_operand = 0;

    const Instr& weights() const { return *dot->operand(weights_operand); }
    const Instr& values() const { return *dot->operand(1 - weights_operand); }
  };
  // At least one; the scores are the results of the first of them.
  std::vector<First> firsts;
  std::vector<Second> seconds;
  // Dimensions of the scores. nullopt: of size 1.
  std::optional<int64_t> row, column;
  // More dimensions that the second dots contract, ascending, without those of size 1: in gradients
  // by keys, the heads of queries that share them.
  Dims outer_columns;
  // The other ones, ascending, without those of size 1: batch dimensions of the first dot, and more
  // dimensions of rows, such as heads that share columns.
  Dims batch;

  const Instr& scores() const { return *firsts[0].dot; }
  bool IsFirst(const Instr& instr) const;
  int64_t row_count() const { return SizeOf(row); }
  int64_t column_count() const { return SizeOf(column); }
  // Whether a dimension of the scores is one of columns.
  bool IsOfColumns(int64_t dim) const {
    return column == dim || std::ranges::count(outer_columns, dim) > 0;
  }
  // Whether a value, with dimensions `along` the scores, is the same in all columns.
  bool IsOfRows(const Dims& along) const;

 private:
  int64_t SizeOf(std::optional<int64_t> dim) const {
    return dim ? scores().shape().dim(static_cast<size_t>(*dim)) : 1;
  }
};

// Whether all elements are one constant zero of any sign, as the masked elements of weights are.
// The sums that read them do not depend on the sign, except for that of a result that is zero.
bool IsConstantZero(const Instr& instr);

// Whether an instruction combines elements of an array to one: a reduction, except along dimensions
// of size 1 only.
bool IsChainReduction(const Instr& instr);

// Finds the chain of instructions (operands before users) that have all of its dots and no others.
// Returns why there is none, empty if `chain` is set, and `along` for the values that do not depend
// on second dots.
std::string FindDotChain(const std::vector<const Instr*>& instrs, DotChain& chain,
                         std::optional<DimsAlong>& along);

// Whether reductions between the dots belong to the chain, or are given as any other input.
enum class ChainReductions : uint8_t { kInside, kGiven };
struct ChainSlice {
  DotChain chain;
  // The first dots, the values that follow from them, and the last instruction. Operands before
  // users.
  std::vector<const Instr*> instrs;
  std::vector<const Instr*> given;  // reductions, with ChainReductions::kGiven
};
// The chain that ends at a dot or a reduction, with all first dots that belong to it; nullopt if
// there is none.
std::optional<ChainSlice> ChainSliceOf(const Instr& last, ChainReductions reductions);
// Whether the dot is a first or a second dot of a chain.
bool IsInDotChain(const Instr& dot);

// A chain whose rows can be reduced while the product accumulates. The weights are linear in
//
//     exponential = exp(x - shift)
//
// where `shift` follows from reductions of earlier columns, up to row factors: ops that multiply
// or divide by values of the row. Running sums of a row are multiplied by
// exp(shift before - shift now) when the shift changes, and the row factors are applied to the
// product. Without an exponential, the weights depend on no reduction. With one, there is at most
// one second dot.
struct RunningChain {
  const Instr *exponential = nullptr, *x = nullptr, *shift = nullptr;
  std::vector<const Instr*> plain;   // reductions of elements that depend on no other reduction
  std::vector<const Instr*> scaled;  // sums of elements that are linear in the exponential
  struct RowFactor {
    const Instr* op = nullptr;   // a multiply or divide
    size_t element = 0;          // the operand that is linear in the exponential
    const Instr* row = nullptr;  // the other operand as a value of rows
  };
  std::vector<RowFactor> factors;
};
// Returns why the chain does not have this form, empty if `running` is set. `along`: of the values
// in `instrs`, which are the instructions of a region that do not depend on the product.
std::string AnalyzeRunningChain(const DotChain& chain, const std::vector<const Instr*>& instrs,
                                const DimsAlong& along, RunningChain& running);

}  // namespace tokamak
