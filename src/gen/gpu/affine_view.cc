#include "gen/gpu/affine_view.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "gen/dot_dimensions.h"
#include "gen/gpu/operand_view.h"

namespace tokamak::gpu {
namespace {

// Instructions between an operand and the array at most. Chosen: more than passes and programs
// leave.
constexpr int kMaxAffineSteps = 16;
// Elements of a constant that is examined at most. Chosen: index arrays of convolutions of large
// images have fewer.
constexpr int64_t kMaxIndexElements = 1 << 20;

// start + sum(factors[d] * coordinate d).
struct AffineValue {
  int64_t start = 0;
  Dims factors;
};

std::optional<AffineValue> IndexValueOf(const Instr& instr, int depth);

bool IsConstant(const AffineValue& value) {
  return std::ranges::all_of(value.factors, [](int64_t factor) { return factor == 0; });
}

AffineValue Scaled(AffineValue value, int64_t factor) {
  value.start *= factor;
  for (int64_t& f : value.factors) f *= factor;
  return value;
}

// A constant whose elements are affine in their coordinates.
std::optional<AffineValue> ConstantValue(const Instr& constant) {
  const Literal& literal = constant.attrs<ConstantAttrs>().literal;
  const Dims& dims = constant.shape().dims();
  int64_t count = constant.shape().ElementCount();
  if (!IsInteger(constant.shape().type()) || count == 0 || count > kMaxIndexElements)
    return std::nullopt;
  AffineValue value{literal.IntAt(0), Dims(dims.size(), 0)};
  Dims strides = RowMajorStrides(dims);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] > 1) value.factors[d] = literal.IntAt(strides[d]) - value.start;
  for (int64_t i = 0; i < count; ++i) {
    int64_t expected = value.start;
    for (size_t d = 0; d < dims.size(); ++d)
      expected += i / strides[d] % dims[d] * value.factors[d];
    if (literal.IntAt(i) != expected) return std::nullopt;
  }
  return value;
}

std::optional<AffineValue> BroadcastValue(const Instr& broadcast, int depth) {
  std::optional<AffineValue> from = IndexValueOf(*broadcast.operand(0), depth);
  if (!from) return std::nullopt;
  AffineValue value{from->start, Dims(broadcast.shape().dims().size(), 0)};
  const Dims& dimensions = broadcast.attrs<DimensionsAttrs>().dimensions;
  for (size_t d = 0; d < dimensions.size(); ++d)
    value.factors[static_cast<size_t>(dimensions[d])] = from->factors[d];
  return value;
}

// The value of index arithmetic as an affine function of the coordinates of its array.
std::optional<AffineValue> IndexValueOf(const Instr& instr, int depth) {
  if (depth > kMaxAffineSteps || !IsPlainArray(instr.shape())) return std::nullopt;
  Dims none(instr.shape().dims().size(), 0);
  switch (instr.op()) {
    case Op::kConstant:
      return ConstantValue(instr);
    case Op::kIota:
      none[static_cast<size_t>(instr.attrs<IotaAttrs>().dimension)] = 1;
      return AffineValue{0, std::move(none)};
    case Op::kBroadcast:
      return BroadcastValue(instr, depth + 1);
    case Op::kAdd:
    case Op::kMultiply:
      break;
    default:
      return std::nullopt;
  }
  std::optional<AffineValue> left = IndexValueOf(*instr.operand(0), depth + 1),
                             right = IndexValueOf(*instr.operand(1), depth + 1);
  if (!left || !right) return std::nullopt;
  if (instr.op() == Op::kMultiply) {
    if (IsConstant(*left)) std::swap(left, right);
    if (!IsConstant(*right)) return std::nullopt;
    return Scaled(std::move(*left), right->start);
  }
  left->start += right->start;
  for (size_t d = 0; d < left->factors.size(); ++d) left->factors[d] += right->factors[d];
  return left;
}

// Component `number` of the index vectors, a function of the coordinates of `indices`.
std::optional<AffineValue> ComponentOf(const Instr& indices, int64_t number, size_t vector_dim) {
  if (indices.op() == Op::kConcatenate &&
      indices.attrs<DimensionAttrs>().dimension == static_cast<int64_t>(vector_dim)) {
    for (const Instr* part : indices.operands()) {
      int64_t size = part->shape().dim(vector_dim);
      if (number < size) return ComponentOf(*part, number, vector_dim);
      number -= size;
    }
    return std::nullopt;
  }
  std::optional<AffineValue> value = IndexValueOf(indices, 0);
  if (!value || vector_dim >= value->factors.size()) return value;
  value->start += number * value->factors[vector_dim];
  value->factors[vector_dim] = 0;
  return value;
}

// Walks from an operand to the array, with the coordinates in the current instruction as affine
// functions of the operand's coordinates.
class AffineWalk {
 public:
  AffineWalk(const Instr& operand, std::function<OperandView(const Instr&)> view_of)
      : operand_(operand), view_of_(std::move(view_of)) {}

  AffineView Run() {
    size_t rank = operand_.shape().dims().size();
    for (size_t d = 0; d < rank; ++d) {
      at_.push_back({0, Dims(rank, 0)});
      at_[d].factors[d] = 1;
      outside_.push_back(false);
    }
    const Instr* instr = &operand_;
    for (int step = 0; step < kMaxAffineSteps; ++step) {
      if (!IsPlainArray(instr->shape())) return {};
      // Elements before the start of a view are not zeros.
      if (OperandView view = view_of_(*instr); view.array != nullptr && view.start == 0)
        return Finished(*instr, view);
      if (!StepInto(*instr)) return {};
      instr = instr->operand(0);
    }
    return {};
  }

 private:
  AffineView Finished(const Instr& instr, const OperandView& from) const {
    AffineView view{.array = from.array, .dimensions = {}};
    const Dims& dims = instr.shape().dims();
    const Dims& operand_dims = operand_.shape().dims();
    for (size_t d = 0; d < dims.size(); ++d) {
      AffineView::Dimension dimension{dims[d], from.strides[d], at_[d].start, {}};
      for (size_t i = 0; i < operand_dims.size(); ++i)
        if (at_[d].factors[i] != 0 && operand_dims[i] > 1)
          dimension.terms.push_back({i, at_[d].factors[i]});
      view.dimensions.push_back(std::move(dimension));
    }
    return view;
  }

  bool StepInto(const Instr& instr) {
    switch (instr.op()) {
      case Op::kTranspose:
        return StepIntoTranspose(instr);
      case Op::kReshape:
        return StepIntoReshape(instr);
      case Op::kReverse:
        for (int64_t d : instr.attrs<DimensionsAttrs>().dimensions) {
          AffineValue& value = at_[static_cast<size_t>(d)];
          value = Scaled(std::move(value), -1);
          value.start += instr.shape().dim(static_cast<size_t>(d)) - 1;
        }
        return true;
      case Op::kSlice:
        return StepIntoSlice(instr);
      case Op::kPad:
        return StepIntoPad(instr);
      case Op::kGather:
        return StepIntoGather(instr);
      default:
        return false;
    }
  }

  bool StepIntoTranspose(const Instr& instr) {
    std::vector<AffineValue> at(at_.size());
    std::vector<bool> outside(at_.size());
    const Dims& order = instr.attrs<DimensionsAttrs>().dimensions;
    for (size_t d = 0; d < order.size(); ++d) {
      at[static_cast<size_t>(order[d])] = std::move(at_[d]);
      outside[static_cast<size_t>(order[d])] = outside_[d];
    }
    at_ = std::move(at);
    outside_ = std::move(outside);
    return true;
  }

  // Dimensions that stay, that are split by the reshape, or that have one element.
  bool StepIntoReshape(const Instr& instr) {
    const Dims &to = instr.shape().dims(), &from = instr.operand(0)->shape().dims();
    std::vector<AffineValue> at;
    std::vector<bool> outside;
    size_t next = 0;
    for (int64_t size : from) {
      AffineValue value{0, Dims(operand_.shape().dims().size(), 0)};
      bool is_outside = false;
      int64_t covered = 1;
      while (covered < size) {
        if (next == to.size() || size % (covered * to[next]) != 0) return false;
        if (to[next] > 1) {
          // Of several dimensions that are joined, none may be out of bounds.
          if (outside_[next] && to[next] != size) return false;
          value = Scaled(std::move(value), to[next]);
          AddTo(value, at_[next]);
          is_outside = outside_[next];
          covered *= to[next];
        } else if (outside_[next]) {
          return false;
        }
        ++next;
      }
      at.push_back(std::move(value));
      outside.push_back(is_outside);
    }
    for (; next < to.size(); ++next)
      if (to[next] > 1 || outside_[next]) return false;
    at_ = std::move(at);
    outside_ = std::move(outside);
    return true;
  }

  static void AddTo(AffineValue& sum, const AffineValue& value) {
    sum.start += value.start;
    for (size_t i = 0; i < sum.factors.size(); ++i) sum.factors[i] += value.factors[i];
  }

  bool StepIntoSlice(const Instr& instr) {
    const SliceAttrs& slice = instr.attrs<SliceAttrs>();
    for (size_t d = 0; d < at_.size(); ++d) {
      bool is_whole = instr.shape().dim(d) == instr.operand(0)->shape().dim(d);
      if (outside_[d] && !is_whole) return false;
      at_[d] = Scaled(std::move(at_[d]), slice.strides[d]);
      at_[d].start += slice.starts[d];
    }
    return true;
  }

  bool StepIntoPad(const Instr& instr) {
    const PadAttrs& pad = instr.attrs<PadAttrs>();
    const Instr& value = *instr.operand(1);
    if (value.op() != Op::kConstant || value.attrs<ConstantAttrs>().literal.BitsAt(0) != 0)
      return false;
    for (size_t d = 0; d < at_.size(); ++d) {
      if (d < pad.interior.size() && pad.interior[d] != 0) return false;
      bool cuts = pad.low[d] < 0 || pad.high[d] < 0;
      if (cuts && outside_[d]) return false;
      at_[d].start -= pad.low[d];
      outside_[d] = outside_[d] || pad.low[d] > 0 || pad.high[d] > 0;
    }
    return true;
  }

  // A gather whose indices are affine, and within bounds, where they are not clamped.
  bool StepIntoGather(const Instr& instr) {
    const GatherAttrs& gather = instr.attrs<GatherAttrs>();
    if (!gather.operand_batching_dims.empty()) return false;
    for (bool outside : outside_)
      if (outside) return false;
    auto vector_dim = static_cast<size_t>(gather.index_vector_dim);
    const Instr &from = *instr.operand(0), &indices = *instr.operand(1);
    std::vector<size_t> offsets, batch;
    for (size_t d = 0; d < at_.size(); ++d) {
      bool is_offset = std::ranges::count(gather.offset_dims, static_cast<int64_t>(d)) != 0;
      (is_offset ? offsets : batch).push_back(d);
    }
    std::vector<AffineValue> at;
    size_t next = 0;
    for (size_t d = 0; d < from.shape().dims().size(); ++d) {
      AffineValue value{0, Dims(operand_.shape().dims().size(), 0)};
      bool is_collapsed =
          std::ranges::count(gather.collapsed_slice_dims, static_cast<int64_t>(d)) != 0;
      if (!is_collapsed) AddTo(value, at_[offsets[next++]]);
      auto component = std::ranges::find(gather.start_index_map, static_cast<int64_t>(d));
      if (component != gather.start_index_map.end()) {
        std::optional<AffineValue> start =
            ComponentOf(indices, component - gather.start_index_map.begin(), vector_dim);
        if (!start || !IsWithin(*start, indices, from.shape().dim(d) - gather.slice_sizes[d]))
          return false;
        value.start += start->start;
        for (size_t i = 0, b = 0; i < start->factors.size(); ++i)
          if (i != vector_dim) AddTo(value, Scaled(at_[batch[b++]], start->factors[i]));
      }
      at.push_back(std::move(value));
    }
    at_ = std::move(at);
    outside_.assign(at_.size(), false);
    return true;
  }

  static bool IsWithin(const AffineValue& start, const Instr& indices, int64_t last) {
    int64_t least = start.start, most = start.start;
    for (size_t d = 0; d < start.factors.size(); ++d) {
      int64_t reach = start.factors[d] * (indices.shape().dim(d) - 1);
      (reach < 0 ? least : most) += reach;
    }
    return least >= 0 && most <= last;
  }

  const Instr& operand_;
  std::function<OperandView(const Instr&)> view_of_;
  std::vector<AffineValue> at_;  // of each dimension of the current instruction
  // Whether a coordinate may be outside of the current instruction, where the operand is zero.
  std::vector<bool> outside_;
};

}  // namespace

bool AffineView::HasLines() const {
  return std::ranges::any_of(dimensions, [](const Dimension& dimension) {
    return dimension.size > 1 && dimension.stride == 1 && dimension.terms.size() == 1 &&
           dimension.terms[0].factor == 1;
  });
}

AffineView AffineViewOf(const FusedRegion& region, const Instr& operand) {
  return AffineWalk(operand, [&](const Instr& instr) { return OperandViewOf(region, instr); })
      .Run();
}

AffineView AffineViewOf(const Instr& operand) {
  return AffineWalk(operand,
                    [](const Instr& instr) {
                      OperandView view = OperandViewOf(instr);
                      bool moves =
                          view.array != nullptr &&
                          (view.array->op() == Op::kGather || view.array->op() == Op::kPad ||
                           view.array->op() == Op::kReverse || view.array->op() == Op::kSlice);
                      return moves ? OperandView{} : view;
                    })
      .Run();
}

bool IsWindowed(const Instr& operand) {
  AffineView view = AffineViewOf(operand);
  return view.array != nullptr && view.array != OperandViewOf(operand).array;
}

}  // namespace tokamak::gpu
