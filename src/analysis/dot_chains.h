#pragma once

// Chains of two dots: rows of the first one's results are reduced and become an operand of the
// second one, as in attention. The analysis is algebraic: any elementwise ops and row reductions
// may be between the dots.
//
//     scores  = dot(q, k)             [batch, row, column]
//     weights = softmax(scores / 8)   elementwise, and reductions along the columns
//     product = dot(weights, v)       contracts the columns
//
// A kernel that computes some columns of a row at a time needs no array of the size of the scores.

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

 private:
  bool AddElementwise(const Instr& instr);
  bool AddReshape(const Instr& instr, const Dims& from);
  bool Put(const Instr& instr, Dims along);

  bool AddPadded(const Instr& instr, const Dims& from);

  std::unordered_map<const Instr*, Dims> along_;
  std::unordered_set<const Instr*> padded_;
};

struct DotChain {
  const Instr *scores = nullptr, *product = nullptr;
  size_t row_operand = 0;      // of `scores`: the one with the rows
  size_t weights_operand = 0;  // of `product`
  // Dimensions of the scores. nullopt: of size 1.
  std::optional<int64_t> row, column;
  // The other ones, ascending, without those of size 1: batch dimensions of the first dot, and more
  // dimensions of rows, such as heads that share columns.
  Dims batch;

  const Instr& weights() const { return *product->operand(weights_operand); }
  const Instr& rows() const { return *scores->operand(row_operand); }
  const Instr& columns() const { return *scores->operand(1 - row_operand); }
  const Instr& values() const { return *product->operand(1 - weights_operand); }
  int64_t row_count() const { return SizeOf(row); }
  int64_t column_count() const { return SizeOf(column); }
  // Whether a value, with dimensions `along` the scores, is the same in all columns.
  bool IsOfRows(const Dims& along) const;

 private:
  int64_t SizeOf(std::optional<int64_t> dim) const {
    return dim ? scores->shape().dim(static_cast<size_t>(*dim)) : 1;
  }
};

// The chain that ends at a dot; nullopt if there is none.
std::optional<DotChain> DotChainOf(const Instr& product);
// Whether the dot is the first or the second dot of a chain.
bool IsInDotChain(const Instr& dot);
// The values from the scores to the weights, and what they are computed from, except the operands
// of the first dot. Operands before users.
std::vector<const Instr*> InsideOf(const DotChain& chain);

// A chain whose rows can be reduced while the product accumulates. The weights are linear in
//
//     exponential = exp(x - shift)
//
// where `shift` follows from reductions of earlier columns, up to row factors: ops that multiply
// or divide by values of the row. Running sums of a row are multiplied by
// exp(shift before - shift now) when the shift changes, and the row factors are applied to the
// product. Without an exponential, the weights depend on no reduction.
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
