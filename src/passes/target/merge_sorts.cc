// Sorts of lines that do not fit in the shared memory of one thread block, as merge sorts. Each
// pass is an ordinary stable sort op on a reshaped array, whose generator merges because the halves
// of its lines are sorted:
//
//   [n]  ->  sort [4, n/4]  ->  sort [2, n/2]  ->  sort [1, n]       log2(segments) + 1 passes
//
// The number of segments is a power of two, so lines are padded if needed. Padding cannot use an
// extreme key, because the comparator is arbitrary; instead a leading pred operand marks padding
// and is compared first.

#include "passes/target/merge_sorts.h"

#include <unordered_map>

#include "gen/gpu/gpu.h"
#include "gen/line_sort.h"
#include "gen/region.h"
#include "gen/sort_keys.h"
#include "ir/builder.h"
#include "rewrite/editor.h"
#include "support/ceil_div.h"

namespace tokamak {
namespace {

Shape PlainSorted(const Shape& shape) {
  return Shape::Array(shape.type(), shape.dims());
}

// Creates sorts that replace another one.
class MergeSortEditor {
 public:
  explicit MergeSortEditor(Instr& of) : of_(of), make_(of) {}

  Instr* Make(Op op, const Shape& shape, std::vector<Instr*> operands, Attrs attrs = {}) {
    return make_.Make(op, shape, std::move(operands), std::move(attrs));
  }
  Instr* Part(Instr* whole, size_t i) {
    return Make(Op::kGetTupleElement, ResultShapesOf(whole->shape())[i], {whole},
                TupleIndexAttrs{static_cast<int64_t>(i)});
  }
  // Sorts one or several operands and returns the arrays.
  std::vector<Instr*> Sorted(std::vector<Instr*> operands, const SortAttrs& attrs,
                             Computation* less) {
    std::vector<Shape> shapes;
    for (const Instr* operand : operands) shapes.push_back(PlainSorted(operand->shape()));
    bool several = shapes.size() > 1;
    Instr* sort =
        Make(Op::kSort, several ? Shape::Tuple(shapes) : shapes[0], std::move(operands), attrs);
    sort->set_called({less});
    if (!several) return {sort};
    std::vector<Instr*> parts;
    for (size_t i = 0; i < shapes.size(); ++i) parts.push_back(Part(sort, i));
    return parts;
  }
  void Finish(const std::vector<Instr*>& values) {
    Instr* all = of_.shape().IsTuple() ? Make(Op::kTuple, of_.shape(), values) : values[0];
    make_.Replace(all);
  }

 private:
  Instr& of_;
  Editor make_;
};

Instr* Sliced(MergeSortEditor& editor, Instr* x, size_t d, int64_t begin, int64_t end) {
  const Dims dims = x->shape().dims();
  if (begin == 0 && end == dims[d]) return x;
  Dims from(dims.size()), to = dims, result = dims;
  from[d] = begin;
  to[d] = end;
  result[d] = end - begin;
  return editor.Make(Op::kSlice, Shape::Array(x->shape().type(), result), {x},
                     SliceAttrs{from, to, Dims(dims.size(), 1)});
}

Instr* Reshaped(MergeSortEditor& editor, Instr* x, const Dims& dims) {
  return editor.Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {x});
}

// ---- long lines

// A line of `count` segments of `segment` elements.
struct KeyCut {
  int64_t count = 1, segment = 1;
};

KeyCut CutOf(int64_t length, int64_t longest) {
  // Segments are multiples of this many elements. Chosen: a thread merges 16 (kHalvesItems of
  // gen/sort_schedule.cc), which are then in one pair of segments.
  constexpr int64_t kUnit = 16;
  KeyCut cut;
  while (cut.count * longest < length) cut.count *= 2;
  cut.segment = RoundUp(CeilDiv(length, cut.count), kUnit);
  return cut;
}

// The comparator with one more leading key: whether an element is padding.
Computation* WithPadding(Instr& sort) {
  Builder b(sort, "padded_less");
  Instr* x = b.Parameter(Shape::Scalar(ElementType::kPred));
  Instr* y = b.Parameter(Shape::Scalar(ElementType::kPred));
  std::unordered_map<const Instr*, Instr*> made;
  for (const Instr* parameter : sort.called(0)->parameters())
    made[parameter] = b.Parameter(parameter->shape());
  for (const Instr* instr : sort.called(0)->PostOrder()) {
    if (instr->op() == Op::kParameter) continue;
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(made[operand]);
    made[instr] =
        b.Append(instr->op(), std::move(operands), instr->attrs(), {.shape = instr->shape()});
  }
  Instr* less = made[sort.called(0)->root()];
  Instr* own_first = b.And(b.Append(Op::kNot, {x}), y);
  Instr* equal = b.Append(Op::kNot, {b.Append(Op::kXor, {x, y})});
  return b.FinishValid(b.Or(own_first, b.And(equal, less)));
}

// The operands padded with elements that sort last, preceded by an array that marks the padding.
std::vector<Instr*> Padded(MergeSortEditor& editor, Instr& sort, size_t along, int64_t to) {
  std::vector<Instr*> arrays;
  auto pad = [&](Instr* x, Instr* with) {
    Dims none(x->shape().dims().size()), high = none, dims = x->shape().dims();
    high[along] = to - dims[along];
    dims[along] = to;
    return editor.Make(Op::kPad, Shape::Array(x->shape().type(), dims), {x, with},
                       PadAttrs{none, high, none});
  };
  auto scalar = [&](const Literal& value) {
    return editor.Make(Op::kConstant, value.shape(), {}, ConstantAttrs{value});
  };
  const ElementType kPred = ElementType::kPred;
  Instr* no = editor.Make(Op::kBroadcast, Shape::Array(kPred, sort.operand(0)->shape().dims()),
                          {scalar(Literal::ScalarInt(kPred, 0))}, DimensionsAttrs{});
  arrays.push_back(pad(no, scalar(Literal::ScalarInt(kPred, 1))));
  for (Instr* operand : sort.operands()) {
    ElementType type = operand->shape().type();
    bool integer = IsInteger(type) || type == kPred;
    Literal zero = integer ? Literal::ScalarInt(type, 0) : Literal::Scalar(type, 0);
    arrays.push_back(pad(operand, scalar(zero)));
  }
  return arrays;
}

}  // namespace

// Segments stay in their original order and every pass is stable, so the result is the stable order
// of the whole line.
void MergeSort(Instr& sort, const SortSchedule& schedule, PassContext& context) {
  LineSort line = LineSortOf(sort);
  MergeSortEditor editor(sort);
  KeyCut cut = CutOf(line.length, schedule.tile);
  bool is_even = cut.count * cut.segment == line.length;
  std::vector<Instr*> arrays(sort.operands().begin(), sort.operands().end());
  Computation* less = sort.called(0);
  if (!is_even) {
    arrays = Padded(editor, sort, line.along, cut.count * cut.segment);
    less = WithPadding(sort);
  }
  auto at = static_cast<int64_t>(line.along);
  SortAttrs attrs{.dimension = at + 1, .is_stable = true};
  int64_t passes = 0;
  for (; cut.count >= 1; cut.count /= 2, cut.segment *= 2, ++passes) {
    Dims dims = line.dims;
    dims[line.along] = cut.segment;
    dims.insert(dims.begin() + at, cut.count);
    for (Instr*& array : arrays) array = Reshaped(editor, array, dims);
    arrays = editor.Sorted(arrays, attrs, less);
  }
  if (!is_even) arrays.erase(arrays.begin());
  Dims whole = line.dims;
  whole[line.along] = arrays[0]->shape().dims()[line.along + 1];
  for (Instr*& array : arrays)
    array = Sliced(editor, Reshaped(editor, array, whole), line.along, 0, line.length);
  context.Accepted("sort.merged", sort, nullptr, std::to_string(passes) + " passes");
  editor.Finish(arrays);
}

}  // namespace tokamak
