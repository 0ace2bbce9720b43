// sort, topk. Uses its own merge sort: an inconsistent comparator gives some permutation but never
// undefined behaviour, and equal elements keep their order. If the program does not request
// stability (is_stable), elements are first permuted as GNU libstdc++'s quicksort leaves them: any
// order is valid, and this one equals XLA CPU's.

#include <algorithm>
#include <bit>

#include "interp/body_call.h"
#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/scalar_ops.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

// Sorts `order` by less(a, b), which may return an error.
template <typename Less>
Status MergeSort(std::vector<int64_t>& order, Less&& less) {
  std::vector<int64_t> merged(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t start = 0; start < order.size(); start += 2 * width) {
      size_t middle = std::min(start + width, order.size());
      size_t end = std::min(start + 2 * width, order.size());
      size_t left = start, right = middle;
      for (size_t out = start; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          TOK_TRY(take_right, less(order[right], order[left]));
        }
        merged[out] = take_right ? order[right++] : order[left++];
      }
    }
    order.swap(merged);
  }
  return Ok();
}

// Partitions `order` around medians of three until at most 16 elements remain in a partition, or
// the medians are poor; a merge sort of the result then gives std::sort's result.
template <typename Less>
class Quicksort {
 public:
  Quicksort(std::vector<int64_t>& order, Less& less) : order_(order), less_(less) {}

  Status Partition() {
    const auto n = static_cast<int64_t>(order_.size());
    // Twice the logarithm: beyond that depth, merging is faster.
    const auto depth = static_cast<int64_t>(2 * std::bit_width(order_.size()) - 2);
    std::vector<Part> left = {{0, n, depth}};
    while (!left.empty()) {
      Part part = left.back();
      left.pop_back();
      if (part.end - part.begin <= 16 || part.depth <= 0) continue;
      TOK_RETURN_IF_ERROR(MedianToFront(part.begin, part.end));
      TOK_TRY(int64_t cut, Cut(part.begin, part.end));
      left.push_back({part.begin, cut, part.depth - 1});
      left.push_back({cut, part.end, part.depth - 1});
    }
    return Ok();
  }

 private:
  struct Part {
    int64_t begin, end, depth;
  };

  int64_t& At(int64_t i) { return order_[static_cast<size_t>(i)]; }

  // The median of the second, the middle and the last element.
  Status MedianToFront(int64_t begin, int64_t end) {
    int64_t a = begin + 1, b = begin + (end - begin) / 2, c = end - 1;
    TOK_TRY(bool in_order, less_(At(a), At(b)));
    if (!in_order) std::swap(a, b);  // a is before b, or they are equal
    TOK_TRY(bool b_first, less_(At(b), At(c)));
    int64_t median = b;
    if (!b_first) {
      TOK_TRY(bool a_first, less_(At(a), At(c)));
      median = a_first ? c : a;
    }
    std::swap(At(begin), At(median));
    return Ok();
  }

  // Returns the partition point. The ends are checked: an inconsistent comparator could run past
  // them.
  Result<int64_t> Cut(int64_t begin, int64_t end) {
    const int64_t pivot = At(begin);
    int64_t low = begin + 1, high = end;
    while (true) {
      for (; low < end; ++low) {
        TOK_TRY(bool before, less_(At(low), pivot));
        if (!before) break;
      }
      for (--high; high > begin; --high) {
        TOK_TRY(bool after, less_(pivot, At(high)));
        if (!after) break;
      }
      if (low >= high) return std::clamp(low, begin + 1, end - 1);
      std::swap(At(low++), At(high));
    }
  }

  std::vector<int64_t>& order_;
  Less& less_;
};

template <typename Less>
Status SortOrder(std::vector<int64_t>& order, bool stable, Less&& less) {
  if (!stable) TOK_RETURN_IF_ERROR(Quicksort(order, less).Partition());
  return MergeSort(order, less);
}

// compare(p2i, p2i+1) in one direction, and the operand that it compares.
struct PlainComparator {
  size_t operand;
  CompareDirection direction;
  bool total_order;
};

std::optional<PlainComparator> PlainComparatorOf(const Computation& body) {
  const Instr* root = body.root();
  if (root->op() != Op::kCompare || root->operand(0)->op() != Op::kParameter ||
      root->operand(1)->op() != Op::kParameter || root->operand(0)->shape().quant() != nullptr)
    return std::nullopt;
  int64_t a = root->operand(0)->attrs<ParameterAttrs>().number;
  int64_t b = root->operand(1)->attrs<ParameterAttrs>().number;
  if (a % 2 != 0 || b != a + 1) return std::nullopt;
  const CompareAttrs& attrs = root->attrs<CompareAttrs>();
  if (attrs.type == CompareType::kSigned || attrs.type == CompareType::kUnsigned)
    return std::nullopt;
  return PlainComparator{static_cast<size_t>(a / 2), attrs.direction,
                         attrs.type == CompareType::kTotalOrder};
}

// The order of one line: element i of the sorted line is element order[i].
class LineSorter {
 public:
  LineSorter(const Instr& instr, std::span<const Value> operands, Context& context)
      : inputs_(operands.subspan(0, operands.size() - instr.captures())),
        stable_(instr.attrs<SortAttrs>().is_stable),
        plain_(PlainComparatorOf(*instr.called(0))),
        call_(*instr.called(0), operands.subspan(inputs_.size()), context) {
    if (plain_ && plain_->operand < inputs_.size()) return;
    plain_.reset();
    for (const Value& input : inputs_) scalars_.push_back(ScalarsOf(input, input.type()));
    arguments_.resize(2 * inputs_.size());
  }

  Status Sort(std::vector<int64_t>& order, int64_t base, int64_t stride) {
    if (plain_) return SortPlainly(order, base, stride);
    return SortOrder(order, stable_, [&](int64_t a, int64_t b) -> Result<bool> {
      for (size_t k = 0; k < scalars_.size(); ++k) {
        arguments_[2 * k] = scalars_[k][static_cast<size_t>(base + a * stride)];
        arguments_[2 * k + 1] = scalars_[k][static_cast<size_t>(base + b * stride)];
      }
      ScalarSlot less;
      TOK_RETURN_IF_ERROR(call_.Apply(arguments_, std::span(&less, 1)));
      return less.Get<uint8_t>() != 0;
    });
  }

 private:
  Status SortPlainly(std::vector<int64_t>& order, int64_t base, int64_t stride) {
    const Value& keys = inputs_[plain_->operand];
    return DispatchStorage(keys.type(), [&]<typename T>() {
      const T* data = keys.Data<T>().data() + base;
      return SortOrder(order, stable_, [&](int64_t a, int64_t b) -> Result<bool> {
        T x = data[a * stride], y = data[b * stride];
        if constexpr (std::is_same_v<T, double>) {
          if (plain_->total_order)
            return InOrder(plain_->direction, TotalOrderKey(x), TotalOrderKey(y));
        }
        return InOrder(plain_->direction, x, y);
      });
    });
  }

  std::span<const Value> inputs_;
  bool stable_;
  std::optional<PlainComparator> plain_;
  BodyCall call_;
  std::vector<std::vector<ScalarSlot>> scalars_;
  std::vector<ScalarSlot> arguments_;
};

}  // namespace

Result<Value> EvalSort(const Instr& instr, std::span<const Value> operands, Context& context) {
  const size_t n = operands.size() - instr.captures();
  const Dims& dims = operands[0].dims();
  const int64_t rank = operands[0].shape().rank();
  int64_t along = instr.attrs<SortAttrs>().dimension;
  if (along < 0) along += rank;
  const int64_t length = rank == 0 ? 1 : dims[static_cast<size_t>(along)];
  const int64_t stride = rank == 0 ? 1 : StridesOf(dims)[static_cast<size_t>(along)];
  const int64_t count = operands[0].ElementCount(), lines = length == 0 ? 0 : count / length;
  LineSorter sorter(instr, operands, context);
  // For every element of the result, the index of its source element in the operands.
  std::vector<int64_t> source(static_cast<size_t>(count)), order(static_cast<size_t>(length));
  for (int64_t line = 0; line < lines; ++line) {
    int64_t base = line / stride * stride * length + line % stride;
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    TOK_RETURN_IF_ERROR(sorter.Sort(order, base, stride));
    for (int64_t i = 0; i < length; ++i)
      source[static_cast<size_t>(base + i * stride)] =
          base + order[static_cast<size_t>(i)] * stride;
  }
  std::vector<Value> results;
  for (size_t k = 0; k < n; ++k) {
    const Shape& shape = instr.shape().IsTuple() ? instr.shape().elements()[k] : instr.shape();
    results.push_back(DispatchStorage(operands[k].type(), [&]<typename T>() {
      std::span<const T> from = operands[k].Data<T>();
      std::vector<T> sorted(from.size());
      for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = from[static_cast<size_t>(source[i])];
      return Value::Array(ResultShape(shape, dims), std::move(sorted));
    }));
  }
  return instr.shape().IsTuple() ? Value::Tuple(std::move(results)) : std::move(results[0]);
}

// Reals are ordered totally (NaN is the largest), ties by index.
Result<Value> EvalTopK(const Instr& instr, std::span<const Value> operands, Context&) {
  const TopKAttrs& attrs = instr.attrs<TopKAttrs>();
  const Value& operand = operands[0];
  Dims dims = operand.dims();
  const int64_t length = dims.back(), k = std::min(attrs.k, length);
  const int64_t lines = length == 0 ? 0 : operand.ElementCount() / length;
  dims.back() = k;
  const Shape& values_shape = instr.shape().elements()[0];
  const Shape& index_shape = instr.shape().elements()[1];
  return DispatchStorage(operand.type(), [&]<typename T>() -> Result<Value> {
    if constexpr (std::is_same_v<T, Complex>) {
      return Unsupported(instr, "complex numbers have no order");
    } else {
      std::vector<T> values;
      std::vector<int64_t> indices, order(static_cast<size_t>(length));
      for (int64_t line = 0; line < lines; ++line) {
        const T* data = operand.Data<T>().data() + line * length;
        for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
        TOK_RETURN_IF_ERROR(MergeSort(order, [&](int64_t a, int64_t b) -> Result<bool> {
          if constexpr (std::is_same_v<T, double>) {
            int64_t x = TotalOrderKey(data[a]), y = TotalOrderKey(data[b]);
            return attrs.largest ? x > y : x < y;
          } else {
            return attrs.largest ? data[a] > data[b] : data[a] < data[b];
          }
        }));
        for (int64_t i = 0; i < k; ++i) {
          values.push_back(data[order[static_cast<size_t>(i)]]);
          indices.push_back(order[static_cast<size_t>(i)]);
        }
      }
      Value index = Value::Array(Shape::Array(ElementType::kS64, dims), std::move(indices));
      std::vector<ScalarSlot> scalars = ScalarsOf(index, index_shape.type());
      return Value::Tuple({Value::Array(ResultShape(values_shape, dims), std::move(values)),
                           ArrayOf(ResultShape(index_shape, dims), scalars)});
    }
  });
}

}  // namespace tokamak
