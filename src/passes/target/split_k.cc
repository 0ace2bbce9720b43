#include <algorithm>

#include "gen/dot_sides.h"
#include "gen/element.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "passes/target/reduction_parts.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Sums that a thread holds, for four elements at a time, and what both sides load for them.
constexpr int64_t kMostSums = 16;
// Rows of an operand whose elements lie so far apart: with more, a warp's loads touch more lines
// than what it takes of them is worth.
constexpr int64_t kMostApart = 8;
// Of less depth there is no use for many threads; of fewer elements on both sides, no use for many
// teams.
constexpr int64_t kLeastDepth = 2048, kLeastElements = 1 << 17;

class DeepProduct {
 public:
  DeepProduct(Instr& dot, const Machine& machine)
      : dot_(dot), machine_(machine), sides_(dot), make_(dot) {}

  bool IsOne() {
    if (!IsPlainArray(dot_.shape()) || !IsReal(dot_.shape().type()) || sides_.IsEmpty())
      return false;
    for (const Instr* operand : dot_.operands())
      if (!IsPlainArray(operand->shape()) || !IsReal(operand->shape().type())) return false;
    bool few = sides_.m <= kMostSums && sides_.n <= kMostSums && sides_.m * sides_.n <= kMostSums;
    return few && sides_.k >= kLeastDepth &&
           sides_.batch * sides_.k >= kLeastElements / (sides_.m + sides_.n) &&
           Apart(sides_.lhs, sides_.lhs_free) <= kMostApart &&
           Apart(sides_.rhs, sides_.rhs_free) <= kMostApart && LieAlike();
  }

  int64_t results() const { return sides_.m * sides_.n; }

  void Write() {
    type_ = WideType(dot_.shape().type());
    sum_ = AdditionFor(dot_, type_);
    zero_ = make_.Constant(Literal::Scalar(type_, 0));
    std::vector<Instr*> lhs = Rows(0, sides_.lhs_free);
    bool same = dot_.operand(0) == dot_.operand(1) && sides_.lhs_free == sides_.rhs_free;
    std::vector<Instr*> rhs = same ? lhs : Rows(1, sides_.rhs_free);
    Instr* all = InParts(lhs, rhs);
    if (all == nullptr) all = Beside(SumsOf(lhs, rhs, shared_, folded_));
    all = make_.Converted(all, dot_.shape().type());
    make_.Replace(make_.Reshaped(all, dot_.shape().dims()));
  }

 private:
  // How far neighbours of a row lie apart for the rows that come between them.
  static int64_t Apart(const Dims& dims, const Dims& free) {
    int64_t apart = 1;
    for (size_t d = dims.size(); d-- > 0 && std::ranges::count(free, static_cast<int64_t>(d)) > 0;)
      apart *= dims[d];
    return apart;
  }

  // Whether the dimensions that both sides have, batches and depth, come in the same order, and
  // batches as the results have them.
  bool LieAlike() {
    const DotAttrs& attrs = sides_.attrs;
    if (!std::ranges::is_sorted(attrs.lhs_batch)) return false;
    std::vector<std::pair<int64_t, int64_t>> both;
    for (size_t i = 0; i < attrs.lhs_batch.size(); ++i)
      both.emplace_back(attrs.lhs_batch[i], attrs.rhs_batch[i]);
    for (size_t i = 0; i < attrs.lhs_contracting.size(); ++i)
      both.emplace_back(attrs.lhs_contracting[i], attrs.rhs_contracting[i]);
    std::ranges::sort(both);
    for (size_t i = 0; i < both.size(); ++i) {
      if (i > 0 && both[i - 1].second > both[i].second) return false;
      bool folded = std::ranges::count(attrs.lhs_contracting, both[i].first) > 0;
      if (folded) folded_.push_back(static_cast<int64_t>(i));
      int64_t size = sides_.lhs[static_cast<size_t>(both[i].first)];
      shared_.push_back(size);
      if (!folded) batch_.push_back(size);
    }
    return true;
  }

  // Each row of an operand: its dimensions are those that both sides have.
  std::vector<Instr*> Rows(size_t side, const Dims& free) {
    Instr* x = dot_.operand(side);
    const Dims dims = x->shape().dims(), sizes = SizesOf(dims, free);
    x = make_.Converted(x, type_);
    std::vector<Instr*> rows;
    for (int64_t number = 0; number < SizeOf(dims, free); ++number) {
      Dims from(dims.size(), 0), to = dims;
      int64_t left = number;
      for (size_t f = free.size(); f-- > 0; left /= sizes[f]) {
        auto d = static_cast<size_t>(free[f]);
        from[d] = left % sizes[f];
        to[d] = from[d] + 1;
      }
      rows.push_back(make_.Reshaped(Sliced(x, from, to), shared_));
    }
    return rows;
  }

  // The sum of each pair of rows, which have these dimensions.
  std::vector<Instr*> SumsOf(const std::vector<Instr*>& lhs, const std::vector<Instr*>& rhs,
                             const Dims& dims, const Dims& folded) {
    std::vector<Instr*> sums;
    for (size_t i = 0; i < lhs.size(); ++i)
      for (size_t j = 0; j < rhs.size(); ++j) {
        // A matrix by itself has each sum twice.
        bool again = lhs == rhs && j < i;
        sums.push_back(again ? sums[j * rhs.size() + i] : SumOf(lhs[i], rhs[j], dims, folded));
      }
    return sums;
  }

  Instr* SumOf(Instr* x, Instr* y, const Dims& dims, const Dims& folded) {
    return Folded(make_.Make(Op::kMultiply, Shape::Array(type_, dims), {x, y}), folded);
  }

  Instr* Folded(Instr* x, const Dims& folded) {
    Dims kept;
    for (size_t d = 0; d < x->shape().dims().size(); ++d)
      if (std::ranges::count(folded, static_cast<int64_t>(d)) == 0)
        kept.push_back(x->shape().dim(d));
    Instr* sum =
        make_.Make(Op::kReduce, Shape::Array(type_, kept), {x, zero_}, DimensionsAttrs{folded});
    sum->set_called({sum_});
    return sum;
  }

  // Where the depth comes last and is to be cut into parts: the sums of parts, then all of those at
  // once. (SplitReductions would have one more for each result.) Nothing where it is not.
  Instr* InParts(const std::vector<Instr*>& lhs, const std::vector<Instr*>& rhs) {
    if (folded_.front() != static_cast<int64_t>(batch_.size())) return nullptr;
    Parts parts = PartsOfRows(sides_.k, sides_.batch, machine_);
    if (parts.count == 1) return nullptr;
    Instr* all = PartSums(lhs, rhs, 0, parts.count, parts.size);
    if (parts.rest > 0) {
      Instr* rest = PartSums(lhs, rhs, parts.count * parts.size, 1, parts.rest);
      all = make_.Make(Op::kConcatenate,
                       Shape::Array(type_, {sides_.batch, results(), parts.count + 1}), {all, rest},
                       DimensionAttrs{2});
    }
    return Folded(all, {2});
  }

  // For each batch and result, sums of `count` parts of `size` from `begin` on.
  Instr* PartSums(std::vector<Instr*> lhs, std::vector<Instr*> rhs, int64_t begin, int64_t count,
                  int64_t size) {
    bool same = lhs == rhs;
    Dims dims = {sides_.batch, count, size};
    auto cut = [&](std::vector<Instr*>& rows) {
      for (Instr*& row : rows) {
        row = make_.Reshaped(row, {sides_.batch, sides_.k});
        row = Sliced(row, {0, begin}, {sides_.batch, begin + count * size});
        row = make_.Reshaped(row, dims);
      }
    };
    cut(lhs);
    if (same) rhs = lhs;
    if (!same) cut(rhs);
    std::vector<Instr*> sums = SumsOf(lhs, rhs, dims, {2});
    for (Instr*& sum : sums) sum = make_.Reshaped(sum, {sides_.batch, 1, count});
    return Joined(std::move(sums), 1);
  }

  // The results of each batch, one behind the other.
  Instr* Beside(std::vector<Instr*> sums) {
    Dims dims = batch_;
    dims.push_back(1);
    for (Instr*& sum : sums) sum = make_.Reshaped(sum, dims);
    return Joined(std::move(sums), static_cast<int64_t>(dims.size()) - 1);
  }

  Instr* Joined(std::vector<Instr*> pieces, int64_t along) {
    if (pieces.size() == 1) return pieces[0];
    Dims dims = pieces[0]->shape().dims();
    dims[static_cast<size_t>(along)] *= static_cast<int64_t>(pieces.size());
    return make_.Make(Op::kConcatenate, Shape::Array(type_, dims), std::move(pieces),
                      DimensionAttrs{along});
  }

  Instr* Sliced(Instr* x, const Dims& from, const Dims& to) {
    Dims dims;
    for (size_t d = 0; d < from.size(); ++d) dims.push_back(to[d] - from[d]);
    if (dims == x->shape().dims()) return x;
    return make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x},
                      SliceAttrs{from, to, Dims(dims.size(), 1)});
  }

  Instr& dot_;
  const Machine& machine_;
  DotSides sides_;
  Editor make_;
  Dims shared_, batch_, folded_;  // sizes of what both sides have; which of those are the depth
  ElementType type_{};
  Computation* sum_ = nullptr;
  Instr* zero_ = nullptr;
};

}  // namespace

// On a GPU, products of few results and much depth (dots of long vectors, a few rows by a few rows,
// x^T x of many samples with few features) become a sum of products for each result:
//
//   reduce(multiply(row i of lhs, row j of rhs))
//
// One kernel folds all of them, each thread with all sums in registers, so that what is multiplied
// is read once; SplitReductions cuts it into parts. Tiles of results would be almost empty, and too
// few for the machine (2 x 2 by 4,194,304 deep: 450 us by cuBLASLt, and the bytes are read in 15).
// Sums are wide, and rounded once, as a dot's. Record contraction.deep.
Result<Changed> SplitK(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kDot || instr->has_extras()) continue;
      DeepProduct product(*instr, context.machine());
      if (!product.IsOne()) continue;
      context.Taken("contraction.deep", *instr, nullptr,
                    std::to_string(product.results()) + " sums of a batch");
      product.Write();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
