#include "gen/gpu/column_sums.h"

#include <algorithm>

namespace tokamak::gpu {
namespace {

bool Contains(const std::vector<const Instr*>& list, const Instr* instr) {
  return std::find(list.begin(), list.end(), instr) != list.end();
}

// The instruction of the region that an operand is a reshape of.
const Instr& BelowReshapes(const Instr& operand, const FusedRegion& region) {
  const Instr* below = &operand;
  while (below->op() == Op::kReshape && Contains(region.instrs, below)) below = below->operand(0);
  return *below;
}

}  // namespace

bool IsColumnSum(const Reducer& reducer) {
  if (reducer.reduced_dims.empty() || reducer.kept_dims.empty()) return false;
  int64_t first = reducer.reduced_dims.front(), last = reducer.reduced_dims.back();
  bool adjoin = last - first + 1 == static_cast<int64_t>(reducer.reduced_dims.size());
  return adjoin && last + 1 < reducer.input().rank() && reducer.can_reassociate &&
         reducer.input_count == 1 && !IsComplex(reducer.type(0));
}

std::string ColumnSums::Find(const FusedRegion& region, FusedRegion& rest) {
  rest = region;
  for (const Instr* root : region.roots) {
    if (root->op() != Op::kReduce) continue;
    Reducer reducer = ReducerOf(*root);
    if (!IsColumnSum(reducer)) continue;
    for (const Instr* instr : region.instrs)
      if (std::count(instr->operands().begin(), instr->operands().end(), root) > 0)
        return "it uses its column sums";
    const Dims& dims = reducer.input().dims();
    auto begin = static_cast<size_t>(reducer.reduced_dims.front());
    auto end = static_cast<size_t>(reducer.reduced_dims.back()) + 1;
    int64_t outer = ProductOf(dims, 0, begin), reduced_rows = ProductOf(dims, begin, end);
    int64_t row = ProductOf(dims, end, dims.size());
    if (!reducers_.empty() &&
        (outer != outer_ || reduced_rows != reduced_rows_ || row != row_length_))
      return "its column sums are over different rows";
    outer_ = outer;
    reduced_rows_ = reduced_rows;
    row_length_ = row;
    operands_.push_back(&BelowReshapes(*root->operand(0), region));
    reducers_.push_back(std::move(reducer));
    std::erase(rest.roots, root);
    std::erase(rest.instrs, root);
  }
  return "";
}

int64_t ColumnSums::thread_registers() const {
  int64_t thread_registers = 0;
  for (const Reducer& reducer : reducers_) {
    ElementType type = AccumulatorElementType(reducer.type(0));
    thread_registers += CeilDiv(BytesOf(ComputeType(type)), kRegisterBytes);
  }
  return thread_registers;
}

void ColumnSums::Begin(int64_t count) {
  for (const Reducer& reducer : reducers_) sums_.emplace_back(b_, emitter_, reducer, count);
  if (sums_.empty()) return;
  b_.For("k", LoopRole::kUnrolled, b_.Index(count), [&](Scalar element_index) {
    for (Accumulators& sum : sums_) sum.Write(element_index, sum.StartValue());
  });
}

void ColumnSums::Accumulate(Scalar element_index, const Coordinates& at, const Dims& dims,
                            Scalar linear, Scalar valid) {
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Instr& operand = *reducers_[i].instr->operand(0);
    Coordinates below = operands_[i]->shape().dims() == dims
                            ? at
                            : Delinearized(b_, linear, operands_[i]->shape().dims());
    Coordinates own = Delinearized(b_, linear, operand.shape().dims());
    if (&operand != operands_[i]) emitter_.Memoize(operand, own, emitter_.At(*operands_[i], below));
    sums_[i].Accumulate(element_index, &operand == operands_[i] ? below : own, valid);
  }
}

void ColumnSums::AddSharedArray(size_t i, int64_t rows) {
  ScalarType type = ComputeType(AccumulatorElementType(reducers_[i].type(0)));
  auto [at, is_new] = shared_.try_emplace(type);
  if (!is_new) return;
  at->second = b_.Local("columns", type, Space::kShared, rows * row_length_);
  shared_bytes_ += rows * row_length_ * BytesOf(type);
  if (shared_bytes_ > kStaticSharedBytes) emitter_.Fail("it has too many column sums");
}

void ColumnSums::StoreShared(size_t i, Scalar index, Scalar element_index) {
  if (!emitter_.failure().empty()) return;
  Scalar sum = sums_[i].Read(element_index)[0][0];
  b_.Store(shared_.at(sum.type()), index, sum);
}

void ColumnSums::CombineShared(size_t i, Scalar index, Scalar element_index) {
  if (!emitter_.failure().empty()) return;
  Scalar sum = sums_[i].Read(element_index)[0][0], other = b_.Read(shared_.at(sum.type()), index);
  sums_[i].Write(element_index, sums_[i].CombinePair({Element{sum, {}}}, {Element{other, {}}}));
}

void ColumnSums::Store(size_t i, Scalar linear, Scalar element_index) {
  if (!emitter_.failure().empty()) return;
  Element result = sums_[i].FinalResult(sums_[i].Read(element_index))[0];
  emitter_.StoreLinear(*reducers_[i].instr, 0, linear, result);
}

}  // namespace tokamak::gpu
