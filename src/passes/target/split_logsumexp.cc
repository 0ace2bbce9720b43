#include <algorithm>
#include <limits>

#include "cost/machine.h"
#include "gen/shifted_sum.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Elements of a part: a team of several that a multiprocessor runs at a time keeps them.
constexpr int64_t kPart = 8192;
// Parts of a row, unless they would be four times as long: one team puts them together.
constexpr int64_t kShiftedMostParts = 4096;
// Teams that a multiprocessor is to have.
constexpr int64_t kTeams = 2;
// Bytes of a row that one of two teams of a multiprocessor keeps, and that one alone keeps
// (gen/gpu/rows.cc).
constexpr int64_t kTwoTeams = 144 << 10, kOneTeam = 352 << 10;
// Vectors begin at multiples of it.
constexpr int64_t kShiftedUnit = 16;

// A sum to split, with the maximum of its rows.
struct Found {
  Instr *sum = nullptr, *greatest = nullptr, *x = nullptr, *shift = nullptr;
  int64_t row = 1;
  bool alone = false;  // no other pass over the row follows
};

bool IsReduce(const Instr& instr) {
  return instr.op() == Op::kReduce && !WhyNoReducer(instr);
}

// Only of the last dimensions: whole rows.
bool FoldsRows(const Reducer& reducer) {
  auto folded = static_cast<int64_t>(reducer.reduced.size());
  return folded > 0 && reducer.reduced.front() + folded == reducer.input().rank();
}

std::optional<Found> Find(Instr& sum) {
  Reducer reducer = ReducerOf(sum);
  if (sum.operand(0)->op() != Op::kExp || !FoldsRows(reducer)) return std::nullopt;
  Instr& difference = *sum.operand(0)->operand(0);
  if (difference.op() != Op::kSubtract) return std::nullopt;
  Found found{&sum, nullptr, difference.operand(0)};
  for (Instr* user : found.x->users())
    if (IsReduce(*user) && ShiftedSumOf(reducer, ReducerOf(*user))) found.greatest = user;
  if (found.greatest == nullptr) return std::nullopt;
  found.shift = difference.operand(1)->operand(0);
  found.alone = sum.operand(0)->users().size() == 1 && difference.users().size() == 1 &&
                found.x->users().size() == 2;
  for (int64_t d : reducer.reduced) found.row *= found.x->shape().dim(static_cast<size_t>(d));
  return found;
}

class ShiftedSplitter {
 public:
  ShiftedSplitter(const Found& found, int64_t count)
      : found_(found), make_(*found.sum), type_(found.x->shape().type()) {
    size_ = found.row / count;
    if (found.row % count != 0) size_ = size_ / kShiftedUnit * kShiftedUnit;
    count_ = count;
    kept_ = found.sum->shape().dims();
    rank_ = static_cast<int64_t>(kept_.size());
  }

  void Split() {
    // Two pieces at least, which are joined: no kernel that reads the rows then goes on to scale
    // its sums, for which it would have to wait until the greatest of all parts is known.
    int64_t rest = found_.row - count_ * size_, first = rest > 0 ? count_ : count_ / 2;
    AddParts(0, first, size_);
    if (first < count_) AddParts(first * size_, count_ - first, size_);
    if (rest > 0) AddParts(count_ * size_, 1, rest);
    Instr* most = Joined(greatest_);
    Instr* whole = Folded(*found_.greatest, most, found_.greatest->operand(1));
    // The shift may be it, or is made of it.
    Instr* shift = found_.shift == found_.greatest ? whole : found_.shift;
    Editor(*found_.greatest).Replace(whole);
    Shape parts = most->shape();
    shift = make_.Make(Op::kBroadcast, parts, {shift}, DimensionsAttrs{Counted()});
    Instr* scale = make_.Make(Op::kExp, parts, {make_.Make(Op::kSubtract, parts, {most, shift})});
    Instr* terms = make_.Make(Op::kMultiply, parts, {Joined(sums_), scale});
    make_.Replace(Folded(*found_.sum, terms, found_.sum->operand(1)));
  }

 private:
  // The dimensions of rows.
  Dims Counted() const {
    Dims dims;
    for (int64_t d = 0; d < rank_; ++d) dims.push_back(d);
    return dims;
  }
  Shape With(std::initializer_list<int64_t> behind) const {
    Dims dims = kept_;
    dims.insert(dims.end(), behind);
    return Shape::Array(type_, dims);
  }

  // Of what has rows of parts, the last dimension folded as the reduce does.
  Instr* Folded(const Instr& as, Instr* of, Instr* first) {
    Dims dims = of->shape().dims();
    dims.pop_back();
    Instr* made = make_.Make(Op::kReduce, Shape::Array(type_, dims), {of, first},
                             DimensionsAttrs{{static_cast<int64_t>(dims.size())}});
    made->set_called({as.called(0)});
    return made;
  }

  Instr* Number(double value) { return make_.Constant(Literal::Scalar(type_, value)); }

  // The greatest elements of `count` parts of `size`, from element `begin` of each row on, and the
  // sums over them.
  void AddParts(int64_t begin, int64_t count, int64_t size) {
    Instr* x = make_.Reshaped(found_.x, With({found_.row}).dims());
    if (count * size < found_.row) {
      auto all = static_cast<size_t>(rank_ + 1);
      SliceAttrs slice{Dims(all, 0), x->shape().dims(), Dims(all, 1)};
      slice.starts.back() = begin;
      slice.limits.back() = begin + count * size;
      x = make_.Make(Op::kSlice, With({count * size}), {x}, slice);
    }
    x = make_.Reshaped(x, With({count, size}).dims());
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Instr* greatest = Folded(*found_.greatest, x, Number(-kInfinity));
    // Of a part without any that is finite: exp(-inf - 0) is 0, exp(inf - 0) infinite, as they are
    // to be.
    Shape parts = greatest->shape();
    Instr* finite =
        make_.Make(Op::kIsFinite, Shape::Array(ElementType::kPred, parts.dims()), {greatest});
    Instr* shift =
        make_.Make(Op::kSelect, parts, {finite, greatest, make_.Broadcast(Number(0), parts)});
    Dims counted = Counted();
    counted.push_back(rank_);
    Instr* spread = make_.Make(Op::kBroadcast, x->shape(), {shift}, DimensionsAttrs{counted});
    Instr* terms =
        make_.Make(Op::kExp, x->shape(), {make_.Make(Op::kSubtract, x->shape(), {x, spread})});
    sums_.push_back(Folded(*found_.sum, terms, Number(-0.0)));
    greatest_.push_back(greatest);
  }

  Instr* Joined(const std::vector<Instr*>& pieces) {
    int64_t parts = 0;
    for (const Instr* piece : pieces) parts += piece->shape().dims().back();
    return make_.Make(Op::kConcatenate, With({parts}), pieces, DimensionAttrs{rank_});
  }

  const Found& found_;
  Editor make_;
  ElementType type_;
  int64_t count_ = 1, size_ = 1, rank_ = 0;
  Dims kept_;
  std::vector<Instr*> greatest_, sums_;
};

// Parts of a row; 1: there is a row for each team that the machine wants (gen/gpu/rows.cc goes
// through those that are too long to keep only once, too).
int64_t PartsWanted(const Found& found, const Machine& machine) {
  int64_t rows = found.sum->shape().ElementCount();
  int64_t bytes = found.row * static_cast<int64_t>(BytesOf(ComputeType(found.x->shape().type())));
  if (rows >= kTeams * machine.cores || bytes <= (found.alone ? kTwoTeams : kOneTeam)) return 1;
  return std::min(found.row / kPart, std::max(kShiftedMostParts, found.row / (4 * kPart)));
}

}  // namespace

// On a GPU, sums of exp(x - m) along a few long rows, m being their greatest element, become sums
// of parts that need not wait for m, and are read once:
//
//   m_p = max of part p of a row,   s_p = sum of exp(x - m_p) over it
//   m   = max of m_p,               s   = sum of s_p exp(m_p - m)
//
// Rounded in another order than before; infinities and NaN come out as they did. Before
// SplitReductions, which would split both reductions, one after the other. Record reduce.shifted.
Result<Changed> SplitLogsumexp(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    std::vector<Instr*> sums;  // none of them goes with another
    for (Instr* instr : computation.Instrs())
      if (IsReduce(*instr) && ReducerOf(*instr).op == Op::kAdd) sums.push_back(instr);
    for (Instr* instr : sums) {
      std::optional<Found> found = Find(*instr);
      if (!found || IsTied(*found->sum) || IsTied(*found->greatest)) continue;
      int64_t parts = PartsWanted(*found, context.machine());
      if (parts <= 1) continue;
      context.Taken("reduce.shifted", *instr, nullptr,
                    std::to_string(parts) + " parts of a row, each with its own maximum");
      ShiftedSplitter(*found, parts).Split();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
