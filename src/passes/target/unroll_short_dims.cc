#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "gen/reducer.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// kMaxUnrolledDim: maximum size of the unrolled dimension. Chosen: each index repeats the code.
// kSmaller: how many times smaller the inputs must be than the computed array. Chosen: slicing them
// then costs little. kShortMany: minimum elements of that array. Chosen: smaller ones are reduced
// from the cache. kMaxComputing: instructions visited. Chosen: it bounds the search.
constexpr int64_t kMaxUnrolledDim = 4, kSmaller = 16, kShortMany = 1 << 20;
constexpr size_t kMaxComputing = 64;

// Whether an array is computed elementwise from far smaller ones.
bool IsBroadcastOfFew(const Instr& array) {
  int64_t count = array.shape().ElementCount() / kSmaller;
  std::unordered_set<const Instr*> seen = {&array};
  std::vector<const Instr*> open = {&array};
  while (!open.empty()) {
    const Instr& instr = *open.back();
    open.pop_back();
    if (!instr.shape().IsArray()) return false;
    if (instr.shape().ElementCount() <= count) continue;
    bool computes = instr.info().Is(kElementwise) || instr.op() == Op::kBroadcast ||
                    instr.op() == Op::kReshape || instr.op() == Op::kSlice ||
                    instr.op() == Op::kReduce || instr.op() == Op::kConcatenate ||
                    instr.op() == Op::kIota;
    if (!computes || seen.size() > kMaxComputing) return false;
    for (const Instr* operand : instr.operands())
      if (seen.insert(operand).second) open.push_back(operand);
  }
  return true;
}

bool IsWantedShort(const Instr& reduce) {
  if (reduce.op() != Op::kReduce || WhyNoReduceKernel(reduce) || !reduce.shape().IsArray())
    return false;
  if (reduce.captures() > 0 || HasControlDependencies(reduce)) return false;
  Reducer reducer = ReducerOf(reduce);
  const Shape& input = reducer.input();
  bool exact = InfoOf(input.type()).bits >= 32 && !IsComplex(input.type());
  return reducer.can_reassociate && !reducer.ops.empty() && exact && input.rank() > 1 &&
         input.dims().back() > 1 && input.dims().back() <= kMaxUnrolledDim &&
         input.ElementCount() >= kShortMany && IsBroadcastOfFew(*reduce.operand(0));
}

class Unrolled {
 public:
  explicit Unrolled(Instr& reduce) : reduce_(reduce), make_(reduce) {}

  void Run() {
    Reducer reducer = ReducerOf(reduce_);
    bool reduces = reducer.reduced_dims.back() + 1 == reducer.input().rank();
    Dims dims = reducer.reduced_dims;
    if (reduces) dims.pop_back();
    int64_t size = reducer.input().dims().back();
    if (!reduces) return make_.Replace(Joined(dims, size));
    Instr* all = nullptr;
    for (int64_t i = 0; i < size; ++i) {
      Instr* one = Part(i);
      all = all == nullptr ? one : make_.Make(reducer.ops[0], one->shape(), {all, one});
    }
    if (!dims.empty()) return make_.Replace(Reduced(all, dims, reduce_.shape()));
    Instr* first = make_.Broadcast(reduce_.operand(1), all->shape());
    make_.Replace(make_.Make(reducer.ops[0], all->shape(), {first, all}));
  }

 private:
  // Element i of the last dimension, which is removed.
  Instr* Part(int64_t i) {
    Instr* x = reduce_.operand(0);
    SliceAttrs slice;
    slice.limits = x->shape().dims();
    slice.starts.assign(slice.limits.size(), 0);
    slice.strides.assign(slice.limits.size(), 1);
    slice.starts.back() = i;
    slice.limits.back() = i + 1;
    Dims dims = x->shape().dims();
    dims.back() = 1;
    Instr* part = make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x}, slice);
    dims.pop_back();
    return make_.Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {part});
  }

  Instr* Reduced(Instr* x, const Dims& dims, const Shape& shape) {
    Instr* reduced_dims =
        make_.Make(Op::kReduce, shape, {x, reduce_.operand(1)}, DimensionsAttrs{dims});
    reduced_dims->set_called({reduce_.called(0)});
    return reduced_dims;
  }

  // Moves reduced dimensions before kept ones, so that adjacent threads have adjacent results and
  // read the same reduced elements.
  Instr* TransposedTo(Instr* x, const Dims& reduced_dims) {
    Dims order = reduced_dims, dims;
    for (int64_t d = 0; d < x->shape().rank(); ++d)
      if (!std::binary_search(reduced_dims.begin(), reduced_dims.end(), d)) order.push_back(d);
    if (std::is_sorted(order.begin(), order.end())) return x;
    for (int64_t d : order) dims.push_back(x->shape().dim(static_cast<size_t>(d)));
    return make_.Make(Op::kTranspose, Shape::Array(x->shape().type(), dims), {x},
                      DimensionsAttrs{order});
  }

  // One reduction for each element of the last dimension, concatenated.
  Instr* Joined(const Dims& reduced_dims, int64_t size) {
    Dims dims = reduce_.shape().dims();
    dims.back() = 1;
    Shape wide = Shape::Array(reduce_.shape().type(), dims);
    dims.pop_back();
    Shape narrow = Shape::Array(reduce_.shape().type(), dims);
    std::vector<Instr*> parts;
    for (int64_t i = 0; i < size; ++i) {
      Dims first(reduced_dims.size());
      std::iota(first.begin(), first.end(), int64_t{0});
      Instr* part = Reduced(TransposedTo(Part(i), reduced_dims), first, narrow);
      parts.push_back(make_.Make(Op::kReshape, wide, {part}));
    }
    return make_.Make(Op::kConcatenate, reduce_.shape(), parts,
                      DimensionAttrs{reduce_.shape().rank() - 1});
  }

  Instr& reduce_;
  Editor make_;
};

}  // namespace

// GPU only: unrolls the short last dimension (coordinates of a point) of reductions whose input is
// computed from far smaller arrays (all pairs of points). If the dimension is reduced, it becomes a
// chain of ops; if it is kept, several reductions that share everything independent of it. One
// kernel then computes all of it, and no array of the size of all pairs is stored.
Result<Changed> UnrollShortDims(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (!IsWantedShort(*instr)) continue;
      context.Accepted("reduce.unroll", *instr, nullptr,
                       "a short dimension of values that are computed from small arrays");
      Unrolled(*instr).Run();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
