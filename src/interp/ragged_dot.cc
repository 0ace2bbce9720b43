// ragged-dot: a dot with one lhs dimension split into groups of run-time sizes. In its three modes
// that dimension is free (each group has its own rhs), contracted (each group gives its own
// result), or a batch dimension (the groups have no effect). Rows after the last group are ignored.

#include <algorithm>

#include "interp/contraction.h"
#include "interp/evaluators.h"

namespace tokamak {
namespace {

int64_t IndexOf(const Dims& dims, int64_t d) {
  auto at = std::find(dims.begin(), dims.end(), d);
  return at == dims.end() ? -1 : at - dims.begin();
}

struct Box {
  Dims starts, sizes;
  explicit Box(const Dims& dims) : starts(dims.size(), 0), sizes(dims) {}
  void Fix(int64_t d, int64_t start, int64_t size) {
    starts[static_cast<size_t>(d)] = start;
    sizes[static_cast<size_t>(d)] = size;
  }
  StridedView In(const Dims& dims) const {
    StridedView view{0, StridesOf(dims)};
    for (size_t d = 0; d < starts.size(); ++d) view.base += starts[d] * view.strides[d];
    return view;
  }
};

// The parameters of the op that do not depend on the group.
struct RaggedDot {
  DotAttrs dot;        // of one group, rhs without its group dimension
  int64_t ragged = 0;  // of lhs
  int64_t group = -1;  // of rhs; -1: contracted mode
  Dims lhs_dims, rhs_dims, lhs_free;
  Dims prefix;       // lhs dimensions that precede the last dimension of group_sizes
  Dims result_dims;  // in contracted mode without the leading group dimension
};

Dims FreeOf(const Dims& dims, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    if (IndexOf(batch, d) < 0 && IndexOf(contracting, d) < 0) free.push_back(d);
  return free;
}

RaggedDot Describe(const Instr& instr, const Value& lhs, const Value& rhs, const Value& sizes) {
  const DotAttrs& attrs = instr.attrs<DotAttrs>();
  RaggedDot op;
  op.dot = attrs;
  op.ragged = attrs.lhs_ragged[0];
  op.lhs_dims = lhs.dims();
  op.rhs_dims = rhs.dims();
  op.lhs_free = FreeOf(op.lhs_dims, attrs.lhs_batch, attrs.lhs_contracting);
  if (!attrs.rhs_group.empty()) {
    op.group = attrs.rhs_group[0];
    op.rhs_dims.erase(op.rhs_dims.begin() + op.group);
    for (Dims* dims : {&op.dot.rhs_batch, &op.dot.rhs_contracting})
      for (int64_t& d : *dims) d -= d > op.group ? 1 : 0;
  }
  if (sizes.shape().rank() > 1) {
    op.prefix = attrs.lhs_batch;
    const Dims& list = op.group >= 0 ? op.lhs_free : attrs.lhs_contracting;
    for (int64_t d : list) {
      if (d == op.ragged) break;
      op.prefix.push_back(d);
    }
    op.prefix.resize(std::min(op.prefix.size(), static_cast<size_t>(sizes.shape().rank() - 1)));
  }
  op.result_dims = DotResultDims(op.lhs_dims, op.rhs_dims, op.dot);
  return op;
}

struct Boxes {
  Box lhs, rhs, out;
};

// Fixes one lhs dimension and the corresponding dimensions of rhs and result.
void FixEverywhere(const RaggedDot& op, int64_t d, int64_t start, int64_t size, Boxes& boxes) {
  boxes.lhs.Fix(d, start, size);
  if (int64_t b = IndexOf(op.dot.lhs_batch, d); b >= 0) {
    boxes.rhs.Fix(op.dot.rhs_batch[static_cast<size_t>(b)], start, size);
    boxes.out.Fix(b, start, size);
  } else if (int64_t c = IndexOf(op.dot.lhs_contracting, d); c >= 0) {
    boxes.rhs.Fix(op.dot.rhs_contracting[static_cast<size_t>(c)], start, size);
  } else {
    boxes.out.Fix(static_cast<int64_t>(op.dot.lhs_batch.size()) + IndexOf(op.lhs_free, d), start,
                  size);
  }
}

template <typename T>
std::vector<T> RaggedElements(const RaggedDot& op, std::span<const T> lhs, std::span<const T> rhs,
                              const Value& sizes) {
  const int64_t groups = sizes.dims().back();
  const int64_t result_size = ProductOf(op.result_dims);
  std::vector<T> sums(static_cast<size_t>(op.group >= 0 ? result_size : groups * result_size));
  // rhs[group] as one contiguous block each.
  std::vector<T> blocks;
  const int64_t block_size = ProductOf(op.rhs_dims);
  if (op.group >= 0) {
    Dims order{op.group}, whole = op.rhs_dims;
    whole.insert(whole.begin() + op.group, groups);
    for (int64_t d = 0; d < static_cast<int64_t>(whole.size()); ++d)
      if (d != op.group) order.push_back(d);
    blocks = TransposeElements(rhs, whole, order);
  } else {
    blocks.assign(rhs.begin(), rhs.end());
  }
  Dims prefix_dims = Permuted(op.lhs_dims, op.prefix), at(op.prefix.size(), 0);
  if (ProductOf(prefix_dims) == 0) return sums;
  int64_t row = 0;
  do {
    int64_t start = 0, limit = op.lhs_dims[static_cast<size_t>(op.ragged)];
    for (int64_t g = 0; g < groups; ++g) {
      int64_t size = std::clamp<int64_t>(sizes.IntAt(row * groups + g), 0, limit - start);
      Boxes boxes{Box(op.lhs_dims), Box(op.rhs_dims), Box(op.result_dims)};
      const Box &left = boxes.lhs, &right = boxes.rhs, &out = boxes.out;
      for (size_t i = 0; i < op.prefix.size(); ++i)
        FixEverywhere(op, op.prefix[i], at[i], 1, boxes);
      FixEverywhere(op, op.ragged, start, size, boxes);
      start += size;
      if (size == 0) continue;
      std::vector<T> a = ReadStrided(left.sizes, lhs.data(), left.In(op.lhs_dims));
      const T* block = blocks.data() + (op.group >= 0 ? g * block_size : 0);
      std::vector<T> b = ReadStrided(right.sizes, block, right.In(op.rhs_dims));
      std::vector<T> part = DotElements<T>(a, left.sizes, b, right.sizes, op.dot);
      T* target = sums.data() + (op.group >= 0 ? 0 : g * result_size);
      ForEachRow<2>(out.sizes, {StridedView{0, StridesOf(out.sizes)}, out.In(op.result_dims)},
                    [&](const std::array<int64_t, 2>& from, int64_t count,
                        const std::array<int64_t, 2>& step) {
                      for (int64_t i = 0; i < count; ++i) {
                        MulAdd(target[from[1] + i * step[1]],
                               part[static_cast<size_t>(from[0] + i * step[0])], T{1});
                      }
                    });
    }
    ++row;
  } while (NextIndex(at, prefix_dims));
  return sums;
}

}  // namespace

Result<Value> EvalRaggedDot(const Instr& instr, std::span<const Value> operands, Context& context) {
  const DotAttrs& attrs = instr.attrs<DotAttrs>();
  bool is_batch = attrs.lhs_ragged.empty() || IndexOf(attrs.lhs_batch, attrs.lhs_ragged[0]) >= 0;
  return DispatchStorage(instr.shape().type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> lhs = ElementsAs<T>(operands[0]), rhs = ElementsAs<T>(operands[1]);
    if (is_batch) {
      Dims dims = DotResultDims(operands[0].dims(), operands[1].dims(), attrs);
      TOK_RETURN_IF_ERROR(CheckFits(instr, instr.shape().type(), dims));
      std::vector<T> sums = DotElements<T>(lhs, operands[0].dims(), rhs, operands[1].dims(), attrs);
      return RoundedArray(instr, std::move(dims), std::move(sums), context);
    }
    RaggedDot op = Describe(instr, operands[0], operands[1], operands[2]);
    Dims dims = op.result_dims;
    if (op.group < 0) dims.insert(dims.begin(), operands[2].dims().back());
    TOK_RETURN_IF_ERROR(CheckFits(instr, instr.shape().type(), dims));
    std::vector<T> sums = RaggedElements<T>(op, lhs, rhs, operands[2]);
    return RoundedArray(instr, std::move(dims), std::move(sums), context);
  });
}

}  // namespace tokamak
