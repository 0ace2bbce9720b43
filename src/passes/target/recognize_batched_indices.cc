#include <algorithm>
#include <optional>

#include "gen/generator.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

bool IsBatched(const Dims& dims, int64_t d) {
  return std::ranges::find(dims, d) != dims.end();
}

// The attributes common to gathers and scatters.
struct IndexUse {
  const Dims& of_index;  // per component of the index vector: the dimension of the array
  const Dims& alone;     // dimensions of the array that windows omit
  const Dims &array_batch, &index_batch;
  int64_t vector_dim = 0;
};

IndexUse UseOf(const Instr& instr) {
  if (instr.op() == Op::kGather) {
    const auto& a = instr.attrs<GatherAttrs>();
    return {a.start_index_map, a.collapsed_slice_dims, a.operand_batching_dims,
            a.start_indices_batching_dims, a.index_vector_dim};
  }
  const auto& a = instr.attrs<ScatterAttrs>();
  return {a.scatter_dims_to_operand_dims, a.inserted_window_dims, a.input_batching_dims,
          a.scatter_indices_batching_dims, a.index_vector_dim};
}

// The operand of the indices' concatenation that counts like an iota; each operand is one
// component.
std::optional<size_t> CountingPart(const Instr& instr) {
  const Instr& indices = *instr.operand(1);
  IndexUse use = UseOf(instr);
  if (indices.op() != Op::kConcatenate ||
      indices.attrs<DimensionAttrs>().dimension != use.vector_dim ||
      indices.operand_count() != use.of_index.size() || use.of_index.size() < 2)
    return std::nullopt;
  for (size_t k = 0; k < indices.operand_count(); ++k) {
    const Instr& part = *indices.operand(k);
    // 32 bits suffice for all indices; narrower types may wrap around.
    if (part.op() != Op::kIota || InfoOf(part.shape().type()).bits < 32) continue;
    int64_t along = part.attrs<IotaAttrs>().dimension, to = use.of_index[k];
    bool whole =
        along != use.vector_dim && part.shape().dim(static_cast<size_t>(along)) ==
                                       instr.operand(0)->shape().dim(static_cast<size_t>(to));
    if (whole && IsBatched(use.alone, to) && !IsBatched(use.index_batch, along)) return k;
  }
  return std::nullopt;
}

// The attribute members that IndexUse refers to.
template <typename Attrs>
struct IndexMembers {
  Dims Attrs::*index, Attrs::*alone, Attrs::*array, Attrs::*indices;
};

// The same op with the dimension of one component turned into a batch dimension along dimension
// `along` of the indices. Batch dimensions are in the order of the array's dimensions.
template <typename Attrs>
Attrs WithBatch(Attrs attrs, const IndexMembers<Attrs>& of, size_t part, int64_t along) {
  Dims &index = attrs.*of.index, &array = attrs.*of.array, &indices = attrs.*of.indices;
  int64_t to = index[part];
  index.erase(index.begin() + static_cast<int64_t>(part));
  std::erase(attrs.*of.alone, to);
  auto position = std::ranges::lower_bound(array, to) - array.begin();
  array.insert(array.begin() + position, to);
  indices.insert(indices.begin() + position, along);
  attrs.indices_are_sorted = false;
  return attrs;
}

void Batch(Instr& instr, size_t part) {
  Editor make(instr);
  Instr& indices = *instr.operand(1);
  int64_t along = indices.operand(part)->attrs<IotaAttrs>().dimension;
  std::vector<Instr*> rest(indices.operands().begin(), indices.operands().end());
  rest.erase(rest.begin() + static_cast<int64_t>(part));
  Instr* left = rest[0];
  if (rest.size() > 1) {
    Dims dims = indices.shape().dims();
    --dims[static_cast<size_t>(UseOf(instr).vector_dim)];
    left = make.Make(Op::kConcatenate, Shape::Array(indices.shape().type(), dims), rest,
                     indices.attrs());
  }
  instr.set_operand(1, left);
  using G = GatherAttrs;
  using S = ScatterAttrs;
  IndexMembers<G> of_gather{&G::start_index_map, &G::collapsed_slice_dims,
                            &G::operand_batching_dims, &G::start_indices_batching_dims};
  IndexMembers<S> of_scatter{&S::scatter_dims_to_operand_dims, &S::inserted_window_dims,
                             &S::input_batching_dims, &S::scatter_indices_batching_dims};
  if (instr.op() == Op::kGather)
    instr.set_attrs(WithBatch(instr.attrs<G>(), of_gather, part, along));
  else
    instr.set_attrs(WithBatch(instr.attrs<S>(), of_scatter, part, along));
}

}  // namespace

// x[arange(n), i] and x.at[arange(n), i].set(y): a component of the index vector that counts along
// a dimension of the indices, with the size of the dimension it indexes, selects a different row
// for each index. It becomes a batch dimension, which makes it explicit that rows are independent.
Result<Changed> RecognizeBatchedIndices(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kGather && (instr->op() != Op::kScatter || WhyNoScatterKernel(*instr)))
        continue;
      for (std::optional<size_t> part; (part = CountingPart(*instr)); changed = true) {
        context.Accepted("index.batch", *instr, nullptr,
                         "part " + std::to_string(*part) + " of its indices counts rows");
        Batch(*instr, *part);
      }
    }
    return changed;
  });
}

}  // namespace tokamak
