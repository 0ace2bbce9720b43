// A select-and-scatter becomes a window over pairs (value, number), which selects an element once
// per window, and what gives the sources to the selected elements:
//
//   in gather form   each element compares its number with those that the windows around it select
//   as a scatter     with large windows
//
// The code of a select-and-scatter itself is in gather form, too, but each element selects in all
// windows around it: 36 taps for 3 x 3 windows with strides of 2, instead of 9 per window.

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "gen/reducer.h"
#include "gen/region.h"
#include "gen/select_scatter.h"
#include "passes/target/expand_ops.h"
#include "rewrite/editor.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

// Copies the instructions of a computation into another one; returns the root.
Instr* Copied(const Computation& from, Computation& to, std::vector<Instr*> arguments) {
  std::unordered_map<const Instr*, Instr*> made;
  for (const Instr* instr : from.PostOrder()) {
    if (instr->op() == Op::kParameter) {
      made[instr] = arguments[static_cast<size_t>(instr->attrs<ParameterAttrs>().number)];
      continue;
    }
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(made[operand]);
    Instr* copy = to.Append(instr->op(), instr->shape(), std::move(operands), instr->attrs());
    copy->set_called({instr->called().begin(), instr->called().end()});
    made[instr] = copy;
  }
  return made[from.root()];
}

// Reduces two (value, index) pairs to the one that the window selects; an index below 0 means none.
Computation* PickBody(const Instr& instr) {
  Computation* body = instr.parent()->module()->AddComputation(instr.name() + "_pick");
  body->is_public = false;
  Shape value = Shape::Scalar(instr.operand(0)->shape().type()),
        index = Shape::Scalar(ElementType::kS32), pred = Shape::Scalar(ElementType::kPred);
  int64_t parameters = 0;
  auto parameter = [&](const Shape& shape) { return body->AppendParameter(parameters++, shape); };
  Instr *x = parameter(value), *i = parameter(index);
  Instr *y = parameter(value), *k = parameter(index);
  Instr* zero = body->Append(Op::kConstant, index, {},
                             ConstantAttrs{Literal::ScalarInt(ElementType::kS32, 0)});
  Instr* any = body->Append(Op::kCompare, pred, {i, zero},
                            CompareAttrs{CompareDirection::kGe, CompareType::kNone});
  Instr* better = Copied(*instr.called(0), *body, {x, y});
  Instr* keeps = body->Append(Op::kAnd, pred, {any, better});
  Instr* best = body->Append(Op::kSelect, value, {keeps, x, y});
  Instr* position = body->Append(Op::kSelect, index, {keeps, i, k});
  body->set_root(body->Append(Op::kTuple, Shape::Tuple({value, index}), {best, position}));
  return body;
}

// Whether a window over pairs can select the elements.
bool CanSelectPairs(const Instr& instr) {
  if (instr.op() != Op::kSelectAndScatter || instr.captures() > 0) return false;
  for (const Instr* operand : instr.operands())
    if (!IsPlainArray(operand->shape()) || operand->shape().ElementCount() == 0) return false;
  const Window& window = instr.attrs<WindowAttrs>().window;
  for (const WindowDim& dim : window)
    if (dim.base_dilation != 1 || dim.reversed) return false;
  // The window may have more positions than there are source elements.
  const Dims &dims = instr.operand(0)->shape().dims(),
             &positions = instr.operand(1)->shape().dims();
  for (size_t d = 0; d < dims.size(); ++d)
    if (WindowResults(window[d], dims[d]) != positions[d]) return false;
  return instr.operand(0)->shape().ElementCount() <= INT32_MAX;
}

// The number, among `numbers` of the elements, that each window selects; -1: of none.
Instr* SelectedNumbers(Editor& make, const Instr& instr, Instr* numbers) {
  Instr* x = instr.operand(0);
  const Dims& positions = instr.operand(1)->shape().dims();
  ElementType type = x->shape().type(), index = ElementType::kS32;
  Instr* none = make.Constant(Literal::ScalarInt(index, -1));
  Instr* any = make.Constant(Literal::Scalar(type, 0));
  Instr* both =
      make.Make(Op::kReduceWindow,
                Shape::Tuple({Shape::Array(type, positions), Shape::Array(index, positions)}),
                {x, numbers, any, none}, instr.attrs<WindowAttrs>());
  both->set_called({PickBody(instr)});
  return make.Make(Op::kGetTupleElement, Shape::Array(index, positions), {both},
                   TupleIndexAttrs{1});
}

// The windows around an element, as boxes of whole strides: along a dimension, window w may contain
// the elements from w * stride - pad_low on, `windows` * stride of them. Elements of a box differ
// in their coordinates modulo the size of the box, so that a number below the product of these
// sizes tells which of them the window selects.
class WindowsAroundElements {
 public:
  explicit WindowsAroundElements(Instr& instr)
      : instr_(instr),
        window_(instr.attrs<WindowAttrs>().window),
        dims_(instr.operand(0)->shape().dims()),
        make_(instr) {
    for (const WindowDim& dim : window_) windows_.push_back(CeilDiv(dim.size, dim.stride));
  }

  int64_t Count() const {
    int64_t count = 1;
    for (int64_t windows : windows_) count *= windows;
    return count;
  }

  // Replaces the instruction, whose sources are combined by `op`.
  void Expand(Op op) {
    // Elements of a box whose numbers fit a byte (definition of the type).
    constexpr int64_t kMaxByte = INT8_MAX + 1;
    Instr* numbers = Numbers();
    Instr* selected = SelectedNumbers(make_, instr_, numbers);
    if (boxes_ <= kMaxByte) {
      numbers = make_.Converted(numbers, ElementType::kS8);
      selected = make_.Converted(selected, ElementType::kS8);
    }
    selected = Repeated(selected);
    Instr *source = Repeated(instr_.operand(1)), *init = instr_.operand(2);
    Instr* none = make_.Constant(Literal::ScalarInt(numbers->shape().type(), -1));
    const Shape shape = Shape::Array(instr_.shape().type(), dims_);
    Instr* sum = make_.Broadcast(init, shape);
    // The windows in their order, row-major: the last one before an element is the last.
    for (int64_t i = Count(); i-- > 0;) {
      Instr* hits = make_.Make(Op::kCompare, Shape::Array(ElementType::kPred, dims_),
                               {Shifted(selected, none, i), numbers},
                               CompareAttrs{CompareDirection::kEq, CompareType::kNone});
      Instr* next = make_.Make(op, shape, {sum, Shifted(source, init, i)});
      sum = make_.Make(Op::kSelect, shape, {hits, next, sum});
    }
    make_.Replace(sum);
  }

 private:
  // Of the elements: their coordinates in a box as one number.
  Instr* Numbers() {
    ElementType index = ElementType::kS32;
    const Shape all = Shape::Array(index, dims_);
    Instr* sum = nullptr;
    for (size_t d = dims_.size(); d-- > 0;) {
      int64_t box = windows_[d] * window_[d].stride;
      if (box == 1) continue;
      const Shape line = Shape::Array(index, {dims_[d]});
      auto number = [&](int64_t value) {
        return make_.Broadcast(make_.Constant(Literal::ScalarInt(index, value)), line);
      };
      int64_t first = (window_[d].pad_low % box + box) % box;
      Instr* along = make_.Make(Op::kIota, line, {}, IotaAttrs{0});
      along = make_.Make(Op::kAdd, line, {along, number(first)});
      along = make_.Make(Op::kRemainder, line, {along, number(box)});
      along = make_.Make(Op::kMultiply, line, {along, number(boxes_)});
      boxes_ *= box;
      along = make_.Make(Op::kBroadcast, all, {along}, DimensionsAttrs{{static_cast<int64_t>(d)}});
      sum = sum == nullptr ? along : make_.Make(Op::kAdd, all, {sum, along});
    }
    return sum;
  }

  // An array with an element per window, with each of them as often as the window's strides.
  Instr* Repeated(Instr* x) {
    Dims kept, sizes, dims;
    for (size_t d = 0; d < dims_.size(); ++d) {
      int64_t size = x->shape().dim(d), stride = window_[d].stride;
      kept.push_back(static_cast<int64_t>(sizes.size()));
      sizes.push_back(size);
      if (stride > 1) sizes.push_back(stride);
      dims.push_back(size * stride);
    }
    if (sizes.size() == dims.size()) return x;
    Instr* repeated = make_.Make(Op::kBroadcast, Shape::Array(x->shape().type(), sizes), {x},
                                 DimensionsAttrs{std::move(kept)});
    return make_.Reshaped(repeated, dims);
  }

  // For each element, that of the i-th window around it, counted back from the last one.
  Instr* Shifted(Instr* repeated, Instr* outside, int64_t i) {
    PadAttrs pad;
    pad.interior.resize(dims_.size());
    pad.low = pad.high = pad.interior;
    for (size_t d = dims_.size(); d-- > 0;) {
      pad.low[d] = i % windows_[d] * window_[d].stride - window_[d].pad_low;
      pad.high[d] = dims_[d] - pad.low[d] - repeated->shape().dim(d);
      i /= windows_[d];
    }
    return make_.Make(Op::kPad, Shape::Array(repeated->shape().type(), dims_), {repeated, outside},
                      std::move(pad));
  }

  Instr& instr_;
  const Window window_;
  const Dims dims_;
  Dims windows_;  // along each dimension, those that may contain an element
  Editor make_;
  int64_t boxes_ = 1;  // elements of a box
};

}  // namespace

bool SelectOncePerWindow(Instr& instr) {
  // Windows around an element. Chosen: as many comparisons take about as long as a window of as
  // many taps.
  constexpr int64_t kMaxWindows = 16;
  if (!CanSelectPairs(instr) || WhyNoSelectAndScatterCode(instr)) return false;
  std::optional<Op> op = CommutativeOpOf(*instr.called(1));
  WindowsAroundElements around(instr);
  // With a single window around each element, no element is compared more than `size` times.
  if (!op || around.Count() == 1 || around.Count() > kMaxWindows) return false;
  around.Expand(*op);
  return true;
}

bool ExpandSelectAndScatter(Instr& instr) {
  if (!CanSelectPairs(instr) || !WhyNoSelectAndScatterCode(instr)) return false;
  Instr *x = instr.operand(0), *source = instr.operand(1), *init = instr.operand(2);
  int64_t count = x->shape().ElementCount(), windows = source->shape().ElementCount();
  Editor make(instr);
  const Dims& dims = x->shape().dims();
  ElementType type = x->shape().type(), index = ElementType::kS32;
  Instr* flat = make.Make(Op::kIota, Shape::Array(index, {count}), {}, IotaAttrs{0});
  Instr* numbers = make.Make(Op::kReshape, Shape::Array(index, dims), {flat});
  Instr* picked = SelectedNumbers(make, instr, numbers);
  Instr* starts = make.Make(Op::kReshape, Shape::Array(index, {windows, 1}), {picked});
  Instr* updates = make.Make(Op::kReshape, Shape::Array(type, {windows}), {source});
  ScatterAttrs scatter;
  scatter.inserted_window_dims = {0};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  Shape line = Shape::Array(type, {count});
  Instr* sums = make.Make(Op::kScatter, line, {make.Broadcast(init, line), starts, updates},
                          std::move(scatter));
  sums->set_called({instr.called(1)});
  make.Replace(make.Make(Op::kReshape, Shape::Array(type, dims), {sums}));
  return true;
}

}  // namespace tokamak
