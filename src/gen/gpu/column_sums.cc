#include "gen/gpu/column_sums.h"

#include <algorithm>

namespace tokamak::gpu {
namespace {

// Of a block, for sums that are joined.
constexpr int64_t kColumnSumTeamBytes = 48 << 10;

bool Contains(const std::vector<const Instr*>& list, const Instr* instr) {
  return std::find(list.begin(), list.end(), instr) != list.end();
}

// What an operand is a reshape of, inside of the region.
const Instr& BelowReshapes(const Instr& operand, const Region& region) {
  const Instr* below = &operand;
  while (below->op() == Op::kReshape && Contains(region.instrs, below)) below = below->operand(0);
  return *below;
}

}  // namespace

bool FoldsColumns(const Reducer& reducer) {
  if (reducer.reduced.empty() || reducer.kept.empty()) return false;
  int64_t first = reducer.reduced.front(), last = reducer.reduced.back();
  bool adjoin = last - first + 1 == static_cast<int64_t>(reducer.reduced.size());
  return adjoin && last + 1 < reducer.input().rank() && reducer.any_order && reducer.count == 1 &&
         !IsComplex(reducer.type(0));
}

std::string ColumnSums::Find(const Region& region, Region& rest) {
  rest = region;
  for (const Instr* root : region.roots) {
    if (root->op() != Op::kReduce) continue;
    Reducer reducer = ReducerOf(*root);
    if (!FoldsColumns(reducer)) continue;
    for (const Instr* instr : region.instrs)
      if (std::count(instr->operands().begin(), instr->operands().end(), root) > 0)
        return "it needs the sums of its columns";
    const Dims& dims = reducer.input().dims();
    auto begin = static_cast<size_t>(reducer.reduced.front());
    auto end = static_cast<size_t>(reducer.reduced.back()) + 1;
    int64_t parts = ProductOf(dims, 0, begin), folded = ProductOf(dims, begin, end);
    int64_t row = ProductOf(dims, end, dims.size());
    if (!reducers_.empty() && (parts != parts_ || folded != folded_ || row != row_))
      return "its columns are of different rows";
    parts_ = parts;
    folded_ = folded;
    row_ = row;
    operands_.push_back(&BelowReshapes(*root->operand(0), region));
    reducers_.push_back(std::move(reducer));
    std::erase(rest.roots, root);
    std::erase(rest.instrs, root);
  }
  return "";
}

int64_t ColumnSums::words() const {
  int64_t words = 0;
  for (const Reducer& reducer : reducers_) {
    ElementType type = WideType(reducer.type(0));
    words += (BytesOf(ComputeType(type)) + 3) / 4;
  }
  return words;
}

void ColumnSums::Begin(int64_t count) {
  for (const Reducer& reducer : reducers_) sums_.emplace_back(b_, emitter_, reducer, count);
  if (sums_.empty()) return;
  b_.For("k", LoopRole::kUnrolled, b_.Index(count), [&](Scalar number) {
    for (Accumulators& sum : sums_) sum.Write(number, sum.Begin());
  });
}

void ColumnSums::Fold(Scalar number, const Coordinates& at, const Dims& dims, Scalar linear,
                      Scalar valid) {
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Instr& operand = *reducers_[i].instr->operand(0);
    Coordinates below = operands_[i]->shape().dims() == dims
                            ? at
                            : Delinearized(b_, linear, operands_[i]->shape().dims());
    Coordinates own = Delinearized(b_, linear, operand.shape().dims());
    if (&operand != operands_[i])
      emitter_.Remember(operand, own, emitter_.At(*operands_[i], below));
    sums_[i].Fold(number, &operand == operands_[i] ? below : own, valid);
  }
}

void ColumnSums::NewShared(size_t i, int64_t rows) {
  ScalarType type = ComputeType(WideType(reducers_[i].type(0)));
  auto [at, is_new] = shared_.try_emplace(type);
  if (!is_new) return;
  at->second = b_.Local("columns", type, Space::kTeam, rows * row_);
  team_bytes_ += rows * row_ * BytesOf(type);
  if (team_bytes_ > kColumnSumTeamBytes) emitter_.Fail("the sums of its columns are too many");
}

void ColumnSums::Share(size_t i, Scalar place, Scalar number) {
  if (!emitter_.fault().empty()) return;
  Scalar sum = sums_[i].Read(number)[0][0];
  b_.Store(shared_.at(sum.type()), place, sum);
}

void ColumnSums::Join(size_t i, Scalar place, Scalar number) {
  if (!emitter_.fault().empty()) return;
  Scalar sum = sums_[i].Read(number)[0][0], other = b_.Read(shared_.at(sum.type()), place);
  sums_[i].Write(number, sums_[i].Joined({Element{sum, {}}}, {Element{other, {}}}));
}

void ColumnSums::Store(size_t i, Scalar linear, Scalar number) {
  if (!emitter_.fault().empty()) return;
  Element result = sums_[i].Finished(sums_[i].Read(number))[0];
  emitter_.StoreLinear(*reducers_[i].instr, 0, linear, result);
}

}  // namespace tokamak::gpu
